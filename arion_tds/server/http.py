"""The listening socket of an MCP front: bind, serve, stop in order.

In: a front and an address. Out: the bound address; on stop the streams are told to end and running calls are finished
up to a deadline. A front can be replaced by another while connections stay. Called by listening.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from arion_tds.server.connection import Connection, ConnectionSettings, Gate, Server
from arion_tds.server.front import McpFront
from arion_tds.server.reply import Answered
from arion_tds.server.settings import FrontSettings

__all__ = ["ConnectionSettings", "FrontSettings", "HttpListener", "McpFront"]


class HttpListener:
    """One address. Not reusable after `stop`."""

    def __init__(
        self,
        front: McpFront,
        host: str,
        port: int,
        *,
        reuse_port: bool = False,
        tls: ssl.SSLContext | None = None,
        backlog: int = 1024,
        limits: ConnectionSettings | None = None,
    ) -> None:
        """Port 0: any. `reuse_port`: processes share the address. `backlog`: connections waiting to be taken."""
        self._front = front
        self._host = host
        self._port = port
        self._reuse_port = reuse_port
        self._tls = tls
        self._backlog = backlog
        self._limits = ConnectionSettings() if limits is None else limits
        self._gate = Gate(self._limits, lambda what: self._front.refused(what))  # noqa: PLW0108  (the front of that moment)
        self._running: collections.Counter[McpFront] = collections.Counter()
        self._done = asyncio.Event()
        self._http: Server | None = None
        self._servers: list[asyncio.Server] = []  # one, or after `renew` one for each socket

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._gate)

    async def start(self) -> tuple[str, int]:
        """Bind and serve. Returns the address that was taken; OSError when it cannot be."""
        address = await self.bind()
        await self.serve()
        return address

    async def bind(self, taken: Sequence[socket.socket] = ()) -> tuple[str, int]:
        """Take the address, without taking connections; `taken`: sockets of another listener, in place of new ones."""
        http = self._http = Server(self._serve, self._gate, self._limits)
        if taken:
            self._servers = [await self._listen(http, sock=one) for one in taken]
        else:
            reuse = self._reuse_port or None
            self._servers = [await self._listen(http, host=self._host, port=self._port, reuse_port=reuse)]
        address = self._servers[0].sockets[0].getsockname()
        return address[0], address[1]

    async def serve(self) -> None:
        """Take connections."""
        for server in self._servers:
            await server.start_serving()

    def duplicate(self) -> list[socket.socket]:
        """Our sockets under other descriptors: whoever waits to be taken goes on waiting in the same queue."""
        return [socket.socket(fileno=os.dup(one.fileno())) for server in self._servers for one in server.sockets]

    async def renew(self, tls: ssl.SSLContext) -> None:
        """Shake hands with this context from now on. Connections that are open stay as they are; none is refused."""
        http = self._http
        if http is None or self._tls is None:
            return
        self._tls = tls
        same, old = self.duplicate(), self._servers
        for server in old:
            server.close()
        self._servers = [await self._listen(http, sock=one) for one in same]
        await self.serve()

    async def _listen(self, http: Server, **where: Any) -> asyncio.Server:  # noqa: ANN401  (those of the loop's)
        return await asyncio.get_running_loop().create_server(
            http,
            ssl=self._tls,
            ssl_handshake_timeout=None if self._tls is None else self._limits.header_timeout,
            backlog=self._backlog,
            start_serving=False,
            **where,
        )

    async def _serve(self, request: web.BaseRequest) -> Answered:
        connection, front, running = request.protocol, self._front, self._running
        if isinstance(connection, Connection):
            connection.begun()
        running[front] += 1
        try:
            return await front.handler(request)
        finally:
            running[front] -= 1
            if front is not self._front:
                self._done.set()
            if isinstance(connection, Connection):
                connection.ended()

    def replace(self, front: McpFront) -> None:
        """Serve requests with this front from now on, on the connections that there are too."""
        self._front = front

    async def leave(self, front: McpFront, deadline: float) -> None:
        """End the streams of a front that was replaced, and wait `deadline` seconds for its calls."""
        await front.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline):
                while self._running[front]:
                    self._done.clear()
                    await self._done.wait()
        if not self._running[front]:
            del self._running[front]

    async def stop(self, deadline: float) -> None:
        """Take no new connections, end streams, let calls finish for `deadline` seconds, then cancel them."""
        if self._http is None:
            return
        for server in self._servers:
            server.close()
        await self._front.close()
        self._http.pre_shutdown()
        # Waits that long for running requests, as long again for their connections, then cancels.
        await self._http.shutdown(deadline / 2)
