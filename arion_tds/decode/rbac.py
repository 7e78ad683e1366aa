"""ToolRbac to a value. What cannot be understood is refused: a half-read rule would let the wrong callers in."""

from __future__ import annotations

from arion_tds.decode.case import Case
from arion_tds.decode.sharing import shared
from arion_tds.model.rbac import Permission, Rbac
from arion_tds.pb import mcp_gateway_pb2 as pb


def rbac(message: pb.ToolRbac, field: str, case: Case) -> Rbac | None:
    """The rule, or None with the reasons in the Case."""
    if message.action not in {pb.ToolRbac.ALLOW, pb.ToolRbac.DENY}:
        case.refuse(f"{field}.action", f"is {message.action}: neither ALLOW (0) nor DENY (1)")
    if not message.permissions:
        case.refuse(f"{field}.permissions", "is empty: name at least one permission")
    found: list[Permission] = []
    for at, permission in enumerate(message.permissions):
        which = permission.WhichOneof("permission_type")
        if which is None:
            case.refuse(f"{field}.permissions[{at}]", "names neither jwt_header nor jwt_claim")
            continue
        header = which == "jwt_header"
        matcher = permission.jwt_header if header else permission.jwt_claim
        case.required(f"{field}.permissions[{at}].{which}.field", matcher.field)
        case.required(f"{field}.permissions[{at}].{which}.value", matcher.value)
        found.append(Permission(matcher.field, matcher.value, header))
    return shared(Rbac(message.action == pb.ToolRbac.DENY, tuple(found)))
