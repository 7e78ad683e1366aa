"""The longest turn of the gateway's event loop while a catalog arrives: `python -m benchmarks.stall [TOOLS | FILE]`.

`TOOLS` tools that are pushed one by one, or an OpenAPI document from a file.

The gateway runs in this process as `serve` runs it, beside a task that ticks at every turn of the loop; the control
plane is a process of its own. Prints the longest and the 99th percentile turn, in wall time and in CPU time of the
loop's thread: on a shared machine the CPU is the gateway's doing, the rest of the wall time is the neighbours'.
"""

from __future__ import annotations

import asyncio
import gc
import json
import pathlib
import sys
import tempfile
import time
from typing import Any

import uvloop

from arion_tds import app
from arion_tds.config import judging
from benchmarks import rig


async def main(asked: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        documents = _tools(int(asked)) if asked.isdigit() else [_source(pathlib.Path(asked))]
        (pathlib.Path(scratch) / "documents.json").write_text(json.dumps(documents))
        xds, http, admin, listener = (rig.free_port() for _ in range(4))
        plane = await rig.spawn(
            *("-m", "control_plane_example", scratch, "--address", f"127.0.0.1:{xds}", "--http", f"127.0.0.1:{http}")
        )
        try:
            await _listening(http)
            settings = rig.config(f"127.0.0.1:{xds}", listener=listener, admin=admin)
            wall, turns, count = await _arrival(settings, len(documents) if asked.isdigit() else 1)
        finally:
            await plane.stop()
    walls, cpus = [turn[0] * 1e3 for turn in turns], [turn[1] * 1e3 for turn in turns]
    rig.report(
        "stall",
        what="tools" if asked.isdigit() else pathlib.Path(asked).name,
        tools=count,
        wall_to_served_s=round(wall, 2),
        turns=len(turns),
        longest_turn_cpu_ms=round(max(cpus), 1),
        longest_turn_wall_ms=round(max(walls), 1),
        p99_turn_cpu_ms=round(rig.percentile(cpus, 0.99), 2),
        p99_turn_wall_ms=round(rig.percentile(walls, 0.99), 2),
    )


async def _arrival(settings: dict[str, Any], least: int) -> tuple[float, list[tuple[float, float]], int]:
    """Seconds until at least so many tools are served, (wall, CPU) seconds of every turn until then, how many are."""
    turns: list[tuple[float, float]] = []
    async with app.running(judging.judge(settings)) as gateway:
        published = gateway.catalogs[0].published
        gc.freeze()
        begun = wall = time.perf_counter()
        cpu = time.thread_time()
        async with asyncio.timeout(120):
            while len(published.view.tools) < least:
                await asyncio.sleep(0)
                now, used = time.perf_counter(), time.thread_time()
                turns.append((now - wall, used - cpu))
                wall, cpu = now, used
        return time.perf_counter() - begun, turns, len(published.view.tools)


def _source(path: pathlib.Path) -> dict[str, Any]:
    """The document as a source."""
    spec = {
        "namespace": "document",
        "cluster": "echo",
        "spec": {"inline_string": path.read_text()},
        "skip_unsupported_operations": True,
    }
    return _document("McpOpenApiSource", "document", spec)


def _tools(count: int) -> list[dict[str, Any]]:
    return [_document("McpTool", f"space{number % 50}.tool_{number}", rig.tool(number)) for number in range(count)]


def _document(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "ctl.arion.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": f"bench/main/{name}"},
        "spec": spec,
    }


async def _listening(port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                client = await rig.Client.connect(f"127.0.0.1:{port}")
            except OSError:
                await asyncio.sleep(0.02)
            else:
                client.close()
                return


if __name__ == "__main__":
    gc.set_threshold(100_000, 50, 100)  # as cli.serve
    uvloop.run(main(sys.argv[1] if len(sys.argv) > 1 else "5000"))
