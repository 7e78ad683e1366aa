"""An answer that is whole when it is made: status, headers and bytes, written in one go.

In: what front and its parts decide. Out: the bytes of one HTTP/1.1 answer on an aiohttp connection, which takes for a
response whatever has `prepare`, `write_eof` and `keep_alive`. Its own responses keep headers in a multidict, look for
cookies, compression and hooks, and are written by a stream writer: a tenth of what a call costs. Event streams, which
are written bit by bit, are still aiohttp's.
"""

from __future__ import annotations

import http
from collections.abc import Mapping
from typing import Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time

_JOINED: Final = 64 << 10
"""Bytes of a body that are copied behind the head, so that one write takes both."""

_BODILESS: Final = frozenset({204, 304})
_heads: Final[dict[tuple[int, str], str]] = {}
"""By status and content type, of which there are few."""


class Reply:
    """`keep_alive`: whether the connection may go on; None: as the request says. `headers` may be added to."""

    __slots__ = ("_writer", "body", "content_type", "headers", "keep_alive", "status")

    def __init__(
        self,
        status: int,
        body: bytes | tuple[bytes, ...] = b"",
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`body`: in one piece or several, of which the last is not copied if it is large."""
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers: dict[str, str] | None = None if headers is None else dict(headers)
        self.keep_alive: bool | None = None
        self._writer: AbstractStreamWriter | None = None

    def add(self, name: str, value: str) -> None:
        """One more header."""
        if self.headers is None:
            self.headers = {}
        self.headers[name] = value

    async def prepare(self, request: web.BaseRequest) -> None:
        """Write it. ConnectionError when the client is gone."""
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._writer = request.writer
        if self.keep_alive is None:
            self.keep_alive = request.keep_alive
        head = _heads.get((self.status, self.content_type)) or _head(self.status, self.content_type)
        if self.headers is not None or not self.keep_alive or request.version[1] == 0:
            head += self._more(request)
        pieces = self.body if isinstance(self.body, tuple) else (self.body,)
        size = sum(map(len, pieces))
        if self.status in _BODILESS:
            whole, size = f"{head}Date: {rfc822_formatted_time()}\r\n\r\n", 0
        else:
            whole = f"{head}Date: {rfc822_formatted_time()}\r\nContent-Length: {size}\r\n\r\n"
        start = whole.encode()
        if not size or request.method == "HEAD":
            transport.write(start)
        elif size < _JOINED:
            transport.write(b"".join((start, *pieces)))
        else:
            *small, large = pieces  # not writelines: CVE-2024-12254, it never says that a client takes nothing
            transport.write(b"".join((start, *small)))
            transport.write(large)

    async def write_eof(self) -> None:
        """Wait until a slow client has taken what it must before it is served again."""
        if self._writer is not None:
            await self._writer.drain()

    def _more(self, request: web.BaseRequest) -> str:
        given = self.headers or {}
        lines = "".join([f"{name}: {value}\r\n" for name, value in given.items()])
        if lines.count("\n") != len(given) or lines.count("\r") != len(given):
            raise ValueError("a header holds a line break")
        if not self.keep_alive:
            return lines + "Connection: close\r\n"
        return lines + "Connection: keep-alive\r\n" if request.version[1] == 0 else lines


def _head(status: int, content_type: str) -> str:
    kind = f"Content-Type: {content_type}\r\n" if content_type else ""
    made = f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\n{kind}Server: arion-tds\r\n"
    _heads[status, content_type] = made
    return made


Answered = Reply | web.StreamResponse
"""What a request is answered with."""
