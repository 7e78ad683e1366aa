"""One client's connection: how many there may be, and how long each may keep us waiting.

aiohttp bounds the size of headers and closes idle connections. Added here: a limit on connections, where the one that
has been idle longest makes room; a time within which a request's headers must be complete; a time within which a
client must take what is written to it; a limit on what all of them together have not taken; short answers to what is
no HTTP. Used by http.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import socket
import sys
from collections.abc import Callable
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from arion_tds.server import exchange

_log = logging.getLogger("arion_tds.server")
_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_USER_TIMEOUT: Final = getattr(socket, "TCP_USER_TIMEOUT", None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """Times in seconds, sizes in bytes. `max_header_bytes`: of one header line, and of the request line."""

    max_connections: int = 4096
    max_unsent_bytes: int = 1 << 28
    header_timeout: float = 10.0
    idle_timeout: float = 75.0
    write_timeout: float = 30.0
    max_header_bytes: int = 8190
    max_headers: int = 100


class Gate:
    """The open connections of one listener. `refused` hears why one was not served ("full", "evicted", "slow", …)."""

    __slots__ = ("_idle", "_open", "_settings", "_unsent", "_unsent_bytes", "refused")

    def __init__(self, settings: ConnectionSettings, refused: Callable[[str], None]) -> None:
        self._settings = settings
        self._open: set[Connection] = set()
        self._idle: dict[Connection, None] = {}
        self._unsent: dict[Connection, int] = {}  # of those that take nothing, oldest first
        self._unsent_bytes = 0
        self.refused = refused

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, connection: Connection) -> bool:
        """Let it in, in place of the one that has been idle longest if need be. False: all are busy."""
        if len(self._open) >= self._settings.max_connections:
            oldest = next(iter(self._idle), None)
            if oldest is None:
                self.refused("full")
                return False
            self.refused("evicted")
            self.leave(oldest)
            oldest.abort()
        self._open.add(connection)
        self._idle[connection] = None
        return True

    def leave(self, connection: Connection) -> None:
        """It is gone."""
        self._open.discard(connection)
        self._idle.pop(connection, None)
        self.taken(connection)

    def unsent(self, connection: Connection, size: int) -> None:
        """So many bytes wait for a client that takes nothing at the moment: it may be that somebody has to go.

        Answers are written one after the other, each once the one before is taken: there is not more to come.
        """
        self._unsent_bytes += size
        self._unsent[connection] = size
        while self._unsent_bytes > self._settings.max_unsent_bytes:
            oldest = next(iter(self._unsent))
            self.taken(oldest)
            self.refused("unsent")
            oldest.abort()

    def taken(self, connection: Connection) -> None:
        """It takes again what is written to it, or is gone."""
        self._unsent_bytes -= self._unsent.pop(connection, 0)

    def busy(self, connection: Connection) -> None:
        """It is being served."""
        self._idle.pop(connection, None)

    def idle(self, connection: Connection) -> None:
        """It waits for a request."""
        if connection in self._open:
            self._idle[connection] = None


class Connection(RequestHandler):
    """A connection with time limits. All state is the event loop's."""

    __slots__ = ("_gate", "_headers_timer", "_limits", "_serving", "_write_timer")

    def __init__(self, server: Server, gate: Gate, limits: ConnectionSettings, **more: Any) -> None:  # noqa: ANN401
        """`more`: aiohttp's own settings."""
        super().__init__(server, **more)
        self._gate = gate
        self._limits = limits
        self._serving = False
        self._headers_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Served if there is room, else told to come back."""
        super().connection_made(transport)
        if not self._gate.enter(self):
            if isinstance(transport, asyncio.Transport):
                transport.write(_FULL)
            self.force_close()
            return
        self._headers_timer = self._loop.call_later(self._limits.header_timeout, self._late)
        found = transport.get_extra_info("socket")
        if _USER_TIMEOUT is not None and found is not None and sys.platform == "linux":
            # Closing waits until the client has taken what was written; one that takes nothing must not hold it.
            found.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, round(self._limits.write_timeout * 1000))

    def connection_lost(self, exc: BaseException | None) -> None:
        """Nothing of it stays behind."""
        self._gate.leave(self)
        for timer in (self._headers_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        self._headers_timer = self._write_timer = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """The first bytes of a request start the time for its headers, unless they come all at once."""
        super().data_received(data)
        if not self._serving and self._headers_timer is None and not self._messages:
            self._headers_timer = self._loop.call_later(self._limits.header_timeout, self._late)

    def begun(self) -> None:
        """A request's headers are complete: it is being served."""
        self._serving = True
        self._gate.busy(self)
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def ended(self) -> None:
        """The request was answered."""
        self._serving = False
        self._gate.idle(self)

    def pause_writing(self) -> None:
        """The client does not take what we write: it has a while to do so."""
        super().pause_writing()
        self._write_timer = self._loop.call_later(self._limits.write_timeout, self._stuck)
        transport = self.transport
        if transport is not None:
            self._gate.unsent(self, transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It does again."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        self._gate.taken(self)
        super().resume_writing()

    def abort(self) -> None:
        """End it now, whatever was still to be written."""
        transport = self.transport
        if transport is not None:
            transport.abort()

    def _late(self) -> None:
        self._headers_timer = None
        self._gate.refused("slow headers")
        self.abort()

    def _stuck(self) -> None:
        self._write_timer = None
        self._gate.refused("slow reader")
        self.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What is no HTTP is answered without a word of what it was, and the connection closed."""
        del message
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun already")
        if status >= 500:
            _log.error("request failed", exc_info=exc)
        self._gate.refused("malformed")
        response = exchange.refuse(status, "Internal error" if status >= 500 else "Bad request: this is not valid HTTP")
        response.keep_alive = False
        return response  # type: ignore[return-value] # aiohttp asks of a response no more than it has


class Server(web.Server):
    """Makes connections that know their limits."""

    def __init__(self, handler: Callable[[web.BaseRequest], Any], gate: Gate, limits: ConnectionSettings) -> None:
        """`handler` serves one request."""
        # A call ends with its connection: in 2026-07-28 closing the response stream is how a client cancels.
        super().__init__(handler, handler_cancellation=True)
        self._gate = gate
        self._limits = limits

    def __call__(self) -> RequestHandler:
        """A new connection."""
        limits = self._limits
        return Connection(
            self,
            self._gate,
            limits,
            loop=self._loop,
            access_log=None,
            keepalive_timeout=limits.idle_timeout,
            lingering_time=_LINGER,
            auto_decompress=False,  # it would go on unpacking what was refused, to read it away
            max_line_size=limits.max_header_bytes,
            max_field_size=limits.max_header_bytes,
            max_headers=limits.max_headers,
        )


_LINGER: Final = 2.0
"""Seconds spent on reading away the rest of a refused body, so that the client sees the answer."""
