"""Code mode over MCP: `python -m benchmarks.codemode [EXECUTIONS]`.

Warm: one program at a time, a sandbox ready for each; the program calls three tools in parallel and says how long it
waited for them, which is taken off. Throughput: eight callers at once, far more than there are sandboxes ready, so that
starting them is what is measured. Cold start: from nothing to a sandbox that takes a program.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from arion_tds.codemode import deno, limits
from arion_tds.model.gateway import CodeMode
from benchmarks import rig
from control_plane_example.mock import MockControlPlane

PROGRAM = """
const started = performance.now()
const answers = await Promise.all([1, 2, 3].map((n: number) => tools.space1.tool_1({message: `hello ${n}`})))
return {waited: performance.now() - started, said: answers.map((one) => one.message)}
"""


async def execute(client: rig.Client) -> tuple[float, float]:
    """Seconds from the request to the answer, and of these the seconds that the program waited for its tools."""
    started = time.perf_counter()
    body = await client.call("tools/call", {"name": "execute", "arguments": {"code": PROGRAM}})
    took = time.perf_counter() - started
    result = json.loads(body)["result"]
    if result.get("isError"):
        raise RuntimeError(result)
    return took, result["structuredContent"]["result"]["waited"] / 1e3


async def cold_starts(count: int) -> list[float]:
    engine = deno.DenoEngine(deno.find(), limits.of(CodeMode()))
    took: list[float] = []
    for _ in range(count):
        started = time.perf_counter()
        sandbox = await engine.sandbox()
        took.append(time.perf_counter() - started)
        await sandbox.clear()
    await engine.close()
    return took


async def main(executions: int, callers: int = 8) -> None:
    cold = await cold_starts(20)
    async with MockControlPlane() as plane:
        await plane.put("McpTool", "bench/main/space1.tool_1", rig.tool(1))
        echo_port, listener, admin = rig.free_port(), rig.free_port(), rig.free_port()
        echo = await rig.spawn("-m", "benchmarks.echo", str(echo_port))
        clusters = [{"name": "echo", "endpoints": [f"http://127.0.0.1:{echo_port}"]}]
        settings = rig.config(plane.address, listener=listener, admin=admin, clusters=clusters)
        block = settings["listeners"][0]["mcp_gateway"]
        block["code_mode"] = block.pop("tools_mode")
        async with rig.gateway(settings) as process:
            clients = [await rig.Client.connect(f"127.0.0.1:{listener}") for _ in range(callers)]
            for client in clients:
                await client.initialize()
            warm: list[tuple[float, float]] = []
            for _ in range(executions // 4):
                await asyncio.sleep(0.15)  # time to make the next sandbox ready
                warm.append(await execute(clients[0]))

            async def drive(client: rig.Client) -> None:
                for _ in range(executions // callers):
                    await execute(client)

            cpu, wall = process.cpu, time.perf_counter()
            await asyncio.gather(*map(drive, clients))
            wall, cpu = time.perf_counter() - wall, process.cpu - cpu
            done = executions // callers * callers
            beyond = [took - waited for took, waited in warm]
            rig.report(
                "codemode",
                warm_p50_ms=round(rig.percentile([took for took, _ in warm], 0.5) * 1e3, 1),
                warm_beyond_tools_p50_ms=round(rig.percentile(beyond, 0.5) * 1e3, 1),
                warm_beyond_tools_p95_ms=round(rig.percentile(beyond, 0.95) * 1e3, 1),
                executions_per_second=round(done / wall, 1),
                callers=callers,
                gateway_cpu_ms_per_execution=round(cpu / done * 1e3, 1),
                gateway_rss_mb=round(process.rss_mb),
                cold_start_p50_ms=round(rig.percentile(cold, 0.5) * 1e3, 1),
            )
            for client in clients:
                client.close()
        await echo.stop()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
