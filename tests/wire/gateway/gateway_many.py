"""Several gateways of one control plane, and what spreads clients over them: a TCP proxy that takes turns.

Used by test_gateway_many.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
from gateway_house import BOUND, Spec, Tenant, echoing, listener, settings

from arion_tds import app
from arion_tds.config import judging
from control_plane_example.mock import MockControlPlane


@dataclasses.dataclass
class Fleet:
    """The gateways by name; `front` is the client's view through the proxy, one connection per request."""

    plane: MockControlPlane
    gateways: dict[str, app.Gateway]
    front: Tenant
    http: aiohttp.ClientSession
    stacks: dict[str, contextlib.AsyncExitStack]

    def tenant(self, name: str) -> Tenant:
        """One gateway asked directly."""
        return Tenant(f"http://{self.gateways[name].bound['a']}", self.http)

    async def everywhere(self, tool: str, text: str) -> None:
        """Wait until every gateway lists the tool with that description."""
        for gateway in self.gateways.values():
            (catalog,) = gateway.catalogs
            changed = asyncio.Event()
            stop = catalog.published.listen(lambda _old, _new, changed=changed: changed.set())  # type: ignore[misc]
            async with asyncio.timeout(BOUND):
                while (held := catalog.published.view.find(tool)) is None or held.tool.description != text:
                    changed.clear()
                    await changed.wait()
            stop()

    async def stop(self, name: str) -> None:
        """End one gateway in order."""
        del self.gateways[name]
        await self.stacks.pop(name).aclose()


@contextlib.asynccontextmanager
async def fleet(scratch: Path, *names: str, address: str = "127.0.0.1:0", **more: Any) -> AsyncIterator[Fleet]:
    """Gateways that share a session key, ready, behind the proxy; `address` other than port 0 is theirs in common."""
    key = scratch / "session.key"
    key.write_bytes(b"k" * 32)
    async with contextlib.AsyncExitStack() as stack:
        plane = await stack.enter_async_context(MockControlPlane())
        backend = await stack.enter_async_context(echoing())
        http = await stack.enter_async_context(aiohttp.ClientSession())
        once = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True, limit=0))
        )
        one: Spec = listener(address=address, **more)
        config = settings(plane.address, backend, [one], sessions={"key": {"file": str(key)}})
        gateways: dict[str, app.Gateway] = {}
        stacks: dict[str, contextlib.AsyncExitStack] = {}
        for name in names:
            stacks[name] = await stack.enter_async_context(contextlib.AsyncExitStack())
            judged = judging.judge({**config, "node": {"id": name}})
            gateways[name] = await stacks[name].enter_async_context(app.running(judged))
            ads = gateways[name].ads
            assert ads is not None
            async with asyncio.timeout(BOUND):
                await ads.wait_ready()
        bound = [gateway.bound["a"] for gateway in gateways.values()]
        origin = await stack.enter_async_context(turns(bound))
        yield Fleet(plane, gateways, Tenant(origin, once), http, stacks)


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
    """A TCP proxy: each connection to the next target that takes it; its origin."""
    order = itertools.cycle(targets)
    ends: set[_End] = set()
    loop = asyncio.get_running_loop()

    async def onward(near: _End) -> None:
        for _ in targets:
            host, _, port = next(order).rpartition(":")
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
