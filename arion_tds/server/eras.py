"""What each MCP revision demands of a POST, and the identity it wants to see in answers. Pure.

In: the routing headers, method and params of one message. Out: which era it belongs to, and for 2026-07-28 the first
rule that it breaks (`Refusal`). The rules are those of basic/index, basic/versioning and basic/transports/
streamable-http; the SDK's `mcp.shared.inbound` is the oracle in tests (its import costs 0.6 s, so not here).
Called by front and methods.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import re
from typing import Final

import msgspec

from arion_tds.server import jsonrpc
from arion_tds.server.jsonrpc import Params

LEGACY_REVISIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions that open with `initialize`, newest first."""

MODERN_REVISIONS: Final = ("2026-07-28",)
"""Stateless revisions, newest first."""

HEADER_MISMATCH: Final = -32020
MISSING_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022
REQUEST_CANCELLED: Final = -32800
"""What a legacy request is answered with after notifications/cancelled: HTTP owes an answer. (Same as the SDK.)"""

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
RESERVED: Final = "io.modelcontextprotocol/"

MODERN_ONLY: Final = frozenset({"server/discover", "subscriptions/listen"})
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_STATUS: Final = {
    jsonrpc.PARSE_ERROR: 400,
    jsonrpc.INVALID_REQUEST: 400,
    jsonrpc.INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_PROTOCOL_VERSION: 400,
    jsonrpc.METHOD_NOT_FOUND: 404,
}
_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=\Z")
_VERSION_BYTES: Final = VERSION_KEY.encode()
_encode = msgspec.json.Encoder().encode


@dataclasses.dataclass(slots=True)  # made with every call: see docs/architecture.md, Rules
class Routing:
    """The headers that mirror the body, undecoded; `repeated` names one that came more than once."""

    version: str | None
    method: str | None = None
    name: str | None = None
    repeated: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """A broken rule as a JSON-RPC error. `data` is JSON."""

    code: int
    message: str
    data: bytes | None = None


def is_modern(version: str | None, method: str, params: Params) -> bool:
    """Whether the message belongs to the stateless era.

    By header if it names no handshake revision; else by the envelope in `_meta`, so that a missing or wrong header is
    answered by the ladder and not taken for an old client.
    """
    if version is not None and version not in LEGACY_REVISIONS:
        return True
    if method in MODERN_ONLY:
        return True
    meta = params.get("_meta")
    if meta is None or _VERSION_BYTES not in bytes(meta):
        return False
    inside = jsonrpc.members(meta)
    return inside is not None and VERSION_KEY in inside


def refusal(method: str, params: Params, meta: Params | None, routing: Routing) -> Refusal | None:
    """The first rule of 2026-07-28 that the request breaks. `meta`: the members of `params._meta`."""
    if routing.repeated is not None:
        return Refusal(HEADER_MISMATCH, f"{routing.repeated} header appears more than once")
    if meta is None:
        return Refusal(
            jsonrpc.INVALID_PARAMS, f"params._meta must be an object with {VERSION_KEY!r} and {CAPABILITIES_KEY!r}"
        )
    if VERSION_KEY not in meta or CAPABILITIES_KEY not in meta:
        missing = ", ".join(key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta)
        return Refusal(jsonrpc.INVALID_PARAMS, f"params._meta is missing the required key(s): {missing}")
    version = jsonrpc.text(meta[VERSION_KEY])
    if routing.version is None or routing.version != version:
        return Refusal(HEADER_MISMATCH, f"MCP-Protocol-Version header does not match _meta {VERSION_KEY!r}")
    if routing.method != method:
        return Refusal(HEADER_MISMATCH, f"Mcp-Method header does not match the method {method!r}")
    key = _NAMED.get(method)
    if key is not None and key in params:
        named = jsonrpc.text(params[key])
        if named is None or header_text(routing.name) != named:
            return Refusal(HEADER_MISMATCH, f"Mcp-Name header does not match params.{key}")
    unsupported = unsupported_revision(version)
    if unsupported is not None:
        return unsupported
    if bytes(meta[CAPABILITIES_KEY])[:1] != b"{":
        return Refusal(jsonrpc.INVALID_PARAMS, f"params._meta {CAPABILITIES_KEY!r} must be an object")
    return None


def unsupported_revision(version: str) -> Refusal | None:
    """The refusal of a revision that is not served statelessly, or None."""
    if version in MODERN_REVISIONS:
        return None
    data = _encode({"supported": MODERN_REVISIONS, "requested": version})
    return Refusal(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)


def http_status(code: int, *, modern: bool) -> int:
    """The HTTP status of an error answer: 2026-07-28 assigns some, before it every answered request is a 200."""
    return _STATUS.get(code, 200) if modern else 200


def negotiate(requested: str | None) -> str:
    """The revision that `initialize` answers with: the requested one if it has the handshake, else the newest such."""
    return requested if requested in LEGACY_REVISIONS else LEGACY_REVISIONS[0]


def header_text(value: str | None) -> str | None:
    """A header value with the `=?base64?…?=` form undone; None for no value, or one that is not canonical base64."""
    if value is None or not value.startswith("=?"):
        return value
    found = _SENTINEL.match(value)
    if found is None:
        return value
    payload = found.group(1)
    try:
        raw = base64.b64decode(payload, validate=True)
        if base64.b64encode(raw).decode() != payload:
            return None
        return raw.decode()
    except (binascii.Error, ValueError):
        return None
