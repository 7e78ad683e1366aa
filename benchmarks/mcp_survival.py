"""Three MCP servers under load, each in turn killed, frozen and slow: `python -m benchmarks.mcp_survival [SECONDS]`.

For each trouble: what calls to the other two lost, how their p99 compares with the quiet time just before, and how long
after the end of the trouble the troubled one's calls went well again. Called by tests/e2e too, which asserts losses.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import signal
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from benchmarks import mcp_server, rig
from control_plane_example.mock import MockControlPlane

NAMES = ("a", "b", "c")
CALLERS = 4
"""Callers for each server, each on a connection of its own and without a pause."""

TROUBLES = ("killed", "frozen", "slow")
TIMEOUT = 1.0
BACK_SECONDS = 20.0


@dataclasses.dataclass
class Upstream:
    """One server, whatever becomes of its process."""

    name: str
    port: int
    process: rig.Process | None = None

    async def start(self) -> None:
        self.process = await rig.spawn("-m", "benchmarks.mcp_server", str(self.port), "5")
        await mcp_server.listening(self.port)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.child.send_signal(number)

    async def begin(self, trouble: str) -> None:
        assert self.process is not None
        number = {"killed": signal.SIGKILL, "frozen": signal.SIGSTOP, "slow": signal.SIGUSR1}[trouble]
        self.signal(number)
        if trouble == "killed":
            await self.process.child.wait()

    async def end(self, trouble: str) -> None:
        if trouble == "killed":
            await self.start()
        else:
            self.signal(signal.SIGCONT if trouble == "frozen" else signal.SIGUSR2)


@dataclasses.dataclass
class Load:
    """Calls of all servers without a pause; (when, seconds, well) of each by server."""

    address: str
    done: dict[str, list[tuple[float, float, bool]]] = dataclasses.field(
        default_factory=lambda: {name: [] for name in NAMES}
    )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._drive(name)) for name in NAMES for _ in range(CALLERS)]
            yield
            for task in tasks:
                task.cancel()

    async def _drive(self, name: str) -> None:
        client = await rig.Client.connect(self.address)
        try:
            await client.initialize()
            while True:
                begun = time.perf_counter()
                body = await client.call("tools/call", {"name": f"{name}.tool_0", "arguments": {"message": "x"}})
                now = time.perf_counter()
                self.done[name].append((now, now - begun, b'"isError":true' not in body))
        finally:
            client.close()

    def between(self, name: str, begin: float, end: float) -> list[tuple[float, float, bool]]:
        return [one for one in self.done[name] if begin <= one[0] < end]

    async def well(self, name: str) -> float:
        """When the next call that is begun from now on goes well."""
        begun = time.perf_counter()
        async with asyncio.timeout(BACK_SECONDS):
            while True:
                for when, seconds, well in reversed(self.done[name]):
                    if when - seconds < begun:
                        break
                    if well:
                        return when
                await asyncio.sleep(0.01)


async def run(seconds: float) -> dict[str, dict[str, float]]:
    """By trouble: `lost` and `calls` of the others, their p99 before and during, `back_s` of the troubled one."""
    figures: dict[str, dict[str, float]] = {}
    async with contextlib.AsyncExitStack() as stack:
        plane = await stack.enter_async_context(MockControlPlane())
        upstreams = [Upstream(name, rig.free_port()) for name in NAMES]
        for one in upstreams:
            await one.start()
            stack.push_async_callback(_stop, one)
        listener, admin = rig.free_port(), rig.free_port()
        settings = rig.config(plane.address, listener=listener, admin=admin)
        settings["listeners"][0]["mcp_gateway"]["upstream_timeout"] = f"{TIMEOUT}s"
        await stack.enter_async_context(rig.gateway(settings))
        for one in upstreams:
            await plane.put("McpDynamicServer", f"bench/main/{one.name}", mcp_server.spec(one.port, one.name))
            await plane.acked("McpDynamicServer", f"bench/main/{one.name}")
        load = Load(f"127.0.0.1:{listener}")
        async with load.running():
            await asyncio.sleep(seconds)
            for number, trouble in enumerate(TROUBLES * len(NAMES)):
                troubled = upstreams[number // len(TROUBLES)]
                figures[f"{troubled.name} {trouble}"] = await _trouble(load, troubled, trouble, seconds)
            client = await rig.Client.connect(f"127.0.0.1:{listener}")
            await client.initialize()
            listed = json.loads(await client.call("tools/list", {}))["result"]["tools"]
            client.close()
            figures["all"] = {"listed": len(listed)}
    return figures


async def _trouble(load: Load, troubled: Upstream, trouble: str, seconds: float) -> dict[str, float]:
    quiet = time.perf_counter()
    await asyncio.sleep(seconds)
    begun = time.perf_counter()
    await troubled.begin(trouble)
    await asyncio.sleep(max(seconds, TIMEOUT * 1.2 if trouble == "frozen" else 0))
    over = time.perf_counter()
    await troubled.end(trouble)
    back = await load.well(troubled.name)
    others = [name for name in NAMES if name != troubled.name]
    before = [one for name in others for one in load.between(name, quiet, begun)]
    during = [one for name in others for one in load.between(name, begun, back)]
    return {
        "lost": sum(not well for _, _, well in during),
        "calls": len(during),
        "p99_before_ms": round(rig.percentile([one[1] for one in before], 0.99) * 1e3, 1),
        "p99_during_ms": round(rig.percentile([one[1] for one in during], 0.99) * 1e3, 1),
        "failed_of_troubled": sum(not one[2] for one in load.between(troubled.name, begun, back)),
        "back_s": round(back - over, 2),
    }


async def _stop(one: Upstream) -> None:
    if one.process is not None and one.process.child.returncode is None:
        one.signal(signal.SIGCONT)
        await one.process.stop()


async def main(seconds: float) -> None:
    figures: dict[str, Any] = await run(seconds)
    rig.report("mcp_survival", **figures)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0))
