"""May this caller use this tool? Pure: a tool's Rbac and the verified token's header and claims in, yes or no out.

Called by calls, view filtering and search through one function, so that list, search and call can never disagree.
Claims are also known by the long names of the contract (`issuer` for `iss`, …), header fields likewise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from arion_tds.model.rbac import Permission, Rbac

CLAIM_NAMES: Final = {
    "issuer": "iss",
    "subject": "sub",
    "audience": "aud",
    "expiration": "exp",
    "issued_at": "iat",
    "not_before": "nbf",
    "jwt_id": "jti",
}
HEADER_NAMES: Final = {"algorithm": "alg", "type": "typ", "content_type": "cty", "key_id": "kid"}


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """A verified JWT: its JOSE header and claims."""

    header: Mapping[str, object]
    claims: Mapping[str, object]


def allows(rbac: Rbac | None, token: Token | None) -> bool:
    """Whether a caller with this token (None: no JWT) may use a tool with this rbac (None: everybody may)."""
    if rbac is None:
        return True
    matched = token is not None and any(_matches(permission, token) for permission in rbac.permissions)
    return not matched if rbac.deny else matched


def _matches(permission: Permission, token: Token) -> bool:
    if permission.header:
        return _holds(token.header, HEADER_NAMES, permission)
    return _holds(token.claims, CLAIM_NAMES, permission)


def _holds(fields: Mapping[str, object], long_names: Mapping[str, str], permission: Permission) -> bool:
    field = permission.field
    found = fields.get(field)
    if found is None:
        found = fields.get(long_names.get(field, field))
    if found is None and "." in field:
        found = _nested(fields, field.split("."))
    if isinstance(found, list | tuple):
        return any(_text(one) == permission.value for one in found)
    return _text(found) == permission.value


def _nested(fields: Mapping[str, object], path: list[str]) -> object:
    value: object = fields
    for step in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def _text(value: object) -> str | None:
    """A scalar as JSON would write it without quotes: claims are compared as text. Others match nothing."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if not value.is_integer() else str(int(value))
    return None
