"""From the push of one MCP server to its tools being listed: `python -m benchmarks.discovery [TOOLS]`.

CPU is the gateway's own, from the push to the answer that lists the last tool; wall time is what a control plane and a
client see together. The second push is of the same server under another description, with every tool known already.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from benchmarks import mcp_server, rig
from control_plane_example.mock import MockControlPlane


async def main(count: int) -> None:
    async with MockControlPlane() as plane:
        port, listener, admin = rig.free_port(), rig.free_port(), rig.free_port()
        server = await rig.spawn("-m", "benchmarks.mcp_server", str(port), str(count))
        await mcp_server.listening(port)
        settings = rig.config(plane.address, listener=listener, admin=admin)
        settings["listeners"][0]["page_size"] = 10_000
        async with rig.gateway(settings) as process:
            client = await rig.Client.connect(f"127.0.0.1:{listener}")
            await client.initialize()
            await client.call("tools/list", {})
            figures: dict[str, float] = {}
            for push in ("first", "again"):
                cpu, wall = process.cpu, time.perf_counter()
                spec = {**mcp_server.spec(port), "description": push}
                await plane.put("McpDynamicServer", "bench/main/up", spec)
                await plane.acked("McpDynamicServer", "bench/main/up", timeout=60)
                acked = time.perf_counter() - wall
                found = json.loads(await client.call("tools/list", {}))["result"]["tools"]
                if len(found) != count:
                    msg = f"{len(found)} tools listed instead of {count}"
                    raise RuntimeError(msg)
                figures |= {
                    f"{push}_wall_to_ack_s": round(acked, 3),
                    f"{push}_wall_to_listed_s": round(time.perf_counter() - wall, 3),
                    f"{push}_cpu_s": round(process.cpu - cpu, 3),
                }
            rig.report("discovery", tools=count, **figures, rss_mb=round(process.rss_mb))
            client.close()
        await server.stop()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
