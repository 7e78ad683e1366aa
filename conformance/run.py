"""The official conformance suite against a real gateway: `python -m conformance.run BIN` (see `make conformance`).

In: the folder with the suite's commands (scripts/node_packages.py prints it). Out: a table of results; status 0 when
exactly the expected checks fail and docs/conformance.md says so. Starts the example control plane, a REST service and
an MCP server with the suite's fixture tools, and a gateway that has them pushed; ends them all.

`--write` puts the table into docs/conformance.md.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet

import yaml

from conformance import judge
from control_plane_example.ports import free_ports

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE = ROOT / "docs" / "conformance.md"
REVISIONS = ("2025-11-25", "2026-07-28")
DOCUMENTED = (50051, 50052, 9901, 8080, 4001, 4002)
"""Ports as the files here write them: control plane, its HTTP, admin, listener, REST service, MCP server."""

NAMESPACES = frozenset({"rest", "server"})
START_SECONDS = 60
SUITE_SECONDS = 180


def main() -> int:
    """Run both requirement sets, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("bin", type=pathlib.Path, help="folder with the commands `node` and `conformance`")
    parser.add_argument("--write", action="store_true", help="put the table into docs/conformance.md")
    options = parser.parse_args()
    runs: dict[str, tuple[dict[str, judge.Outcome], dict[str, judge.Expected]]] = {}
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as scratch, gateway(pathlib.Path(scratch)) as url:
        for revision in REVISIONS:
            results = suite(options.bin, url, revision, pathlib.Path(scratch) / revision)
            path = HERE / f"expected-failures-{revision}.yml"
            expected = judge.expectations(yaml.safe_load(path.read_text("utf-8")))
            wanted = scenarios(options.bin, revision)
            runs[revision] = {name: results[name] for name in wanted if name in results}, expected
            faults += [f"{revision} {fault}" for fault in judge.faults(results, expected, wanted)]
    made = judge.table(runs)
    print(made)
    for revision, (results, _) in runs.items():
        print(f"{revision}: {judge.totals(results)}")
    faults += check_page(PAGE, made, write=options.write)
    for fault in faults:
        print(f"NOT AS EXPECTED: {fault}", file=sys.stderr)
    return 1 if faults else 0


def check_page(path: pathlib.Path, made: str, *, write: bool) -> list[str]:
    """Write the table into the page, or say that it differs."""
    page = path.read_text("utf-8")
    wanted = judge.with_table(page, made)
    if write:
        path.write_text(wanted, encoding="utf-8")
    elif page != wanted:
        return [f"{path.relative_to(ROOT)} shows other results: the same command with WRITE=--write updates it"]
    return []


def suite(commands: pathlib.Path, url: str, revision: str, out: pathlib.Path) -> dict[str, judge.Outcome]:
    """Run one requirement set; its results by scenario. Its own verdict is not asked: it knows no expectations."""
    done = subprocess.run(
        [commands / "conformance", "server", "--url", url, "--requirements", revision, "-o", out],
        env=environment(commands),
        capture_output=True,
        text=True,
        timeout=SUITE_SECONDS,
        check=False,
    )
    found = {}
    for path in out.glob("server-*/checks.json"):
        name = re.sub(r"\Aserver-(.+)-\d{4}-\d\d-\d\dT[\w-]+\Z", r"\1", path.parent.name)
        found[name] = judge.outcome(json.loads(path.read_text("utf-8")))
    if not found:
        raise SystemExit(f"the suite gave no results:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return found


def scenarios(commands: pathlib.Path, revision: str) -> list[str]:
    """What the suite has to run for a revision, scored or not."""
    package = commands.parent / "@modelcontextprotocol" / "conformance"
    document = yaml.safe_load((package / "requirements" / f"{revision}.yaml").read_text("utf-8"))
    return [*document["server"], *(one["scenario"] for one in document["not_scored"] if one["leg"] == "server")]


def environment(commands: pathlib.Path) -> dict[str, str]:
    """With the suite's own Node first: it needs version 22 or later."""
    return {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}


@contextlib.contextmanager
def gateway(scratch: pathlib.Path) -> Iterator[str]:
    """Everything running, on free ports. Yields the MCP endpoint."""
    ports = dict(zip(DOCUMENTED, free_ports(len(DOCUMENTED)), strict=True))
    shutil.copytree(HERE / "catalog", scratch / "catalog")
    for path in (*(scratch / "catalog").iterdir(), pathlib.Path(shutil.copy(HERE / "gateway.yaml", scratch))):
        path.write_text(with_ports(path.read_text("utf-8"), ports), encoding="utf-8")
    control_plane, http, admin, listener, service, server = (f"127.0.0.1:{port}" for port in ports.values())
    with contextlib.ExitStack() as stack:
        fixtures = (
            ("control_plane_example", str(scratch / "catalog"), "--address", control_plane, "--http", http),
            ("conformance.fixture_service", "--port", service.rpartition(":")[2], "--control-plane", f"http://{http}"),
            ("conformance.fixture_mcp_server", "--port", server.rpartition(":")[2]),
        )
        processes = [stack.enter_context(process(scratch, *arguments)) for arguments in fixtures]
        # The gateway lists the MCP server's tools as soon as it hears of it, so that has to listen by then.
        for address in (http, service, server):
            wait(scratch, processes, functools.partial(listens, address))
        processes.append(
            stack.enter_context(
                process(scratch, "arion_tds", "serve", "-c", str(scratch / "gateway.yaml"), "--workers", "1")
            )
        )
        wait(scratch, processes, functools.partial(ready, admin))
        yield f"http://{listener}/mcp"


@contextlib.contextmanager
def process(scratch: pathlib.Path, module: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A module as a process while the block runs; it writes into `<module>.log`."""
    with (scratch / f"{module}.log").open("wb") as log:
        command = [sys.executable, "-m", module, *arguments]
        started = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield started
        finally:
            started.terminate()
            try:
                started.wait(15)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


def wait(scratch: pathlib.Path, processes: list[subprocess.Popen[bytes]], good: Callable[[], bool]) -> None:
    """Until `good()`, while all processes live. SystemExit with their logs when that does not come."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and all(one.poll() is None for one in processes):
        if good():
            return
        time.sleep(0.05)
    logs = "\n".join(f"--- {path.name}\n{path.read_text('utf-8', 'replace')}" for path in scratch.glob("*.log"))
    raise SystemExit(f"the gateway and its fixtures did not start:\n{logs}")


def listens(address: str) -> bool:
    """Whether somebody accepts connections there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def ready(admin: str, namespaces: AbstractSet[str] = NAMESPACES) -> bool:
    """Whether the gateway is ready and serves exactly these namespaces."""
    try:
        with urllib.request.urlopen(f"http://{admin}/config_dump", timeout=1) as response:
            state = json.load(response)
    except (urllib.error.URLError, OSError):
        return False
    return bool(state["ready"]) and set(state["scopes"][0]["namespaces"]) == namespaces


def with_ports(text: str, ports: dict[int, int]) -> str:
    """The text with the ports of this run."""
    return re.sub(r":(\d+)\b", lambda found: f":{ports.get(int(found[1]), found[1])}", text)


if __name__ == "__main__":
    sys.exit(main())
