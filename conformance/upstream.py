"""The official suite on the gateway's other side: `python -m conformance.upstream BIN` (`make conformance-upstream`).

In: the folder with the suite's commands (scripts/node_packages.py prints it). Out: a table of results; status 0 when
exactly the expected checks fail. Two halves:

- The gateway in front of one MCP server that has all of the suite's fixture tools (fixture_upstream), once of
  2026-07-28 and once of the handshake era. Judged by the same expectations as `make conformance`.
- The gateway as a client: the suite's mock servers stand behind it (sandwich), and judge what it says to them. Judged
  by expected-failures-client.yml.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import yaml

from conformance import judge, run
from control_plane_example.ports import free_ports

SERVER = ("2026-07-28 server", "handshake server")
CLIENT = "as a client, {}"
PAGE = run.ROOT / "docs" / "upstreams.md"
NOT_OURS = ("auth/", "sep-2640-")
"""Scenarios of OAuth clients and of the skills extension: the gateway is neither."""

CLIENT_SECONDS = 60
AT_ONCE = 4
"""Scenarios of the second half that run side by side: each mostly waits for its processes to start and end."""


def main() -> int:
    """Run both halves, compare, print."""
    parser = argparse.ArgumentParser(description="The conformance suite behind the gateway")
    parser.add_argument("bin", type=pathlib.Path, help="folder with the commands `node` and `conformance`")
    parser.add_argument("--write", action="store_true", help="put the table of the second half into docs/upstreams.md")
    options = parser.parse_args()
    runs: dict[str, tuple[dict[str, judge.Outcome], dict[str, judge.Expected]]] = {}
    faults: list[str] = []

    def note(column: str, results: dict[str, judge.Outcome], name: str, wanted: list[str]) -> None:
        path = run.HERE / f"expected-failures-{name}.yml"
        whole = judge.expectations(yaml.safe_load(path.read_text("utf-8")) or {})
        expected = {scenario: one for scenario, one in whole.items() if scenario in wanted}
        runs[column] = {scenario: results[scenario] for scenario in wanted if scenario in results}, expected
        faults.extend(f"{column}: {fault}" for fault in judge.faults(results, expected, wanted))

    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for column, handshake in zip(SERVER, (False, True), strict=True):
            with gateway(scratch / column, handshake=handshake) as url:
                for revision in run.REVISIONS[:1] if handshake else run.REVISIONS:
                    results = run.suite(options.bin, url, revision, scratch / column / revision)
                    note(f"{revision}, {column}", results, revision, run.scenarios(options.bin, revision))
        served = set(runs)
        for revision in run.REVISIONS:
            wanted = client_scenarios(options.bin, revision)
            with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
                one = functools.partial(client, options.bin, revision=revision, scratch=scratch)
                results = dict(zip(wanted, pool.map(one, wanted), strict=True))
            note(CLIENT.format(revision), results, "client", wanted)
    print(judge.table(runs))
    for column, (results, _) in runs.items():
        print(f"{column}: {judge.totals(results)}")
    as_client = {column: found for column, found in runs.items() if column not in served}
    faults += run.check_page(PAGE, judge.table(as_client), write=options.write)
    for fault in faults:
        print(f"NOT AS EXPECTED: {fault}", file=sys.stderr)
    return 1 if faults else 0


def client_scenarios(commands: pathlib.Path, revision: str) -> list[str]:
    """What the suite requires of a client at a revision, as far as it concerns a gateway."""
    package = commands.parent / "@modelcontextprotocol" / "conformance"
    document = yaml.safe_load((package / "requirements" / f"{revision}.yaml").read_text("utf-8"))
    unscored = [one["scenario"] for one in document["not_scored"] if one["leg"] == "client"]
    return [name for name in (*document["client"], *unscored) if not name.startswith(NOT_OURS)]


def client(commands: pathlib.Path, scenario: str, revision: str, scratch: pathlib.Path) -> judge.Outcome:
    """Run one scenario against the gateway as a client."""
    out = scratch / "client" / revision
    command = f"{sys.executable} -m conformance.sandwich"
    arguments = ("--command", command, "--scenario", scenario, "--spec-version", revision, "-o", out)
    done = subprocess.run(
        [commands / "conformance", "client", *arguments],
        env=run.environment(commands),
        cwd=run.ROOT,
        capture_output=True,
        text=True,
        timeout=CLIENT_SECONDS,
        check=False,
    )
    for path in out.glob("**/checks.json"):
        if re.fullmatch(re.escape(scenario) + r"-\d{4}-\d\d-\d\dT[\w-]+", path.parent.name):
            return judge.outcome(json.loads(path.read_text("utf-8")))
    raise SystemExit(f"the suite gave no results of {scenario}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


@contextlib.contextmanager
def gateway(scratch: pathlib.Path, *, handshake: bool) -> Iterator[str]:
    """A gateway with one MCP server behind it, on free ports. Yields the MCP endpoint."""
    (scratch / "catalog").mkdir(parents=True)
    ports = dict(zip(run.DOCUMENTED, free_ports(len(run.DOCUMENTED)), strict=True))
    for path in (run.HERE / "catalog" / "server.yaml", run.HERE / "gateway.yaml"):
        copy = scratch / ("catalog" if path.parent.name == "catalog" else "") / path.name
        copy.write_text(run.with_ports(path.read_text("utf-8"), ports), encoding="utf-8")
    control_plane, http, admin, listener, _, server = (f"127.0.0.1:{port}" for port in ports.values())
    with contextlib.ExitStack() as stack:
        fixtures: tuple[tuple[str, ...], ...] = (
            ("control_plane_example", str(scratch / "catalog"), "--address", control_plane, "--http", http),
            (
                *("conformance.fixture_upstream", "--port", server.rpartition(":")[2]),
                *(("--handshake",) if handshake else ()),
            ),
        )
        processes = [stack.enter_context(run.process(scratch, *arguments)) for arguments in fixtures]
        for address in (http, server):
            run.wait(scratch, processes, functools.partial(run.listens, address))
        serve = ("arion_tds", "serve", "-c", str(scratch / "gateway.yaml"), "--workers", "1")
        processes.append(stack.enter_context(run.process(scratch, *serve)))
        run.wait(scratch, processes, functools.partial(run.ready, admin, {"server"}))
        yield f"http://{listener}/mcp"


if __name__ == "__main__":
    sys.exit(main())
