"""How long the operator's pages hold the event loop with a full catalog: `python -m benchmarks.admin [TOOLS]`.

The gateway runs in this process, with as many resources accepted and as many rejected as it has tools. Each page is
asked for five times while a task ticks at every turn of the loop. Prints, per page, the wall time of an answer, its
size, and the longest turn of the loop in CPU time of its thread: on a shared machine the rest is other people's doing.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import time
from typing import Any

import aiohttp

from arion_tds import app
from arion_tds.config import judging
from arion_tds.decode import document
from arion_tds.decode.document import Document
from arion_tds.model.delivery import Delivered, Delivery, Kind
from benchmarks import rig

PAGES = (
    "/config_dump",
    "/status",
    "/problems",
    "/history?limit=500",
    "/tools?limit=500",
    "/tools?limit=100&query=weather",
    "/explain?name=space1.tool_1",
    "/explain?name=space1.tol_1x",
    "/metrics",
)
TIMES = 5


async def main(count: int) -> None:
    settings = {
        "admin": {"address": "127.0.0.1:0"},
        "control_plane": {"address": f"127.0.0.1:{rig.free_port()}"},
        "listeners": [
            {
                "name": "bench",
                "address": "127.0.0.1:0",
                "mcp_gateway": {
                    "server_info": {"name": "bench", "version": "1"},
                    "tools_mode": {},
                    "tds": {"config_name": "main"},
                },
            }
        ],
        "clusters": [{"name": "echo", "endpoints": ["http://127.0.0.1:1"]}],
    }
    logging.disable(logging.CRITICAL)
    gc.set_threshold(100_000, 50, 100)  # as serve does
    async with app.running(judging.judge(settings)) as gateway, aiohttp.ClientSession() as http:
        good = [delivered(number) for number in range(count)]
        bad = [Delivered(one.id, "bad", b"\xff") for one in good]
        for updates in (good, bad):
            await gateway.ingest.deliver(Delivery(Kind.TOOL, tuple(updates), ()))
        assert len(gateway.catalogs[0].published.view.tools) == count
        found: dict[str, Any] = {}
        for page in PAGES:
            found[page] = await measure(http, f"http://{gateway.admin}{page}")
    rig.report("admin", tools=count, pages=found, longest_turn_cpu_ms=max(one["turn_cpu_ms"] for one in found.values()))


def delivered(number: int) -> Delivered:
    """A tool of the benchmarks as it would be delivered."""
    envelope = {
        "apiVersion": "ctl.arion.io/v1alpha1",
        "kind": "McpTool",
        "metadata": {"name": f"bench/main/space{number % 50}.tool_{number}"},
        "spec": rig.tool(number),
    }
    made, problems = document.document(envelope)
    assert isinstance(made, Document), problems
    return Delivered(made.id, "1", made.payload)


async def measure(http: aiohttp.ClientSession, url: str) -> dict[str, float]:
    turns: list[float] = []
    walls: list[float] = []
    size = 0

    async def tick() -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            turns.append(now - last)
            last = now

    async with http.get(url) as response:  # the first answer warms what is cached
        await response.read()
    ticking = asyncio.create_task(tick())
    for _ in range(TIMES):
        begun = time.perf_counter()
        async with http.get(url) as response:
            size = len(await response.read())
            assert response.status == 200, url
        walls.append(time.perf_counter() - begun)
    ticking.cancel()
    return {
        "wall_ms": round(sorted(walls)[TIMES // 2] * 1e3, 1),
        "bytes": size,
        "turn_cpu_ms": round(max(turns) * 1e3, 1),
    }


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
