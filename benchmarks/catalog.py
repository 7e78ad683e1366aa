"""A large catalog from wire to client: `python -m benchmarks.catalog [TOOLS]`.

Prints the gateway's CPU from the first byte on the wire to all tools served, its memory before and after, the CPU of
listing all pages, and for single changes the time and CPU until a client sees them in its list.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from benchmarks import rig
from control_plane_example.mock import MockControlPlane

CHANGES = 60
LISTS = 20


async def main(count: int) -> None:
    async with MockControlPlane() as plane:
        listener, admin = rig.free_port(), rig.free_port()
        settings = rig.config(plane.address, listener=listener, admin=admin)
        started = time.perf_counter()
        async with rig.gateway(settings) as process:
            ready = time.perf_counter() - started
            await plane.connected()
            idle_mb, cpu = process.rss_mb, process.cpu
            plane.hold()
            names = [f"space{number % 50}.tool_{number}" for number in range(count)]
            for number, name in enumerate(names):
                version = await plane.put("McpTool", f"bench/main/{name}", rig.tool(number))
            cpu = process.cpu
            plane.release()
            await plane.acked("McpTool", f"bench/main/{names[-1]}", version, timeout=120)
            client = await rig.Client.connect(f"127.0.0.1:{listener}")
            await client.initialize()
            await until_total(client, count)
            served = process.cpu - cpu
            figures: dict[str, Any] = {
                "tools": count,
                "start_to_ready_s": round(ready, 3),
                "idle_rss_mb": round(idle_mb, 1),
                "wire_to_served_cpu_s": round(served, 3),
                "rss_mb": round(process.rss_mb, 1),
            }
            figures |= await lists(client, process)
            for coding in ("gzip", "zstd"):  # what clients' HTTP libraries ask for
                client.extra = f"accept-encoding: {coding}\r\n"
                figures |= {f"{coding}_{name}": value for name, value in (await lists(client, process)).items()}
            client.extra = ""
            figures |= await changes(client, process, plane)
            figures["rss_after_changes_mb"] = round(process.rss_mb, 1)
            client.close()
        rig.report("catalog", **figures)


async def until_total(client: rig.Client, count: int) -> None:
    """Wait until the search of the listener counts `count` tools."""
    async with asyncio.timeout(120):
        while True:
            _, _, body = await client.post("/mcp/search", b'{"query":"","limit":1}')
            if json.loads(body)["total"] == count:
                return
            await asyncio.sleep(0.01)


async def lists(client: rig.Client, process: rig.Process) -> dict[str, Any]:
    """CPU of walking all pages, after one walk that is not counted."""
    cpu, size, pages = 0.0, 0, 0
    for walk in range(LISTS + 1):
        if walk == 1:
            cpu, size, pages = process.cpu, client.received, 0
        cursor: str | None = None
        while True:
            body = await client.call("tools/list", {} if cursor is None else {"cursor": cursor})
            pages += 1
            at = body.rfind(b'"nextCursor":"')
            if at < 0:
                break
            cursor = body[at + 14 : body.index(b'"', at + 14)].decode()
    return {
        "list_all_cpu_ms": round((process.cpu - cpu) / LISTS * 1e3, 3),
        "list_pages": pages // LISTS,
        "list_bytes": (client.received - size) // LISTS,
    }


async def changes(client: rig.Client, process: rig.Process, plane: MockControlPlane) -> dict[str, Any]:
    """Change one tool again and again: its CPU, and how long until the client's own call shows the new description."""
    seen: list[float] = []
    await client.post("/mcp/search", b'{"query":"echo","limit":1}')  # loads what ranks: part of no change
    cpu = process.cpu
    for number in range(CHANGES):
        name, spec, _ = changed(number)
        version = await plane.put("McpTool", name, spec)
        await plane.acked("McpTool", name, version, timeout=10)
    spent = process.cpu - cpu
    for number in range(CHANGES):
        name, spec, marker = changed(number)
        started = time.perf_counter()
        await plane.put("McpTool", name, spec)
        while True:
            query = name.rpartition("/")[2]
            body = await client.post("/mcp/search", json.dumps({"query": query, "limit": 1}).encode())
            if marker.encode() in body[2]:
                break
            await asyncio.sleep(0.0005)
        seen.append(time.perf_counter() - started)
    one = process.cpu
    for _ in range(200):
        await client.post("/mcp/search", json.dumps({"query": "space1.tool_1", "limit": 1}).encode())
    poll = (process.cpu - one) / 200
    return {
        "change_visible_p50_ms": round(rig.percentile(seen, 0.5) * 1e3, 2),
        "change_visible_p99_ms": round(rig.percentile(seen, 0.99) * 1e3, 2),
        "change_cpu_ms": round(spent / CHANGES * 1e3, 3),
        "search_cpu_ms": round(poll * 1e3, 3),
    }


def changed(number: int) -> tuple[str, dict[str, Any], str]:
    """Resource name and spec of a tool with a description that it never had, and that description."""
    spec = rig.tool(number)
    spec["description"] = f"changed {number} times {time.monotonic_ns()}"
    return f"bench/main/space{number % 50}.tool_{number}", spec, spec["description"]


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
