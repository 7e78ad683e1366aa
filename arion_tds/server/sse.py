"""Server-sent events to one client: a bounded queue, keep-alive comments, an orderly end.

In: JSON-RPC messages as bytes. Out: frames on an aiohttp response, written by the task that serves the request, so a
slow client holds up nobody else. Used by front for calls that notify, GET streams and subscriptions/listen.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from aiohttp import web

_HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    "Server": "arion-tds",
}
_COMMENT: Final = b": keep-alive\n\n"


def frame(message: bytes) -> bytes:
    """One message as one event. Newlines in JSON stand between tokens only, so blanks serve as well."""
    if b"\n" in message or b"\r" in message:
        message = message.replace(b"\n", b" ").replace(b"\r", b" ")
    return b"event: message\ndata: " + message + b"\n\n"


class EventStream:
    """What waits to be written to one client. Pushed to by anybody in the loop, drained by `run` alone."""

    __slots__ = ("_frames", "_limit", "_over", "_size", "_waiter")

    def __init__(self, limit: int) -> None:
        """`limit`: bytes that may wait; what would exceed it is not taken."""
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._limit = limit
        self._over = False
        self._waiter: asyncio.Future[None] | None = None

    def push(self, message: bytes) -> bool:
        """Queue a message. False: the stream is over, or too much waits already."""
        if self._over or self._size + len(message) > self._limit:
            return False
        self._put(message)
        return True

    def end(self, last: bytes | None = None) -> None:
        """Write what waits, then `last` (whatever the limit), then end."""
        if self._over:
            return
        if last is not None:
            self._put(last)
        self._over = True
        self._wake()

    def _put(self, message: bytes) -> None:
        self._frames.append(frame(message))
        self._size += len(message)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def run(self, request: web.BaseRequest, *, keepalive: float, write_timeout: float) -> web.StreamResponse:
        """Serve the stream until it is ended, or the client is gone or takes nothing any more: then it is cut off."""
        response = web.StreamResponse(headers=_HEADERS)
        try:
            await response.prepare(request)
            ready = _COMMENT
            while True:
                async with asyncio.timeout(write_timeout):
                    await response.write(ready)
                if not self._frames and not self._over:
                    await self._wait(keepalive)
                if not self._frames and self._over:
                    break
                ready = b"".join(self._frames) or _COMMENT
                self._frames.clear()
                self._size = 0
            async with asyncio.timeout(write_timeout):
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:
            pass  # the server notices when it closes the response
        finally:
            self._over = True
        return response

    async def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, self._wake)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None


def single(message: bytes) -> web.Response:
    """An answer for a client that takes nothing but an event stream: one event."""
    return web.Response(body=frame(message), headers=_HEADERS)
