"""Calls per second of one worker and of two, at saturation: `python -m benchmarks.workers [SECONDS] [WORKERS]`.

REST `tools/call` on 64 connections. The load client and the service behind share the machine with the gateway, so both
are the cheapest that there are: wrk and nginx where they are installed (Debian: wrk, nginx-light), else this project's
own, which takes so much CPU itself that the ratio says little on two cores.

`ratio`: several workers against one, which has the other cores for its client and service. `ratio_of_cores`: everything
on so many cores with so many workers against everything on one core with one. `ratio_by_cpu`: what the gateway's CPU
per call alone would give. `possible`: what `ratio` could be at best, with client and service on the same cores.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from typing import Any

from benchmarks import rig
from control_plane_example.mock import MockControlPlane

CONNECTIONS = 64
CALL = {"name": "space1.tool_1", "arguments": {"message": "hello"}}

NGINX = """
worker_processes 1; daemon off; pid {folder}/pid; error_log /dev/null;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 600s;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{
    listen 127.0.0.1:{port};
    location / {{ default_type application/json; return 200 '{{"message": "hello"}}'; }}
  }}
}}
"""

WRK = """
wrk.method = "POST"
wrk.body = '{body}'
wrk.headers["content-type"] = "application/json"
wrk.headers["accept"] = "application/json, text/event-stream"
wrk.headers["mcp-protocol-version"] = "2025-06-18"
"""


def family(pid: int) -> list[int]:
    """The process and all that it has started."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += family(int(child))
    return found


def cpu(pids: list[int]) -> float:
    """CPU seconds of all of them since their start."""
    total = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


@contextlib.asynccontextmanager
async def service(port: int) -> AsyncIterator[rig.Process]:
    """Something that answers every request with a few bytes of JSON."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    with tempfile.TemporaryDirectory() as folder:
        if nginx is None:
            process = await rig.spawn("-m", "benchmarks.echo", str(port))
        else:
            conf = pathlib.Path(folder) / "nginx.conf"
            conf.write_text(NGINX.format(folder=folder, port=port))
            process = rig.Process(await asyncio.create_subprocess_exec(nginx, "-p", folder, "-c", str(conf)))
        try:
            yield process
        finally:
            await process.stop()


async def load(port: int, seconds: float) -> tuple[int, float, float]:
    """Calls, seconds, and CPU seconds of the client."""
    wrk = shutil.which("wrk")
    if wrk is None:
        return await own_load(port, seconds)
    body = rig.rpc("tools/call", CALL).decode()
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(WRK.format(body=body))
        script.flush()
        before = os.times()
        process = await asyncio.create_subprocess_exec(
            wrk, "-t1", f"-c{CONNECTIONS}", f"-d{seconds:.0f}s", "-s", script.name, f"http://127.0.0.1:{port}/mcp",
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said = (await process.communicate())[0].decode()
        after = os.times()
    calls = re.search(r"(\d+) requests in ([\d.]+)(m?s)", said)
    if calls is None or "Non-2xx" in said:
        raise RuntimeError(said)
    took = float(calls[2]) / (1000 if calls[3] == "ms" else 1)
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return int(calls[1]), took, spent


async def own_load(port: int, seconds: float) -> tuple[int, float, float]:
    """The same with this project's client."""
    clients = [await rig.Client.connect(f"127.0.0.1:{port}") for _ in range(CONNECTIONS)]
    started, spent, calls = time.perf_counter(), time.process_time(), 0

    async def drive(client: rig.Client) -> None:
        nonlocal calls
        while time.perf_counter() - started < seconds:
            await client.call("tools/call", CALL)
            calls += 1

    await asyncio.gather(*map(drive, clients))
    took = time.perf_counter() - started
    for client in clients:
        client.close()
    return calls, took, time.process_time() - spent


async def measure(workers: int, seconds: float) -> dict[str, Any]:
    """The figures of so many workers."""
    async with MockControlPlane() as plane:
        await plane.put("McpTool", "bench/main/space1.tool_1", rig.tool(1))
        port, listener, admin = rig.free_port(), rig.free_port(), rig.free_port()
        clusters = [{"name": "echo", "endpoints": [f"http://127.0.0.1:{port}"]}]
        settings = rig.config(plane.address, listener=listener, admin=admin, clusters=clusters)
        async with service(port) as behind, rig.gateway({**settings, "workers": workers}) as process:
            client = await rig.Client.connect(f"127.0.0.1:{listener}")
            if b'"isError":true' in await client.call("tools/call", CALL):
                raise RuntimeError("the tool fails")
            client.close()
            await load(listener, 1)  # warm
            pids, others = family(process.child.pid), family(behind.child.pid)
            before, beside = cpu(pids), cpu(others)
            calls, took, client_cpu = await load(listener, seconds)
            return {
                "calls_per_second": round(calls / took),
                "cpu_ms_per_call": round((cpu(pids) - before) / calls * 1e3, 4),
                "cores_of_the_gateway": round((cpu(pids) - before) / took, 2),
                "client_cpu_ms_per_call": round(client_cpu / calls * 1e3, 4),
                "service_cpu_ms_per_call": round((cpu(others) - beside) / calls * 1e3, 4),
            }


async def main(seconds: float, workers: int) -> None:
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_cores)})  # what is started inherits it
    on_one_core = await measure(1, seconds)
    os.sched_setaffinity(0, all_cores)
    one, several = await measure(1, seconds), await measure(workers, seconds)
    own, beside = one["cpu_ms_per_call"], one["client_cpu_ms_per_call"] + one["service_cpu_ms_per_call"]
    cores = len(all_cores)
    alone = min(1.0, cores * own / (own + beside))  # cores that one worker can fill
    possible = min(float(workers), cores * own / (own + beside)) / alone
    rig.report(
        "workers",
        connections=CONNECTIONS,
        client="wrk" if shutil.which("wrk") else "own",
        load_average=os.getloadavg()[0],
        on_one_core=on_one_core,
        one=one,
        several={"workers": workers, **several},
        ratio=round(several["calls_per_second"] / one["calls_per_second"], 2),
        ratio_of_cores=round(several["calls_per_second"] / on_one_core["calls_per_second"], 2),
        ratio_by_cpu=round(workers * own / several["cpu_ms_per_call"], 2),
        possible=round(possible, 2),
    )


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 10, int(sys.argv[2]) if len(sys.argv) > 2 else 2))
