"""From a push to the client that hears of it: `python -m benchmarks.push_latency [TOOLS] [CHANGES]`.

One tool of a full catalog is changed, with a pause after each so that no change is gathered with another. Control
plane, gateway and the client (a subscriptions/listen stream) are a process each. Prints the wall time from the push to
the client's notifications/tools/list_changed, that to the push's ACK, and the gateway's CPU per change. What is the
machine's doing shows beside it: the gateway's own time from a response's arrival to its content being served (a bucket
of its histogram), and the wall time of a GET of /healthz in between.
"""

from __future__ import annotations

import asyncio
import sys
import time

from benchmarks import holding, rig
from control_plane_example.mock import MockControlPlane

PAUSE = 0.12
"""Seconds between two changes: more than the tenth of a second for which changes are gathered."""


async def main(count: int, changes: int) -> None:
    async with MockControlPlane() as plane:
        listener, admin = rig.free_port(), rig.free_port()
        settings = rig.config(plane.address, listener=listener, admin=admin)
        async with rig.gateway(settings) as process:
            await plane.connected()
            plane.hold()
            version = name = ""
            for number in range(count):
                name = f"bench/main/space{number % 50}.tool_{number}"
                version = await plane.put("McpTool", name, rig.tool(number))
            plane.release()
            await plane.acked("McpTool", name, version, timeout=120)
            told: list[float] = []
            acked: list[float] = []
            health: list[float] = []
            operator = await rig.Client.connect(f"127.0.0.1:{admin}")
            async with holding.streams(f"127.0.0.1:{listener}", 1) as held:
                cpu = 0.0
                for number in range(changes):
                    at = number * 7 % count
                    name = f"bench/main/space{at % 50}.tool_{at}"
                    spec = {**rig.tool(at), "description": f"Changed {number} times"}
                    begun = time.perf_counter()
                    await operator.get("/healthz")
                    health.append(time.perf_counter() - begun)
                    await asyncio.sleep(PAUSE)
                    before, begun = process.cpu, time.perf_counter()
                    version = await plane.put("McpTool", name, spec)
                    await plane.acked("McpTool", name, version)
                    acked.append(time.perf_counter() - begun)
                    told.append((await held.next("told"))["last"] - begun)
                    cpu += process.cpu - before
            _, metrics = await operator.get("/metrics")
            operator.close()
    rig.report(
        "push_latency",
        tools=count,
        changes=changes,
        push_to_list_changed_p50_ms=round(rig.percentile(told, 0.5) * 1e3, 2),
        push_to_list_changed_p99_ms=round(rig.percentile(told, 0.99) * 1e3, 2),
        push_to_ack_p50_ms=round(rig.percentile(acked, 0.5) * 1e3, 2),
        push_to_ack_p99_ms=round(rig.percentile(acked, 0.99) * 1e3, 2),
        within_gateway_p99_at_most_ms=_bucket(metrics.decode(), changes, 0.99) * 1e3,
        healthz_p50_ms=round(rig.percentile(health, 0.5) * 1e3, 2),
        healthz_p99_ms=round(rig.percentile(health, 0.99) * 1e3, 2),
        change_cpu_ms=round(cpu / changes * 1e3, 3),
    )


def _bucket(metrics: str, changes: int, share: float) -> float:
    """The smallest bound of arion_tds_push_seconds under which that share of the changes lies; the load lies above."""
    for line in metrics.splitlines():
        if line.startswith('arion_tds_push_seconds_bucket{le="') and 'type="Tool"' in line:
            bound, _, rest = line.removeprefix('arion_tds_push_seconds_bucket{le="').partition('"')
            if float(rest.split()[-1]) >= changes * share:
                return float(bound)
    return float("inf")


if __name__ == "__main__":
    arguments = [int(one) for one in sys.argv[1:]]
    asyncio.run(main(*(arguments + [10_000, 300][len(arguments) :])))
