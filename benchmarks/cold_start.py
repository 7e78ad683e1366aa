"""A restart without a control plane: `python -m benchmarks.cold_start [TOOLS]`.

The gateway learns the catalog, ends, loses its control plane and is started again. Prints how long it takes, and how
much CPU, from the start of the process until a client is told of every tool; and the size of the file.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
import sys
import tempfile
import time

from benchmarks import rig
from control_plane_example.mock import MockControlPlane


async def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        listener, admin = rig.free_port(), rig.free_port()
        async with MockControlPlane() as plane:
            settings = {
                **rig.config(plane.address, listener=listener, admin=admin),
                "cache": {"directory": f"{scratch}/cache"},
            }
            plane.hold()
            names = [f"space{number % 50}.tool_{number}" for number in range(count)]
            for number, name in enumerate(names):
                version = await plane.put("McpTool", f"bench/main/{name}", rig.tool(number))
            plane.release()
            async with rig.gateway(settings):
                await plane.acked("McpTool", f"bench/main/{names[-1]}", version, timeout=120)
        size = (pathlib.Path(scratch) / "cache" / "catalog.db").stat().st_size
        begun = time.perf_counter()
        async with rig.gateway(settings, wait=False) as process:
            await _total(f"127.0.0.1:{listener}", count)
            served, cpu = time.perf_counter() - begun, process.cpu
            await rig.ready(f"127.0.0.1:{admin}")
            ready = time.perf_counter() - begun
        rig.report(
            "cold_start",
            tools=count,
            served_s=round(served, 2),
            ready_s=round(ready, 2),
            cpu_s=round(cpu, 2),
            file_mb=round(size / 1e6, 1),
        )


async def _total(address: str, count: int) -> None:
    """Wait until a search counts every tool."""
    async with asyncio.timeout(120):
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                client = await rig.Client.connect(address)
                _, _, body = await client.post("/mcp/search", b'{"query":"","limit":1}')
                client.close()
                if json.loads(body)["total"] == count:
                    return
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
