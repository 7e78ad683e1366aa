"""What grows with what: `python -m benchmarks.growth [changes] [scopes] [streams] [updates] [--small]`.

Without a name all four, as one table. `changes`: CPU of one changed tool in catalogs of 100 to 50,000 tools (it must
not grow with them), and memory per tool. `scopes`: memory and CPU of 1 to 1,000 listeners with a scope each. `streams`:
memory of 1 to 5,000 idle notification streams (of the gateway's process: the kernel's buffers are not in it), and CPU
and time until the last has heard of a change. `updates`: 1 to 1,000 updates a second, of one tool and of many: CPU of
each, how often a client hears of it, and whether the newest state is what stands at the end.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from benchmarks import holding, rig
from control_plane_example.mock import MockControlPlane

TOOLS = (100, 1_000, 10_000, 50_000)
SCOPES = (1, 10, 100, 1_000)
STREAMS = (1, 100, 1_000, 5_000)
RATES = (1, 10, 100, 1_000)
SECONDS = 4
CHANGES = 100


async def changes(sizes: tuple[int, ...]) -> dict[str, Any]:
    """By tools in the catalog: CPU of one change, of all that is done for it until its ACK."""
    found: dict[str, Any] = {}
    for count in sizes:
        async with MockControlPlane() as plane:
            settings = _settings(plane.address)
            async with rig.gateway(settings) as process:
                await plane.connected()
                before = process.rss_mb
                await _fill(plane, count)
                held = process.rss_mb - before
                await _change(plane, count, 20)  # what is made once is made
                cpu = process.cpu
                await _change(plane, count, CHANGES)
                found[str(count)] = {
                    "change_cpu_ms": round((process.cpu - cpu) / CHANGES * 1e3, 3),
                    "tool_kb": round(held * 1e3 / count, 2),
                }
    return found


async def scopes(sizes: tuple[int, ...]) -> dict[str, Any]:
    """By scopes: memory of each more, CPU of starting it and of one change in one of them."""
    found: dict[str, Any] = {}
    first = 0.0
    for count in sizes:
        async with MockControlPlane() as plane:
            settings = _settings(plane.address)
            settings["listeners"] = [_listener(number, 0) for number in range(count)]
            for number in range(count):
                await plane.put("McpTool", f"bench{number}/main/space1.tool_1", rig.tool(1))
            async with rig.gateway(settings) as process:
                await plane.acked("McpTool", f"bench{count - 1}/main/space1.tool_1", timeout=60)
                memory, start = process.rss_mb, process.cpu
                first = first or memory
                for number in range(CHANGES):
                    name = f"bench{number % count}/main/space1.tool_1"
                    version = await plane.put("McpTool", name, _changed(1, number))
                    await plane.acked("McpTool", name, version)
                found[str(count)] = {
                    "scope_kb": round((memory - first) * 1e3 / max(1, count - 1), 1),
                    "change_cpu_ms": round((process.cpu - start) / CHANGES * 1e3, 3),
                    "start_cpu_ms": round(start * 1e3),
                    "rss_mb": round(memory, 1),
                }
    return found


async def streams(sizes: tuple[int, ...]) -> dict[str, Any]:
    """By open streams: memory of each, and what it takes until every one has heard of a change."""
    found: dict[str, Any] = {}
    async with MockControlPlane() as plane:
        for count in sizes:
            settings = _settings(plane.address)
            address = settings["listeners"][0]["address"]
            async with rig.gateway(settings) as process:
                await plane.put("McpTool", "bench0/main/space1.tool_1", rig.tool(1))
                await plane.acked("McpTool", "bench0/main/space1.tool_1")
                async with holding.streams(address, 1):
                    pass
                before = process.rss_mb
                async with holding.streams(address, count) as held:
                    memory = (process.rss_mb - before) * 1e3 / count
                    cpu, began = process.cpu, time.perf_counter()
                    await asyncio.sleep(2)
                    idle = (process.cpu - cpu) / (time.perf_counter() - began)
                    one, lasts, firsts = 0.0, [], []
                    for number in range(8):
                        cpu, began = process.cpu, time.perf_counter()
                        await plane.put("McpTool", "bench0/main/space1.tool_1", _changed(1, number))
                        told = await held.next("told")
                        lasts.append(told["last"] - began)
                        firsts.append(told["first"] - began)
                        await asyncio.sleep(0.2)
                        one += process.cpu - cpu
                    found[str(count)] = {
                        "stream_kb": round(memory, 1),
                        "stream_kb_after_8_changes": round((process.rss_mb - before) * 1e3 / count, 1),
                        "idle_cpu_share": round(idle, 4),
                        "change_cpu_ms": round(one / 8 * 1e3, 2),
                        "first_told_p50_ms": round(rig.percentile(firsts, 0.5) * 1e3, 1),
                        "last_told_p50_ms": round(rig.percentile(lasts, 0.5) * 1e3, 1),
                    }
    return found


async def updates(rates: tuple[int, ...], count: int) -> dict[str, Any]:
    """By updates a second, in a catalog of `count` tools: CPU of each and what one client hears."""
    found: dict[str, Any] = {}
    async with MockControlPlane() as plane:
        settings = _settings(plane.address)
        address = settings["listeners"][0]["address"]
        async with rig.gateway(settings) as process:
            await plane.connected()
            await _fill(plane, count)
            await _change(plane, count, 20)
            async with holding.streams(address, 1) as held:
                for rate in rates:
                    for name, width in (("same", 1), ("different", count)):
                        found[f"{rate}_{name}"] = await _storm(plane, process, held, rate, width)
    return found


async def _storm(
    plane: MockControlPlane, process: rig.Process, held: holding.Held, rate: int, width: int
) -> dict[str, Any]:
    """`rate` updates a second for a while, of `width` tools in turn."""
    total = rate * SECONDS
    cpu, began = process.cpu, time.perf_counter()
    version = name = marker = ""
    for number in range(total):
        at = number % width
        name, spec = f"bench0/main/space{at % 50}.tool_{at}", _changed(at, number)
        marker = spec["description"]
        version = await plane.put("McpTool", name, spec)
        ahead = began + (number + 1) / rate - time.perf_counter()
        await asyncio.sleep(max(0.0, ahead))
    took = time.perf_counter() - began
    await plane.acked("McpTool", name, version, timeout=60)
    spent = process.cpu - cpu
    heard, last = 0, 0.0
    try:
        while True:
            told = await held.next("told", 0.5)
            heard, last = heard + 1, told["last"]
    except TimeoutError:
        pass
    client = await rig.Client.connect(held.address)
    query = json.dumps({"query": name.rpartition("/")[2], "limit": 1}).encode()
    _, _, body = await client.post("/mcp/search", query)
    client.close()
    return {
        "sent_per_s": round(total / took),
        "update_cpu_ms": round(spent / total * 1e3, 3),
        "cpu_share": round(spent / took, 3),
        "list_changed_per_s": round(heard / took, 1),
        "newest_state_won": marker.encode() in body,
        "last_told_after_last_sent_ms": round((last - began - took) * 1e3, 1),
    }


async def _fill(plane: MockControlPlane, count: int) -> None:
    plane.hold()
    version = name = ""
    for number in range(count):
        name = f"bench0/main/space{number % 50}.tool_{number}"
        version = await plane.put("McpTool", name, rig.tool(number))
    plane.release()
    await plane.acked("McpTool", name, version, timeout=120)


async def _change(plane: MockControlPlane, count: int, times: int) -> None:
    """One tool after the other, each ACKed before the next."""
    for number in range(times):
        at = number * 7 % count
        name = f"bench0/main/space{at % 50}.tool_{at}"
        version = await plane.put("McpTool", name, _changed(at, number))
        await plane.acked("McpTool", name, version)


def _changed(number: int, times: int) -> dict[str, Any]:
    return {**rig.tool(number), "description": f"Changed {times} times, as of {time.monotonic_ns()}"}


def _settings(plane: str) -> dict[str, Any]:
    settings = rig.config(plane, listener=rig.free_port(), admin=rig.free_port())
    settings["listeners"] = [_listener(0, rig.free_port())]
    settings["clusters"] = [{"name": "echo", "endpoints": ["http://127.0.0.1:1"]}]
    return settings


def _listener(number: int, port: int) -> dict[str, Any]:
    return {
        "name": f"bench{number}",
        "address": f"127.0.0.1:{port}",
        "limits": {"max_connections": 10_000, "max_streams_per_caller": 10_000},
        "mcp_gateway": {
            "server_info": {"name": f"bench{number}", "version": "1"},
            "tools_mode": {},
            "tds": {"config_name": "main"},
        },
    }


async def main(chosen: list[str], *, small: bool) -> None:
    cut = 2 if small else 4
    figures: dict[str, Any] = {}
    if "changes" in chosen:
        figures["by_tools"] = await changes(TOOLS[:cut])
    if "scopes" in chosen:
        figures["by_scopes"] = await scopes(SCOPES[:cut])
    if "streams" in chosen:
        figures["by_streams"] = await streams(STREAMS[:cut])
    if "updates" in chosen:
        figures["by_updates_per_second"] = await updates(RATES[:cut], TOOLS[cut // 2])
    rig.report("growth", **figures)


if __name__ == "__main__":
    names = [one for one in sys.argv[1:] if not one.startswith("--")]
    asyncio.run(main(names or ["changes", "scopes", "streams", "updates"], small="--small" in sys.argv))
