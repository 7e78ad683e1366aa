"""Our gateway and others, one after the other, in front of the same services: `make bench-peers`.

`python -m benchmarks.peers [--only NAME] [--quick] [--write]` writes `benchmarks/results/peers.json`, a Markdown table
and a chart beside it; with --write into the docs and the README. What a gateway cannot do is a cell that says why.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pathlib
import sys
import tempfile
import time
from typing import Any

import uvloop

from benchmarks import machine, mcp_server, page, rig
from benchmarks.peers import load, report, tree
from benchmarks.peers.contenders import ALL
from benchmarks.peers.setting import Contender, Setting, Started, Unavailable, until

RESULTS = tree.ROOT / "benchmarks" / "results"
CONCURRENT = (1, 16, 64)
SIZES = (1, 1_000, 10_000)
ARGUMENTS = {"message": "hello " + "world " * 16}
READY = 120.0
"""Seconds from the start to the first list."""
BUDGET = 360.0
"""Seconds for all of one gateway: what is not measured by then is not measured."""


class Rig:
    """How long each thing is measured."""

    def __init__(self, *, quick: bool) -> None:
        self.seconds = 0.3 if quick else 3.0
        sizes = (1, 20) if quick else SIZES
        self.settings = [(kind, size) for size in sizes for kind in ("mcp", "rest")]  # the slowest of all comes last

    async def contender(self, one: Contender) -> dict[str, Any]:
        """Everything about one gateway."""
        found: dict[str, Any] = {"version": one.version}
        try:
            await one.install()
        except Unavailable as reason:
            return {**found, "failed": str(reason)}
        until = time.perf_counter() + BUDGET
        for kind, size in self.settings:
            print(f"{one.name}: {kind}, {size} tools …", file=sys.stderr, flush=True)
            try:
                async with asyncio.timeout(max(0, until - time.perf_counter())):
                    found[f"{kind} {size}"] = await self.setting(one, kind, size)
            except TimeoutError:
                over = time.perf_counter() >= until
                reason = f"not done when its {BUDGET:.0f} s were over" if over else f"no answer in {load.SECONDS} s"
                found[f"{kind} {size}"] = {"failed": reason}
            except (Unavailable, OSError) as error:
                found[f"{kind} {size}"] = {"failed": str(error)[:300] or type(error).__name__}
        return found

    async def setting(self, one: Contender, kind: str, size: int) -> dict[str, Any]:
        """One gateway in front of one service: start, memory, and calls (of one tool) or lists (of many)."""
        port = rig.free_port()
        service = (
            ["benchmarks.mcp_server", str(port), str(size), str(size)]
            if kind == "mcp"
            else ["benchmarks.echo", str(port)]
        )
        with tempfile.TemporaryDirectory() as folder:
            scratch = pathlib.Path(folder)
            command = [sys.executable, "-m", *service]
            async with tree.running(command, scratch / "service.log", cores=tree.OTHERS) as serving:
                await mcp_server.listening(port)
                async with one.started(Setting(kind, size, port, scratch)) as gateway:
                    begun = time.perf_counter()
                    session = await self.ready(gateway, size)
                    found: dict[str, Any] = {
                        "start_s": round(time.perf_counter() - begun, 2),
                        "start_cpu_s": round(gateway.tree.cpu, 2),
                        "rss_mb": round(gateway.tree.rss_mb, 1),
                    }
                    if size == 1:
                        session.close()
                        for concurrent in CONCURRENT:
                            found[f"calls {concurrent}"] = await self.calls(gateway, serving, concurrent)
                    else:
                        found["list"] = await self.lists(gateway, session, size)
                        session.close()
                    return found

    @staticmethod
    async def ready(gateway: Started, size: int) -> load.Session:
        """A session of which the first list had every tool."""

        async def attempt() -> load.Session | None:
            session = await load.Session(gateway.url, gateway.headers).open()
            listed = len(await session.tools())
            if listed == size:
                return session
            session.close()
            msg = f"{listed} of {size} tools are listed"
            raise ValueError(msg)

        found = await until("first list", gateway.tree, READY, attempt)
        assert isinstance(found, load.Session)
        return found

    async def calls(self, gateway: Started, serving: tree.Tree, concurrent: int) -> dict[str, Any]:
        """Calls of one tool on so many sessions at once."""
        opening = [load.Session(gateway.url, gateway.headers).open() for _ in range(concurrent)]
        sessions = await asyncio.gather(*opening)
        warm = await load.drive(sessions, gateway.tool, ARGUMENTS, self.seconds / 4)
        if warm.failed:
            raise Unavailable(f"{warm.failed} calls of {warm.failed + warm.calls} failed: {warm.first_failure}")
        before, others, wall = gateway.tree.cpu, time.process_time() + serving.cpu, time.perf_counter()
        loaded = await load.drive(sessions, gateway.tool, ARGUMENTS, self.seconds)
        wall = time.perf_counter() - wall
        spent, others = gateway.tree.cpu - before, time.process_time() + serving.cpu - others
        for session in sessions:
            session.close()
        if loaded.failed or not loaded.calls:
            raise Unavailable(f"{loaded.failed} calls of {loaded.failed + loaded.calls} failed: {loaded.first_failure}")
        return {
            "calls_per_second": round(loaded.calls / wall, 1),
            "cpu_ms_per_call": round(spent / loaded.calls * 1e3, 4),
            "p50_ms": round(rig.percentile(loaded.latencies, 0.5) * 1e3, 2),
            "p99_ms": round(rig.percentile(loaded.latencies, 0.99) * 1e3, 2),
            "gateway_busy": round(spent / wall, 2),
            "client_and_service_busy": round(others / wall, 2),
        }

    async def lists(self, gateway: Started, session: load.Session, size: int) -> dict[str, Any]:
        """The whole list, again and again, by one client."""
        times: list[float] = []
        before, received, wall = gateway.tree.cpu, session.received, time.perf_counter()
        while not times or time.perf_counter() - wall < self.seconds:
            begun = time.perf_counter()
            listed = len(await session.tools())
            times.append(time.perf_counter() - begun)
            if listed != size:
                raise Unavailable(f"{listed} of {size} tools are listed")
        return {
            "cpu_ms": round((gateway.tree.cpu - before) / len(times) * 1e3, 3),
            "p50_ms": round(rig.percentile(times, 0.5) * 1e3, 2),
            "bytes": (session.received - received) // len(times),
            "lists": len(times),
        }


async def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    names = {one.name.lower().replace(" ", "-"): one for one in ALL}
    arguments.add_argument("--only", action="append", choices=sorted(names), help="one of them; again for more")
    arguments.add_argument("--quick", action="store_true", help="show that it works; no figures")
    arguments.add_argument("--write", action="store_true", help="into docs/benchmarks.md and README.md")
    chosen = arguments.parse_args()
    results: dict[str, Any] = {"machine": machine.facts(), "quick": chosen.quick, "pinned": tree.PINNED, "gateways": {}}
    os.sched_setaffinity(0, tree.OTHERS)
    begun, before = time.perf_counter(), machine.load()
    for name, contender in names.items():
        if not chosen.only or name in chosen.only:
            measured = await Rig(quick=chosen.quick).contender(contender())
            results["gateways"][contender.name] = measured
    results |= {"load": before, "seconds": round(time.perf_counter() - begun)}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "peers.json").write_text(json.dumps(results, indent=1))
    table, chart = report.table(results), page.chart(report.bars(results), "CPU per call, ms")
    (RESULTS / "peers.md").write_text(table)
    (RESULTS / "peers.svg").write_text(chart)
    print(table)
    if chosen.write:
        docs = tree.ROOT / "docs"
        (docs / "benchmarks-peers.svg").write_text(chart)
        page.put(docs / "benchmarks.md", "peers", f"{table}\n![CPU per call](benchmarks-peers.svg)\n")
        page.put(tree.ROOT / "README.md", "peers", report.short(results))
    return 0


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))
