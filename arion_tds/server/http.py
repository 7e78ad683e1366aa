"""The listening socket of an MCP front: bind, serve, stop in order.

In: a front and an address. Out: the bound address; on stop the streams are told to end and running calls are finished
up to a deadline. Called by app.
"""

from __future__ import annotations

import asyncio
import ssl

from aiohttp import web

from arion_tds.server.connection import Connection, ConnectionSettings, Gate, Server
from arion_tds.server.front import McpFront
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
        self._gate = Gate(self._limits, front.refused)
        self._http: Server | None = None
        self._sockets: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._gate)

    async def start(self) -> tuple[str, int]:
        """Bind and serve. Returns the address that was taken; OSError when it cannot be."""
        self._http = Server(self._serve, self._gate, self._limits)
        self._sockets = await asyncio.get_running_loop().create_server(
            self._http,
            self._host,
            self._port,
            reuse_port=self._reuse_port or None,
            ssl=self._tls,
            ssl_handshake_timeout=None if self._tls is None else self._limits.header_timeout,
            backlog=self._backlog,
        )
        address = self._sockets.sockets[0].getsockname()
        return address[0], address[1]

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        if not isinstance(connection, Connection):
            return await self._front.handler(request)
        connection.begun()
        try:
            return await self._front.handler(request)
        finally:
            connection.ended()

    async def stop(self, deadline: float) -> None:
        """Take no new connections, end streams, let calls finish for `deadline` seconds, then cancel them."""
        if self._sockets is None or self._http is None:
            return
        self._sockets.close()
        await self._front.close()
        self._http.pre_shutdown()
        # Waits that long for running requests, as long again for their connections, then cancels.
        await self._http.shutdown(deadline / 2)
