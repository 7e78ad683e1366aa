"""Several gateways of one control plane, in this process, behind a proxy that takes turns.

Used by test_gateway_many.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
from gateway_house import BOUND, Spec, Tenant, echoing, listener, settings
from taking_turns import turns

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
