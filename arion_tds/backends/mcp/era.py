"""Which protocol era a server speaks, judged from how it answers. Pure.

In: HTTP status and JSON-RPC message of an answer. Out: a `Verdict`.
Called by handshake (the opening probe) and exchange (a call that shows that the verdict no longer holds).

The ladder (MCP 2026-07-28, basic/versioning "Backward compatibility"): the probe is `server/discover`, a modern
request that executes nothing. A recognised modern error proves a modern server; every other refusal leads to
`initialize`, and only its success is a legacy verdict.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Final

import msgspec

from arion_tds.backends.mcp import wire

MODERN_VERSIONS: Final = ("2026-07-28",)
"""Newest first."""

HANDSHAKE_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Newest first."""

HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022


class Era(enum.Enum):
    """How a server is spoken to."""

    MODERN = "modern"
    LEGACY = "legacy"


@dataclasses.dataclass(frozen=True, slots=True)
class Peer:
    """What is agreed with a server. `number` counts agreements; `session` is a legacy session id, if it gave one.

    `listens`: it says that it announces changes of its tool list. `certain`: it proved its era.
    """

    era: Era
    version: str
    number: int
    session: str | None = None
    name: str = ""
    listens: bool = False
    certain: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Modern:
    """A modern server that speaks `version`."""

    version: str
    name: str = ""
    listens: bool = False
    certain: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Again:
    """A modern server that refused and named a version: ask again with it, once."""

    version: str


@dataclasses.dataclass(frozen=True, slots=True)
class Legacy:
    """Not a modern server: `initialize`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Incompatible:
    """A server that shares no version with this gateway."""

    why: str


Verdict = Modern | Again | Legacy | Incompatible


class _Implementation(msgspec.Struct):
    name: str = ""


class _Tools(msgspec.Struct, rename="camel"):
    list_changed: bool | None = None


class _Capabilities(msgspec.Struct):
    tools: _Tools | None = None


class _Discover(msgspec.Struct, rename="camel"):
    supported_versions: list[str]
    capabilities: _Capabilities = msgspec.field(default_factory=_Capabilities)
    meta: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="_meta")


class _Initialize(msgspec.Struct, rename="camel"):
    protocol_version: str
    capabilities: _Capabilities = msgspec.field(default_factory=_Capabilities)
    server_info: _Implementation = msgspec.field(default_factory=_Implementation)


class _Supported(msgspec.Struct):
    supported: list[str]


def judge(status: int, message: wire.Message | None, offered: str) -> Verdict:
    """The verdict on an answer to `server/discover` sent at version `offered`. `message` is None: no JSON-RPC came."""
    if message is None:
        return Legacy()
    if message.error:
        return _judge_error(status, message.error, offered)
    try:
        found = msgspec.json.decode(message.result, type=_Discover)
    except wire.BAD_JSON:
        return Legacy()
    shared = [version for version in MODERN_VERSIONS if version in found.supported_versions]
    if not shared:
        return Legacy()
    tools = found.capabilities.tools
    name = ""
    if (raw := found.meta.get("io.modelcontextprotocol/serverInfo")) is not None:
        name = _name(raw)
    return Modern(shared[0], name, listens=tools is not None and bool(tools.list_changed))


def _judge_error(status: int, raw: msgspec.Raw, offered: str) -> Verdict:
    error = wire.error_of(raw)
    if isinstance(error, str) or not is_modern(status, error.code):
        return Legacy()
    if error.code == UNSUPPORTED_VERSION:
        return supported(error.data)
    # It refused this one request in modern words: modern, but let a later refusal change the verdict.
    return Modern(offered, certain=False)


def is_modern(status: int, code: int) -> bool:
    """Whether an error with this HTTP status is one that only modern servers send."""
    if code in {HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION}:
        return True
    return (status == 404 and code == -32601) or (status == 400 and code == -32602)


def supported(data: bytes | None) -> Verdict:
    """What -32022 and its `data.supported` lead to."""
    try:
        versions = msgspec.json.decode(data or b"", type=_Supported).supported
    except wire.BAD_JSON:
        return Legacy()
    shared = [version for version in MODERN_VERSIONS if version in versions]
    if shared:
        # Also when it is the one that was offered: among replicas that are being replaced, the next answer may fit.
        return Again(shared[0])
    if any(version in HANDSHAKE_VERSIONS for version in versions):
        return Legacy()
    ours = ", ".join(MODERN_VERSIONS + HANDSHAKE_VERSIONS)
    return Incompatible(f"it speaks {', '.join(versions[:8]) or 'no version'}, this gateway {ours}")


@dataclasses.dataclass(frozen=True, slots=True)
class Initialized:
    """A legacy server's answer to `initialize`."""

    version: str
    name: str
    listens: bool


def initialized(raw: msgspec.Raw) -> Initialized | str:
    """What an `initialize` result says, or why it cannot be worked with."""
    try:
        found = msgspec.json.decode(raw, type=_Initialize)
    except wire.BAD_JSON as error:
        return f"its initialize result is not one: {error}"
    if found.protocol_version not in HANDSHAKE_VERSIONS:
        return f"it chose protocol version {found.protocol_version!r}, which this gateway does not speak"
    tools = found.capabilities.tools
    return Initialized(found.protocol_version, found.server_info.name, tools is not None and bool(tools.list_changed))


def _name(raw: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(raw, type=_Implementation).name
    except wire.BAD_JSON:
        return ""


class Stale(enum.Enum):
    """What an answer shows to be no longer so. The request was refused, not executed: agree anew, send it again."""

    SESSION = "session"
    ERA = "era"


_REFUSALS: Final = frozenset({400, 404, 405})
_NO_SESSION: Final = frozenset({-32001, -32000, -32600})


def stale(peer: Peer, status: int, message: wire.Message | None) -> Stale | None:
    """Whether the answer means that the session is gone or that the server now speaks another era."""
    if 200 <= status < 300 and (message is None or not message.error):
        return None
    error = wire.error_of(message.error) if message is not None and message.error else None
    if isinstance(error, str):
        error = None
    code = 0 if error is None else error.code
    if code == UNSUPPORTED_VERSION:
        return Stale.ERA
    if peer.era is Era.MODERN:
        return Stale.ERA if status in _REFUSALS and not (error is not None and is_modern(status, code)) else None
    if peer.session is not None:
        said = "" if error is None else error.message.lower()
        # With HTTP 200 a tool may have run and may speak of sessions of its own: only the protocol's own words count.
        if status == 404 or (status in _REFUSALS and code in _NO_SESSION and "session" in said):
            return Stale.SESSION
        if code == -32001 and said.startswith("session not found"):
            return Stale.SESSION
    return Stale.ERA if status in _REFUSALS and error is None else None
