"""A `CallResult` as the result object of each protocol era. Pure: bytes in, bytes out.

Called by front for every answered call. Legacy: content, structuredContent (objects only), isError. Modern: resultType
and the server's identity in `_meta` beside what the tool said. An upstream's own identity never passes.
"""

from __future__ import annotations

from typing import Final

import msgspec

from arion_tds.model.result import CallResult, text_block
from arion_tds.server import eras, jsonrpc

_encode = msgspec.json.Encoder().encode
_RESERVED: Final = eras.RESERVED.encode()
_IDENTITY: Final = eras.SERVER_INFO_KEY.encode()
_ASKS_BACK: Final = text_block(
    "This tool asked for further input, which needs an MCP client of revision 2026-07-28 or later. "
    "It cannot be used from this client."
)


def server_meta(name: str, version: str) -> bytes:
    """The `_meta` member that names us, without braces."""
    return _encode(eras.SERVER_INFO_KEY) + b":" + _encode({"name": name, "version": version})


def legacy(result: CallResult) -> bytes:
    """The result for a handshake revision."""
    if result.result_type != "complete":
        return b'{"content":' + _ASKS_BACK + b',"isError":true}'
    parts = [b'{"content":', result.content]
    if result.structured is not None and result.structured[:1] == b"{":
        # Before 2026-07-28 structuredContent is an object; clients refuse the result otherwise.
        parts += (b',"structuredContent":', result.structured)
    parts += (b',"isError":true' if result.is_error else b',"isError":false', result.extra)
    meta = _without(result.meta, _RESERVED) if _RESERVED in result.meta else result.meta
    if meta:
        parts += (b',"_meta":{', meta, b"}")
    parts.append(b"}")
    return b"".join(parts)


def modern(result: CallResult, identity: bytes) -> bytes:
    """The result for 2026-07-28. `identity`: what `server_meta` made."""
    if result.result_type == "complete":
        parts = [b'{"resultType":"complete","content":', result.content]
        if result.structured is not None:
            parts += (b',"structuredContent":', result.structured)
        parts += (b',"isError":true' if result.is_error else b',"isError":false', result.extra)
    else:
        parts = [b'{"resultType":', _encode(result.result_type), result.extra]
    meta = _without(result.meta, _IDENTITY) if _IDENTITY in result.meta else result.meta
    parts += (b',"_meta":{', identity)
    if meta:
        parts += (b",", meta)
    parts.append(b"}}")
    return b"".join(parts)


def _without(meta: bytes, prefix: bytes) -> bytes:
    """The members (no braces) whose key does not start so."""
    found = jsonrpc.members(b"{" + meta + b"}")
    if found is None:
        return b""
    start = prefix.decode()
    return b",".join([_encode(key) + b":" + bytes(value) for key, value in found.items() if not key.startswith(start)])
