"""Every benchmark, one after the other: `python -m benchmarks.all [--quick] [--write] [NAME…]` (`make bench`).

Takes about ten minutes. Writes `benchmarks/results/bench.json`, a Markdown table and a chart beside it; with --write
both into the docs, too. --quick runs each at a size that shows that it works, not a figure. A benchmark that fails is a
row that says so.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import signal
import sys
import time
from typing import Any

from benchmarks import machine, page
from benchmarks.registry import BENCHMARKS, Benchmark

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SECONDS = 300
"""The time that one benchmark may take."""


async def run(one: Benchmark, *, quick: bool) -> dict[str, Any]:
    """Its line of JSON as `line`, or `failed`; the load before it, and the seconds that it took."""
    before, begun = machine.load(), time.perf_counter()
    command = [sys.executable, "-m", f"benchmarks.{one.module}", *(one.quick if quick else one.full)]
    child = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # what it started ends with it
    )
    found: dict[str, Any]
    try:
        said, errors = await asyncio.wait_for(child.communicate(), SECONDS)
        found = _line(said, errors, child.returncode)
    except TimeoutError:
        found = {"failed": f"not done after {SECONDS} s"}
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()
    return {"title": one.title, "load": before, "seconds": round(time.perf_counter() - begun, 1), **found}


def _line(said: bytes, errors: bytes, code: int | None) -> dict[str, Any]:
    lines = said.decode(errors="replace").splitlines()
    with contextlib.suppress(ValueError, IndexError):
        if code == 0:
            return {"line": json.loads(lines[-1])}
    reason = (errors.decode(errors="replace").strip().splitlines() or ["nothing said"])[-1]
    return {"failed": f"status {code}: {reason[:200]}"}


async def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*", help="modules to run; all of them unless said")
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--write", action="store_true")
    chosen = arguments.parse_args()
    known = {one.module for one in BENCHMARKS}
    if unknown := set(chosen.names) - known:
        arguments.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    runs: list[dict[str, Any]] = []
    for one in BENCHMARKS:
        if not chosen.names or one.module in chosen.names:
            print(f"{one.title} …", file=sys.stderr, flush=True)
            runs.append(await run(one, quick=chosen.quick))
    results = {"machine": machine.facts(), "quick": chosen.quick, "runs": runs}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "bench.json").write_text(json.dumps(results, indent=1))
    table, chart = page.table(results), page.chart(page.cpu_bars(results), "CPU per operation, ms")
    (RESULTS / "bench.md").write_text(table)
    (RESULTS / "bench.svg").write_text(chart)
    print(table)
    if chosen.write:
        page.put(ROOT / "docs" / "benchmarks.md", "bench", f"{table}\n![CPU per operation](benchmarks.svg)\n")
        (ROOT / "docs" / "benchmarks.svg").write_text(chart)
    return int(any("failed" in one for one in runs))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
