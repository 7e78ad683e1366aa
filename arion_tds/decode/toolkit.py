"""The Toolkit message to a Toolkit. Its tools need not exist: they are looked up when a toolkit is used."""

from __future__ import annotations

from arion_tds.decode.case import Case
from arion_tds.model import names
from arion_tds.model.toolkit import Toolkit
from arion_tds.pb import mcp_gateway_pb2 as pb


def toolkit(message: pb.Toolkit, name: str, case: Case) -> Toolkit | None:
    """The toolkit of that name, or None with the reasons in the Case."""
    case.required("name", name)
    if len(message.tools) < 2:
        case.refuse("tools", f"has {len(message.tools)} of at least two tools")
    found: dict[str, None] = {}
    for at, ref in enumerate(message.tools):
        case.required(f"tools[{at}].namespace", ref.namespace)
        case.required(f"tools[{at}].name", ref.name)
        qualified = names.qualified(ref.namespace, ref.name)
        if qualified in found:
            case.warn(f"tools[{at}]", f"names {qualified!r} again")
        found[qualified] = None
    if case.problems:
        return None
    return Toolkit(name=name, description=message.description, instructions=message.instructions, tools=tuple(found))
