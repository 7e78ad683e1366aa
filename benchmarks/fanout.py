"""One change to many gateways: `python -m benchmarks.fanout [GATEWAYS…]` (default 100 500).

The example control plane as a process of its own; every gateway is simulated by a delta stream on a connection of its
own that asks for all four types of one scope and ACKs what it gets. Measured, by number of gateways: CPU of the control
plane for each gateway that hears of a change, and the time from the PUT until the median, the 99th and the last gateway
have it; CPU of a change that concerns one gateway among them all; memory of a stream; and a storm, in which all of them
connect at once and are sent 1,000 tools each: CPU, memory of a stream then, and the most memory that there ever was;
and the same when they have these tools already, as after a restart of the control plane.
Times contain the simulation, which runs on the same cores.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any

import aiohttp
import grpc
import grpc.aio
from envoy.service.discovery.v3 import discovery_pb2

from benchmarks import rig
from control_plane_example.documents import API_VERSION, CATALOG, TYPE_URLS

SIZES = (100, 500)
NOTHING: Mapping[str, str] = {}
TOOLS = 1000
ROUNDS = 20
SCOPE = "fleet/main"
SETTLE = 1.0
"""Seconds until what was needed for a moment is given back."""
PATIENCE = 60
METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 << 20))


class Gateway:
    """One simulated gateway: a stream, and when it last heard of something."""

    def __init__(self, address: str, name: str, scope: str, have: Mapping[str, str]) -> None:
        """`have`: the versions of tools that it says it has."""
        self._channel = grpc.aio.insecure_channel(address, OPTIONS)
        self._call: Any = self._channel.stream_stream(METHOD)()
        self._name, self._scope, self._have = name, scope, have
        self.heard = asyncio.Event()
        self.at = 0.0
        self.responses = self.resources = 0

    async def run(self) -> None:
        """Ask for everything, then ACK whatever comes; until cancelled."""
        try:
            for number, kind in enumerate(CATALOG):
                request = discovery_pb2.DeltaDiscoveryRequest(type_url=TYPE_URLS[kind], resource_names_subscribe=["*"])
                if kind == "McpTool":
                    request.initial_resource_versions.update(self._have)
                if number == 0:
                    request.node.id, request.node.cluster = self._name, "arion"
                    request.node.metadata.update({"scopes": [self._scope]})
                await self._call.write(request.SerializeToString())
            while (data := await self._call.read()) is not grpc.aio.EOF:
                now = time.perf_counter()
                response = discovery_pb2.DeltaDiscoveryResponse.FromString(data)
                ack = discovery_pb2.DeltaDiscoveryRequest(type_url=response.type_url, response_nonce=response.nonce)
                await self._call.write(ack.SerializeToString())
                self.at = now
                self.responses += 1
                self.resources += len(response.resources)
                self.heard.set()
        finally:
            await self._channel.close()


class Plane:
    """The control plane's process and its HTTP side."""

    def __init__(self, process: rig.Process, http: aiohttp.ClientSession) -> None:
        self.process = process
        self._http = http

    async def put(self, *numbers: int, scope: str = SCOPE) -> None:
        """Publish tools of about 1.5 KB."""
        documents = [
            {
                "apiVersion": API_VERSION,
                "kind": "McpTool",
                "metadata": {"name": f"{scope}/space{number % 50}.tool_{number}"},
                "spec": {**rig.tool(number), "description": f"Put at {time.perf_counter_ns()}"},
            }
            for number in numbers
        ]
        async with self._http.put("/resources", data=json.dumps(documents)) as response:
            response.raise_for_status()

    async def versions(self) -> dict[str, str]:
        """Of every tool by its full id."""
        async with self._http.get("/resources") as response:
            return {one["name"]: one["version"] for one in await response.json()}


async def until(gateways: list[Gateway], responses: int, resources: int) -> None:
    """Wait until each has got so much since it connected, and ACKed it."""
    async with asyncio.timeout(PATIENCE):
        for one in gateways:
            while one.responses < responses or one.resources < resources:
                one.heard.clear()
                await one.heard.wait()


async def told(gateways: list[Gateway], change: Coroutine[Any, Any, None]) -> list[float]:
    """Seconds from the start of the change until each of them had it, in order."""
    for one in gateways:
        one.heard.clear()
    begun = time.perf_counter()
    async with asyncio.timeout(PATIENCE):
        await change
        for one in gateways:
            await one.heard.wait()
    return sorted(one.at - begun for one in gateways)


@contextlib.asynccontextmanager
async def running(tools: int) -> AsyncIterator[tuple[Plane, Callable[..., Gateway]]]:
    """A control plane with so many tools, and what connects one gateway more by name, scope and what it has."""
    xds, http = (f"127.0.0.1:{rig.free_port()}" for _ in range(2))
    process = await rig.spawn("-m", "control_plane_example", "--address", xds, "--http", http)
    try:
        async with aiohttp.ClientSession(f"http://{http}") as session, asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[None]] = []

            def connect(name: str, scope: str, have: Mapping[str, str] = NOTHING) -> Gateway:
                made = Gateway(xds, name, scope, have)
                tasks.append(group.create_task(made.run()))
                return made

            await _up(session)
            plane = Plane(process, session)
            await plane.put(*range(tools))
            yield plane, connect
            for task in tasks:
                task.cancel()
    finally:
        await process.stop()


async def changes(count: int) -> dict[str, Any]:
    """One change to all of them, and one to one of them."""
    async with running(1) as (plane, connect):
        await until([connect("first", SCOPE)], len(CATALOG), 1)
        before = plane.process.rss_mb
        gateways = [connect(f"gateway-{number}", SCOPE) for number in range(count)]
        await until(gateways, len(CATALOG), 1)
        await asyncio.sleep(SETTLE)
        held = plane.process.rss_mb - before

        cpu = plane.process.cpu
        times = [await told(gateways, plane.put(0)) for _ in range(ROUNDS)]
        to_all = (plane.process.cpu - cpu) / ROUNDS / count

        lonely = connect("other", "other/main")
        await until([lonely], len(CATALOG), 0)
        cpu = plane.process.cpu
        for _ in range(ROUNDS):
            await told([lonely], plane.put(0, scope="other/main"))
        to_one = (plane.process.cpu - cpu) / ROUNDS
    arrivals = {"p50_ms": 0.5, "p99_ms": 0.99, "last_ms": 1.0}
    return {
        "cpu_us_per_gateway": round(to_all * 1e6),
        **{
            name: round(1e3 * rig.percentile([rig.percentile(one, share) for one in times], 0.5))
            for name, share in arrivals.items()
        },
        "change_for_one_cpu_ms": round(to_one * 1e3, 2),
        "stream_kb": round(held * 1e3 / count),
    }


async def storm(count: int) -> dict[str, Any]:
    """All of them connect at once, and are sent 1,000 tools each."""
    async with running(TOOLS) as (plane, connect):
        await until([connect("first", SCOPE)], len(CATALOG), TOOLS)
        await asyncio.sleep(SETTLE)
        before, cpu, begun = plane.process.rss_mb, plane.process.cpu, time.perf_counter()
        gateways = [connect(f"gateway-{number}", SCOPE) for number in range(count)]
        await until(gateways, len(CATALOG), TOOLS)
        seconds, spent = time.perf_counter() - begun, plane.process.cpu - cpu
        await asyncio.sleep(SETTLE)
        return {
            "seconds": round(seconds, 2),
            "cpu_ms_per_gateway": round(spent / count * 1e3, 2),
            "stream_kb": round((plane.process.rss_mb - before) * 1e3 / count),
            "peak_mb": round(_peak(plane.process)),
        }


async def again(count: int) -> dict[str, Any]:
    """All of them connect, and have 1,000 tools already: after a restart of the control plane."""
    async with running(TOOLS) as (plane, connect):
        have = await plane.versions()
        await until([connect("first", SCOPE, have)], len(CATALOG), 0)
        cpu, begun = plane.process.cpu, time.perf_counter()
        gateways = [connect(f"gateway-{number}", SCOPE, have) for number in range(count)]
        await until(gateways, len(CATALOG), 0)
        assert not any(one.resources for one in gateways)
        return {
            "seconds": round(time.perf_counter() - begun, 2),
            "cpu_ms_per_gateway": round((plane.process.cpu - cpu) / count * 1e3, 2),
        }


async def measured(count: int) -> dict[str, Any]:
    """With so many gateways."""
    return {**await changes(count), "storm": await storm(count), "again": await again(count)}


def _peak(process: rig.Process) -> float:
    status = pathlib.Path(f"/proc/{process.child.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1e3


async def _up(http: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                async with http.get("/status"):
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)


async def main() -> None:
    # The control plane's allocator gives back what it does not need, so that memory shows what is held.
    os.environ.update(MALLOC_MMAP_THRESHOLD_="131072", MALLOC_TRIM_THRESHOLD_="131072")
    sizes = tuple(int(one) for one in sys.argv[1:]) or SIZES
    rig.report("fanout", **{str(count): await measured(count) for count in sizes})


if __name__ == "__main__":
    asyncio.run(main())
