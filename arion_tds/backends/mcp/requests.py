"""What this gateway says to a server: headers and params of its requests, in either era. Pure.

In: the agreed `Peer`, a tool's name, a call's arguments and context. Out: header maps and JSON bytes.
Called by line, handshake, listing and calling.

Of the caller's `_meta` everything goes on but what belongs to the caller's own hop: protocol version, client identity,
progress token. Its client capabilities reach modern servers only when the caller is modern too: nobody else could
answer what a server may then ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from multidict import CIMultiDict

from arion_tds import __version__
from arion_tds.backends.mcp import headers, wire
from arion_tds.backends.mcp.era import HANDSHAKE_VERSIONS, Era, Peer
from arion_tds.model.context import CallContext

_VERSION_KEY: Final = wire.MODERN_PREFIX + "protocolVersion"
_CAPABILITIES_KEY: Final = wire.MODERN_PREFIX + "clientCapabilities"
_CLIENT_KEY: Final = wire.MODERN_PREFIX + "clientInfo"
LOG_LEVEL_KEY: Final = wire.MODERN_PREFIX + "logLevel"
_CLIENT: Final = wire.encode({"name": "arion-tds", "version": __version__})
_OWN_HOP: Final = frozenset({_VERSION_KEY, _CLIENT_KEY, _CAPABILITIES_KEY, "progressToken"})
_TRACE: Final = frozenset({"traceparent", "tracestate"})
"""Where a call is told as a span, the server hears of that span instead of the caller's (SEP-414)."""

INITIALIZE: Final = b'{"protocolVersion":"%b","capabilities":{},"clientInfo":%b}' % (
    HANDSHAKE_VERSIONS[0].encode(),
    _CLIENT,
)
INITIALIZED: Final = wire.notification("notifications/initialized")


def common(extra: Iterable[tuple[str, str]]) -> CIMultiDict[str]:
    """The headers of every request; `extra` are the configured ones."""
    made = CIMultiDict(extra)
    made.setdefault("user-agent", f"arion-tds/{__version__}")
    made["accept"] = "application/json, text/event-stream"
    return made


def for_peer(base: CIMultiDict[str], peer: Peer, method: str, name: str | None = None) -> CIMultiDict[str]:
    """The headers of one JSON-RPC message. Modern servers want method and name mirrored."""
    made = base.copy()
    made["content-type"] = "application/json"
    made["mcp-protocol-version"] = peer.version
    if peer.era is Era.MODERN:
        made["mcp-method"] = method
        if name is not None:
            made["mcp-name"] = headers.value(name)
    elif peer.session is not None:
        made["mcp-session-id"] = peer.session
    return made


def modern_meta(version: str, capabilities: bytes = b"{}") -> bytes:
    """The members that every modern request carries in `_meta`, without braces."""
    return b'"%b":"%b","%b":%b,"%b":%b' % (
        _VERSION_KEY.encode(),
        version.encode(),
        _CLIENT_KEY.encode(),
        _CLIENT,
        _CAPABILITIES_KEY.encode(),
        capabilities,
    )


def plain_params(peer: Peer, further: bytes = b"") -> bytes:
    """Params of a request of the gateway's own. `further` are members, without braces."""
    if peer.era is Era.LEGACY:
        return b"{" + further + b"}"
    meta = b'"_meta":{' + modern_meta(peer.version) + b"}"
    return b"{" + meta + (b"," + further if further else b"") + b"}"


def call_params(peer: Peer, name: bytes, arguments: bytes, context: CallContext, number: int) -> bytes:
    """Params of tools/call. `name` is JSON; `number`, the request's id, is also its progress token."""
    meta = _call_meta(peer, context, number)
    further = b""
    if context.modern and peer.era is Era.MODERN:
        for key, value in context.params.items():
            if key not in {"_meta", "name", "arguments"}:
                further += b"," + wire.encode(key) + b":" + value
    return b'{"name":%b,"arguments":%b%b%b}' % (
        name,
        arguments or b"{}",
        b',"_meta":{' + meta + b"}" if meta else b"",
        further,
    )


def _call_meta(peer: Peer, context: CallContext, number: int) -> bytes:
    given = context.params.get("_meta", b"")
    modern = peer.era is Era.MODERN
    capabilities = b"{}"
    parts: list[bytes] = []
    if given and given != b"{}":
        try:
            known = wire.members(given)
        except wire.BAD_JSON:
            known = {}
        both = modern and context.modern
        if both and bytes(known.get(_CAPABILITIES_KEY, b"")).startswith(b"{"):
            capabilities = bytes(known[_CAPABILITIES_KEY])
        ours = _OWN_HOP if context.span is None else _OWN_HOP | _TRACE
        parts = [
            wire.encode(key) + b":" + bytes(value)
            for key, value in known.items()
            if key not in ours and (both or not key.startswith(wire.MODERN_PREFIX))
        ]
    if modern:
        parts.insert(0, modern_meta(peer.version, capabilities))
    if context.progress_token is not None:
        parts.append(b'"progressToken":%d' % number)
    if context.span is not None:
        parts.append(b'"traceparent":"%b"' % context.traceparent.encode())
        if context.tracestate is not None:
            parts.append(b'"tracestate":' + wire.encode(context.tracestate))
    return b",".join(parts)


def cancelled(number: int, reason: str) -> bytes:
    """What tells a legacy server that nobody waits for the answer any more."""
    params = b'{"requestId":%d,"reason":%b}' % (number, wire.encode(reason))
    return wire.notification("notifications/cancelled", params)


def relayed_progress(params: bytes, number: int, token: bytes) -> bytes | None:
    """A server's progress notification with the caller's own token, or None if it is not about this call."""
    try:
        parts = {key: bytes(value) for key, value in wire.members(params).items()}
    except wire.BAD_JSON:
        return None
    if parts.get("progressToken") not in {b"%d" % number, b'"%d"' % number}:
        return None
    parts["progressToken"] = token
    return wire.notification("notifications/progress", wire.joined(parts))
