"""What spans cost a REST `tools/call`: CPU of gateways without, with all and with 1 % of the traces sampled.

`python -m benchmarks.tracing [CALLS]`. The gateways run beside each other and take turns, 16 calls at a time: what the
machine does meanwhile meets all of them alike. The figures are those of each one's better turns (the lower quartile):
what a busy machine adds is no cost of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
from typing import Any

from aiohttp import web

from benchmarks import rig
from control_plane_example.mock import MockControlPlane

RATIOS = {"off": None, "all": 1.0, "one_percent": 0.01}
ROUNDS = 20


class _Sink:
    """A collector that takes everything."""

    def __init__(self) -> None:
        self.bytes = 0

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.bytes += len(await request.content.read())
        return web.json_response({})


async def _drive(client: rig.Client, calls: int) -> None:
    for number in range(calls):
        arguments = {"message": f"hello {number}"}
        body = await client.call("tools/call", {"name": "space1.tool_1", "arguments": arguments})
        if b'"isError":true' in body:
            raise RuntimeError(body.decode())


async def main(calls: int, concurrent: int = 16) -> None:
    sink = _Sink()
    async with contextlib.AsyncExitStack() as stack:
        plane = await stack.enter_async_context(MockControlPlane())
        await plane.put("McpTool", "bench/main/space1.tool_1", rig.tool(1))
        echo_port, sink_port = rig.free_port(), rig.free_port()
        echo = await rig.spawn("-m", "benchmarks.echo", str(echo_port))
        stack.push_async_callback(echo.stop)
        runner = web.ServerRunner(web.Server(sink.handle, access_log=None))
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", sink_port).start()
        gateways = {}
        for name, ratio in RATIOS.items():
            listener = rig.free_port()
            clusters = [{"name": "echo", "endpoints": [f"http://127.0.0.1:{echo_port}"]}]
            settings: dict[str, Any] = rig.config(
                plane.address, listener=listener, admin=rig.free_port(), clusters=clusters
            )
            if ratio is not None:
                endpoint = f"http://127.0.0.1:{sink_port}"
                settings["tracing"] = {"endpoint": endpoint, "sample_ratio": ratio, "batch_interval": "1s"}
            process = await stack.enter_async_context(rig.gateway(settings))
            clients = [await rig.Client.connect(f"127.0.0.1:{listener}") for _ in range(concurrent)]
            for client in clients:
                await client.initialize()
            await asyncio.gather(*(_drive(client, 50) for client in clients))
            gateways[name] = process, clients
        turn = max(1, calls // ROUNDS // concurrent)
        costs: dict[str, list[float]] = {name: [] for name in gateways}
        for number in range(ROUNDS):
            order = list(gateways.items())
            for name, (process, clients) in reversed(order) if number % 2 else order:
                cpu = process.cpu
                await asyncio.gather(*(_drive(client, turn) for client in clients))
                costs[name].append((process.cpu - cpu) / turn / concurrent * 1e6)
        off, whole, few = (statistics.quantiles(costs[name], n=4)[0] for name in RATIOS)
        rig.report(
            "tracing",
            concurrent=concurrent,
            calls=turn * concurrent * ROUNDS,
            cpu_us_per_call=round(off),
            added_us_all_sampled=round(whole - off, 1),
            added_us_one_percent_sampled=round(few - off, 1),
            sent_mb=round(sink.bytes / 1e6, 1),
        )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8000))
