"""CPU of the gateway per proxied MCP `tools/call` at 16 concurrent callers: `python -m benchmarks.mcp_call [CALLS]`."""

from __future__ import annotations

import asyncio
import sys
import time

from benchmarks import mcp_server, rig
from control_plane_example.mock import MockControlPlane


async def main(calls: int, concurrent: int = 16) -> None:
    async with MockControlPlane() as plane:
        port, listener, admin = rig.free_port(), rig.free_port(), rig.free_port()
        server = await rig.spawn("-m", "benchmarks.mcp_server", str(port), "1")
        await mcp_server.listening(port)
        async with rig.gateway(rig.config(plane.address, listener=listener, admin=admin)) as process:
            await plane.put("McpDynamicServer", "bench/main/up", mcp_server.spec(port))
            await plane.acked("McpDynamicServer", "bench/main/up")
            clients = [await rig.Client.connect(f"127.0.0.1:{listener}") for _ in range(concurrent)]
            for client in clients:
                await client.initialize()
            latencies: list[float] = []

            async def drive(client: rig.Client, count: int) -> None:
                for number in range(count):
                    started = time.perf_counter()
                    body = await client.call(
                        "tools/call", {"name": "up.tool_0", "arguments": {"message": f"hello {number}"}}
                    )
                    latencies.append(time.perf_counter() - started)
                    if b'"isError":true' in body:
                        raise RuntimeError(body.decode())

            await asyncio.gather(*(drive(client, 50) for client in clients))
            latencies.clear()
            cpu, wall = process.cpu, time.perf_counter()
            await asyncio.gather(*(drive(client, calls // concurrent) for client in clients))
            done = len(latencies)
            rig.report(
                "mcp_call",
                concurrent=concurrent,
                calls=done,
                cpu_ms_per_call=round((process.cpu - cpu) / done * 1e3, 3),
                calls_per_second=round(done / (time.perf_counter() - wall)),
                p50_ms=round(rig.percentile(latencies, 0.5) * 1e3, 2),
                p99_ms=round(rig.percentile(latencies, 0.99) * 1e3, 2),
            )
            for client in clients:
                client.close()
        await server.stop()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8000))
