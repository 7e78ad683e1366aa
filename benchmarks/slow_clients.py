"""A thousand slow clients at once against one that is not: `python -m benchmarks.slow_clients [CLIENTS] [SECONDS]`.

A third drips headers, a third a body, a third asks for lists and reads nothing. Reported: the latency of tools/call for
a client that behaves, alone and among them; what the gateway counts; its memory. All on loopback, for SECONDS.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import sys
import time

from benchmarks import rig
from control_plane_example.mock import MockControlPlane

HEAD = "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"


async def drip(address: str, kind: int) -> None:
    """Be slow until cancelled; come back when cut off."""
    host, _, port = address.rpartition(":")
    head = HEAD.format(host=address)
    asking = rig.rpc("tools/list", {})
    await asyncio.sleep(random.uniform(0, 3))
    while True:
        with contextlib.suppress(OSError):
            narrow = socket.socket()
            narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            narrow.setblocking(False)  # noqa: FBT003 - the library's own
            await asyncio.get_running_loop().sock_connect(narrow, (host, int(port)))
            reader, writer = await asyncio.open_connection(sock=narrow, limit=1024)
            try:
                if kind == 0:
                    writer.write(head.encode())
                    for number in range(1000):
                        await asyncio.sleep(0.5)
                        writer.write(f"x-{number}: y\r\n".encode())
                        await writer.drain()
                elif kind == 1:
                    writer.write(f"{head}content-length: 100000\r\n\r\n".encode())
                    for _ in range(1000):
                        await asyncio.sleep(0.5)
                        writer.write(b" ")
                        await writer.drain()
                else:
                    writer.transport.pause_reading()
                    writer.write((f"{head}content-length: {len(asking)}\r\n\r\n".encode() + asking) * 4)
                    await asyncio.sleep(60)
                del reader
            finally:
                writer.close()
        await asyncio.sleep(random.uniform(0, 1))


async def behave(client: rig.Client, seconds: float) -> list[float]:
    """Call a tool every 10 ms; seconds of each call."""
    found: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        await client.call("tools/call", {"name": "space1.tool_1", "arguments": {"message": "hello"}})
        found.append(time.perf_counter() - began)
        await asyncio.sleep(0.01)
    return found


async def main(count: int, seconds: float) -> None:
    async with MockControlPlane() as plane:
        for number in range(1, 1001):
            await plane.put("McpTool", f"bench/main/space{number % 50}.tool_{number}", rig.tool(number))
        echo_port, listener, admin = rig.free_port(), rig.free_port(), rig.free_port()
        echo = await rig.spawn("-m", "benchmarks.echo", str(echo_port))
        clusters = [{"name": "echo", "endpoints": [f"http://127.0.0.1:{echo_port}"]}]
        settings = rig.config(plane.address, listener=listener, admin=admin, clusters=clusters)
        settings["listeners"][0]["page_size"] = (
            1000  # a list of 1.5 MB: more than the kernel takes for one that reads nothing
        )
        settings["listeners"][0]["limits"] = {
            "header_timeout": "5s",
            "body_timeout": "5s",
            "write_timeout": "5s",
        }
        address = f"127.0.0.1:{listener}"
        async with rig.gateway(settings) as process:
            client = await rig.Client.connect(address)
            await client.initialize()
            alone = await behave(client, seconds / 3)
            slow = await rig.spawn("-m", "benchmarks.slow_clients", "--slow", address, str(count))
            await asyncio.sleep(4.0)
            cpu, began = process.cpu, time.perf_counter()
            among = await behave(client, seconds)
            share = (process.cpu - cpu) / (time.perf_counter() - began)
            await slow.stop()
            memory = process.rss_mb
            operator = await rig.Client.connect(f"127.0.0.1:{admin}")
            _, metrics = await operator.get("/metrics")
            client.close()
            operator.close()
        await echo.stop()
    refused = [line for line in metrics.decode().splitlines() if line.startswith("arion_tds_refused_total{")]
    rig.report(
        "slow_clients",
        clients=count,
        calls=len(among),
        alone_p50_ms=round(rig.percentile(alone, 0.5) * 1000, 2),
        alone_p99_ms=round(rig.percentile(alone, 0.99) * 1000, 2),
        among_p50_ms=round(rig.percentile(among, 0.5) * 1000, 2),
        among_p99_ms=round(rig.percentile(among, 0.99) * 1000, 2),
        gateway_cpu_share=round(share, 3),
        gateway_rss_mb=round(memory, 1),
        refused={line.split('what="')[1].split('"')[0]: float(line.split()[-1]) for line in refused},
    )


async def slow(address: str, count: int) -> None:
    """The slow ones, in a process of their own, until it is ended (or a minute has passed)."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(60):
            await asyncio.gather(*(drip(address, number % 3) for number in range(count)))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--slow"]:
        asyncio.run(slow(arguments[1], int(arguments[2])))
    else:
        clients, lasting = (arguments + ["1000", "10"][len(arguments) :])[:2]
        asyncio.run(main(int(clients), float(lasting)))
