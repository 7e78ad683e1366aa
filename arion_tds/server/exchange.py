"""Off aiohttp and onto it: a request's body and headers as values, JSON answers as responses.

In: an aiohttp request of the low-level server. Out: bytes within the limit, `Routing`, responses. Called by front.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from typing import Final

from aiohttp import web
from multidict import istr

from arion_tds import inflate
from arion_tds.server import jsonrpc, sse
from arion_tds.server.eras import Routing
from arion_tds.server.guard import Accepts
from arion_tds.server.param_headers import PREFIX
from arion_tds.server.reply import Reply

ACCEPT: Final = istr("Accept")
_CONTENT_ENCODING: Final = istr("Content-Encoding")
ACCEPT_ENCODING: Final = istr("Accept-Encoding")
CONTENT_TYPE: Final = istr("Content-Type")
HOST: Final = istr("Host")
ORIGIN: Final = istr("Origin")
REQUEST_ID: Final = istr("X-Request-Id")
SESSION: Final = istr("Mcp-Session-Id")
_VERSION: Final = istr("MCP-Protocol-Version")
_METHOD: Final = istr("Mcp-Method")
_NAME: Final = istr("Mcp-Name")


def routing(request: web.BaseRequest) -> Routing:
    """The headers that say what the body should hold, and whether one came twice."""
    headers = request.headers
    version = headers.getall(_VERSION, ())
    method = headers.getall(_METHOD, ())
    name = headers.getall(_NAME, ())
    repeated = None
    if len(version) > 1 or len(method) > 1 or len(name) > 1:
        repeated = _VERSION if len(version) > 1 else _METHOD if len(method) > 1 else _NAME
    return Routing(version[0] if version else None, method[0] if method else None, name[0] if name else None, repeated)


def mirrored(request: web.BaseRequest) -> tuple[tuple[str, str], ...]:
    """The `Mcp-Param-*` headers, names in lower case."""
    size = len(PREFIX)
    return tuple([(name.lower(), value) for name, value in request.headers.items() if name[:size].lower() == PREFIX])


async def body(request: web.BaseRequest, limit: int, timeout: float) -> bytes | Reply:
    """The whole body, or the refusal of one that is too large, too slow or broken. `limit` in bytes after decoding."""
    encoding = request.headers.get(_CONTENT_ENCODING)
    if encoding is None:
        return await _received(request, limit, timeout)
    if not inflate.supported(encoding):
        why = f"a body with Content-Encoding {encoding[:40]!r} cannot be read: {inflate.ACCEPTED} can"
        return refuse(415, why, headers={"Accept-Encoding": inflate.ACCEPTED})
    packed = await _received(request, limit, timeout)
    return packed if isinstance(packed, Reply) else _unpacked(packed, encoding, limit)


def _unpacked(packed: bytes, encoding: str, limit: int) -> bytes | Reply:
    """A compressed body, unpacked up to the limit and no further."""
    work = inflate.Body(limit, encoding)
    try:
        work.feed(packed)
    except inflate.TooLarge:
        return too_large(limit)
    except zlib.error:
        whole = None
    else:
        whole = work.whole()
    if whole is None:
        why = f"the body is not whole or not {encoding[:40]!r} as its Content-Encoding says"
        return refuse(400, why, code=jsonrpc.PARSE_ERROR)
    return whole


async def _received(request: web.BaseRequest, limit: int, timeout: float) -> bytes | Reply:
    length = request.content_length
    if length is not None and length > limit:
        return too_large(limit)
    content = request.content
    if content.is_eof():
        found = content.read_nowait()
        return found if len(found) <= limit else too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout):
            while part := await content.readany():
                size += len(part)
                if size > limit:
                    return too_large(limit)
                parts.append(part)
    except TimeoutError:
        return refuse(408, f"the body did not arrive within {timeout:g} s (body_timeout)")
    except (web.RequestPayloadError, ConnectionError) as error:
        return refuse(400, f"the body could not be read: {error}", code=jsonrpc.PARSE_ERROR)
    return b"".join(parts)


def too_large(limit: int) -> Reply:
    """413, naming the setting."""
    return refuse(413, f"the body is larger than {limit} bytes (max_body_bytes)")


def reply(status: int, message: bytes, headers: Mapping[str, str] | None = None) -> Reply:
    """JSON bytes as a response."""
    return Reply(status, message, headers=headers)


def answer(accepts: Accepts, status: int, message: bytes) -> Reply:
    """JSON, or for a client that takes nothing but an event stream: one event. Errors with a status stay JSON."""
    if accepts.json or status != 200:
        return reply(status, message)
    return sse.single(message)


def empty(status: int) -> Reply:
    """A response without a body."""
    return Reply(status, content_type="")


def refuse(
    status: int, why: str, *, code: int = jsonrpc.INVALID_REQUEST, headers: Mapping[str, str] | None = None
) -> Reply:
    """A JSON-RPC error that answers no particular request."""
    return reply(status, jsonrpc.error(jsonrpc.NULL, code, why), headers)
