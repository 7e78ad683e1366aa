"""A TCP proxy that gives each connection to the next of its targets: a load balancer without stickiness.

Used by tests of several gateways, in one process (wire) and in several (e2e).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Sequence


class _End(asyncio.Protocol):
    """One side of a proxied connection: what it receives goes to the other side; they end together."""

    def __init__(self, made: Callable[[_End], None], ends: set[_End]) -> None:
        self.other: _End | None = None
        self.transport: asyncio.Transport
        self._made = made
        self._ends = ends
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._ends.add(self)
        self._made(self)

    def join(self, other: _End) -> None:
        self.other, other.other = other, self
        other.transport.writelines(self._early)
        if self.transport.is_closing():
            other.transport.close()

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early.append(data)
        else:
            self.other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ends.discard(self)
        if self.other is not None:
            self.other.transport.close()


@contextlib.asynccontextmanager
async def turns(targets: Sequence[str]) -> AsyncIterator[str]:
    """A TCP proxy: each connection to the target whose turn it is, or the next that takes it; its origin."""
    order = itertools.cycle(range(len(targets)))
    ends: set[_End] = set()
    loop = asyncio.get_running_loop()

    async def onward(near: _End) -> None:
        first = next(order)
        for target in (*targets[first:], *targets[:first]):
            host, _, port = target.rpartition(":")
            with contextlib.suppress(OSError):
                _, far = await loop.create_connection(lambda: _End(lambda _: None, ends), host, int(port))
                near.join(far)
                return
        near.transport.close()

    async with asyncio.TaskGroup() as group:

        def accept(near: _End) -> None:
            group.create_task(onward(near))

        server = await loop.create_server(lambda: _End(accept, ends), "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for end in list(ends):
                end.transport.abort()
