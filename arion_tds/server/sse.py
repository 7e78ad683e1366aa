"""Server-sent events to one client: a bounded queue, keep-alive comments, an orderly end.

In: JSON-RPC messages as bytes. Out: frames on an aiohttp response. While the client takes what it is sent, a message is
written at once by whoever pushes it; otherwise it waits for the task that serves the request, so a slow client holds up
nobody else. Used by front for calls that notify, GET streams and subscriptions/listen.
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from arion_tds.server.reply import Reply

HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    "Server": "arion-tds",
}
_WHOLE: Final = {name: HEADERS[name] for name in ("Cache-Control", "X-Accel-Buffering")}
_COMMENT: Final = b": keep-alive\n\n"


def frame(message: bytes) -> bytes:
    """One message as one event. Newlines in JSON stand between tokens only, so blanks serve as well."""
    if b"\n" in message or b"\r" in message:
        message = message.replace(b"\n", b" ").replace(b"\r", b" ")
    return b"event: message\ndata: " + message + b"\n\n"


class EventStream:
    """What waits to be written to one client. Pushed to by anybody in the loop, drained by `run` alone."""

    __slots__ = ("_chunked", "_frames", "_limit", "_over", "_size", "_transport", "_waiter")

    def __init__(self, limit: int) -> None:
        """`limit`: bytes that may wait; what would exceed it is not taken."""
        self._frames: list[bytes] = []
        self._size = 0
        self._limit = limit
        self._over = False
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._chunked = False

    def push(self, message: bytes) -> bool:
        """Send a message. False: the stream is over, or too much waits already."""
        if self._over or self._size + len(message) > self._limit:
            return False
        made = frame(message)
        if not self._written(made):
            self._put(made)
        return True

    def comment(self) -> None:
        """Show whoever reads that the stream is alive, unless something waits to be written anyway."""
        if not self._over and not self._frames and not self._written(_COMMENT):
            self._put(_COMMENT)

    def end(self, last: bytes | None = None) -> None:
        """Write what waits, then `last` (whatever the limit), then end."""
        if self._over:
            return
        if last is not None:
            self._put(frame(last))
        self._over = True
        self._wake()

    def _written(self, made: bytes) -> bool:
        """Write it now, if `run` waits for something to do and the client has taken everything before."""
        transport = self._transport
        if self._waiter is None or self._waiter.done() or transport is None:
            return False
        if transport.is_closing() or transport.get_write_buffer_size():
            return False
        transport.write(b"%x\r\n%b\r\n" % (len(made), made) if self._chunked else made)
        return True

    def _put(self, made: bytes) -> None:
        self._frames.append(made)
        self._size += len(made)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def run(
        self, request: web.BaseRequest, response: web.StreamResponse, *, keepalive: float | None, write_timeout: float
    ) -> web.StreamResponse:
        """Serve the stream until it is ended, or the client is gone or takes nothing any more: then it is cut off.

        `response`: fresh, with HEADERS. `keepalive`: seconds until a silent stream gets a comment; None: whoever owns
        the stream sees to that.
        """
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None
        try:
            await response.prepare(request)
            self._transport, self._chunked = request.transport, request.version >= (1, 1)
            ready = _COMMENT
            while True:
                async with asyncio.timeout(write_timeout):
                    await response.write(ready)
                ready = b""  # it may be a while until there is more
                if not self._frames and not self._over:
                    self._waiter = loop.create_future()
                    if keepalive is not None:
                        timer = loop.call_later(keepalive, self._wake)
                    await self._waiter
                    self._waiter = None
                    if timer is not None:
                        timer.cancel()
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
            self._waiter = self._transport = None
            if timer is not None:
                timer.cancel()
        return response


def single(message: bytes) -> Reply:
    """An answer for a client that takes nothing but an event stream: one event."""
    return Reply(200, frame(message), "text/event-stream", _WHOLE)
