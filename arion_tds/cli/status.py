"""`arion-tds status`: one screen about a running gateway. Status 1 when it is not ready."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from arion_tds.cli import asking, showing
from arion_tds.cli.showing import Cell

_Json = dict[str, Any]


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("status", help="show listeners, scopes, the control plane and upstreams")
    asking.options(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Ask and tell."""
    found = asking.get(chosen, "/status")
    if chosen.json:
        showing.as_json(found)
        return 0 if found["ready"] else 1
    ready: Cell = ("ready", "bold green") if found["ready"] else ("not ready", "bold red")
    showing.line(f"arion-tds {found['version']}: ", ready)
    if found["last_reload_error"]:
        why = f"the config file is refused, generation {found['config_generation']} stays in use: "
        showing.line((why, "red"), " ".join(found["last_reload_error"].split("\n")))
    _plane(found.get("control_plane"))
    _workers(found)
    _title("listeners")
    rows = [
        (name, one["endpoint"], one["scope"], str(one["open_streams"]), str(one["running_calls"]))
        for name, one in found["listeners"].items()
    ]
    showing.table(("name", "endpoint", "scope", "streams", "calls"), rows)
    _title("scopes")
    showing.table(("scope", "tools", "tokens", "revision", "namespaces"), [_scope(one) for one in found["scopes"]])
    troubles = list(_troubles(found))
    if troubles:
        _title("upstreams in trouble")
        showing.table(("upstream", "what"), troubles)
    rejected = found["problems"]["rejected"]
    if rejected:
        showing.line((f"rejected: {showing.counted(rejected, 'resource')}", "bold red"), ", see arion-tds problems")
    return 0 if found["ready"] else 1


def _title(text: str) -> None:
    if showing.on_terminal():
        showing.line("")
        showing.line((text, "bold underline"))


def _plane(plane: _Json | None) -> None:
    if plane is None:
        showing.line("control plane: none is configured")
        return
    if plane["connected"]:
        age = showing.span(plane["last_response_age_seconds"])
        state: Cell = (f"up for {showing.span(plane['connected_for_seconds'])}, last response {age} ago", "green")
    else:
        last = f"; last: {plane['last_error']}" if plane["last_error"] else ""
        state = (f"away, {plane['attempts']} tries{last}; what it sent stays served", "red")
    showing.line(f"control plane {plane['address']}: ", state)


def _workers(found: _Json) -> None:
    """Each process, where there are several; the listeners' streams and calls are those of the one that was asked."""
    if "workers" not in found:
        return
    _title(f"workers (worker {found['worker']} answers)")
    showing.table(("worker", "pid", "state", "config", "streams", "calls"), [_worker(one) for one in found["workers"]])


def _worker(one: _Json) -> tuple[Cell, ...]:
    if "pid" not in one:
        return str(one["worker"]), "-", ("does not answer", "red"), "-", "-", "-"
    state: Cell = ("ready", "green") if one["ready"] else ("draining" if one["draining"] else "not ready", "red")
    config = f"generation {one['config_generation']}"
    return str(one["worker"]), str(one["pid"]), state, config, str(one["open_streams"]), str(one["running_calls"])


def _scope(one: _Json) -> tuple[Cell, ...]:
    spaces = [f"{name} ({held['owner']}, {held['tools']})" for name, held in list(one["namespaces"].items())[:8]]
    more = f", and {len(one['namespaces']) - 8} more" if len(one["namespaces"]) > 8 else ""
    tokens = one.get("tokens")
    cost = "-" if tokens is None else f"{'' if tokens['exact'] else '~'}{tokens['total']}"
    return one["scope"], str(one["tools"]), cost, str(one["revision"]), ", ".join(spaces) + more


def _troubles(found: _Json) -> Iterator[tuple[Cell, ...]]:
    for one in found["mcp_servers"]:
        if one["state"] == "failing":
            yield f"MCP server {one['url']}", (f"{one['last_error']} ({showing.ago(one['last_error_at'])} ago)", "red")
    for one in found["pending_servers"]:
        what = f"asked {one['failures']} times {one['reason']}".strip()
        yield f"MCP server of {one['scope']}/{one['namespace']}", (what, "yellow")
    for one in found["clusters"]:
        for endpoint in one["endpoints"]:
            if endpoint["down"]:
                yield f"cluster {one['name']}, {endpoint['origin']}", (str(endpoint["last_error"]), "red")
