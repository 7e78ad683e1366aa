"""From an origin to a connection: name, addresses, TCP, TLS, all within one time limit.

In: an origin (`https://host:port`), a TLS context, a protocol. Out: the connected protocol, or the OSError that says
what failed: TimeoutError, socket.gaierror (the name), ssl.SSLError (TLS), `Forbidden`. Used by connections.

Addresses of a name take turns, connection by connection; where one does not answer at once the next is tried beside it
(RFC 8305). What a name resolved to is kept for a few seconds: a burst of connections asks once.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final, TypeVar

import aiohappyeyeballs
from yarl import URL

_RESOLVED: Final = 10.0
"""Seconds for which addresses of a name are kept."""

_NEXT_ADDRESS: Final = 0.25
"""Seconds without an answer after which the next address is tried, too."""

TLS_GOODBYE: Final = 2.0
"""Seconds that the end of a TLS connection may take."""

_KEEPALIVE_IDLE: Final = 30

P = TypeVar("P", bound=asyncio.Protocol)


class Forbidden(OSError):  # noqa: N818 - it is a verdict of ours, among errors of the system's
    """No address of the name is one that may be connected to. Its text says why."""


class Dialer:
    """Makes connections to one origin. `authority` is what its Host header says."""

    def __init__(
        self,
        origin: str,
        *,
        tls: ssl.SSLContext | None,
        sni: str | None = None,
        timeout: float,
        problem: Callable[[str], str | None] | None = None,
    ) -> None:
        """`sni`: sent and verified in place of the host. `timeout` in seconds. `problem`: why not to this address."""
        url = URL(origin)
        self.authority = url.host_port_subcomponent or ""
        self._host = url.raw_host or ""
        self._port = url.port or 0
        self._tls = tls if url.scheme == "https" else None
        self._server_name = None if self._tls is None else sni or self._host.rstrip(".")
        self._timeout = timeout
        self._problem = problem
        self._asking: asyncio.Task[None] | None = None
        self._addresses: list[aiohappyeyeballs.AddrInfoType] = []
        self._until = 0.0
        self._turn = 0

    async def dial(self, protocol: Callable[[], P]) -> P:
        """A connection, made for that protocol."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._timeout):
            made = await aiohappyeyeballs.start_connection(
                self._permitted(await self._resolved(loop)),
                happy_eyeballs_delay=_NEXT_ADDRESS,
                interleave=1,
                loop=loop,
                socket_factory=_socket,
            )
            try:
                _, connected = await loop.create_connection(
                    protocol,
                    sock=made,
                    ssl=self._tls,
                    server_hostname=self._server_name,
                    ssl_shutdown_timeout=None if self._tls is None else TLS_GOODBYE,
                )
            except BaseException:
                made.close()
                raise
            return connected

    async def _resolved(self, loop: asyncio.AbstractEventLoop) -> list[aiohappyeyeballs.AddrInfoType]:
        """The addresses, another one first each time. Who needs them meanwhile hears the same answer, or failure."""
        if loop.time() >= self._until:
            self._asking = self._asking or loop.create_task(self._ask(loop))
            await asyncio.shield(self._asking)
        turn = self._turn % max(1, len(self._addresses))
        self._turn = turn + 1
        return self._addresses[turn:] + self._addresses[:turn]

    async def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._addresses = [*await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)]
            self._until = loop.time() + _RESOLVED
        finally:
            self._asking = None

    def _permitted(self, addresses: list[aiohappyeyeballs.AddrInfoType]) -> list[aiohappyeyeballs.AddrInfoType]:
        """Judged here, with what is connected to next: whatever a name resolved to before or resolves to later."""
        if self._problem is None:
            return addresses
        judged = [(one, self._problem(str(one[4][0]))) for one in addresses]
        permitted = [one for one, why in judged if why is None]
        if judged and not permitted:
            raise Forbidden(judged[0][1])
        return permitted


def _socket(address: aiohappyeyeballs.AddrInfoType) -> socket.socket:
    family, kind, proto, _, _ = address
    made = socket.socket(family, kind, proto)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE)
    return made
