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
        return 0 if found.get("ready") else 1
    ready: Cell = ("ready", "bold green") if found.get("ready") else ("not ready", "bold red")
    showing.line(f"arion-tds {_of(found, 'version')}: ", ready)
    if found.get("last_reload_error"):
        why = f"the config file is refused, generation {_of(found, 'config_generation')} stays in use: "
        showing.line((why, "red"), " ".join(found["last_reload_error"].split("\n")))
    _plane(found.get("control_plane"))
    _workers(found)
    _title("listeners")
    rows = [
        (name, *(_of(one, key) for key in ("endpoint", "scope", "open_streams", "running_calls")))
        for name, one in found.get("listeners", {}).items()
    ]
    showing.table(("name", "endpoint", "scope", "streams", "calls"), rows)
    _title("scopes")
    scopes = map(_scope, found.get("scopes", ()))
    showing.table(("scope", "tools", "tokens", "revision", "namespaces"), scopes)
    troubles = list(_troubles(found))
    if troubles:
        _title("upstreams in trouble")
        showing.table(("upstream", "what"), troubles)
    rejected = found.get("problems", {}).get("rejected")
    if rejected:
        showing.line((f"rejected: {showing.counted(rejected, 'resource')}", "bold red"), ", see arion-tds problems")
    return 0 if found.get("ready") else 1


def _of(one: _Json, key: str) -> str:
    """What stands there, or "-": gateways of other versions say less."""
    value = one.get(key)
    return "-" if value is None else str(value)


def _title(text: str) -> None:
    if showing.on_terminal():
        showing.line("")
        showing.line((text, "bold underline"))


def _plane(plane: _Json | None) -> None:
    if plane is None:
        showing.line("control plane: none is configured")
        return
    if plane.get("connected"):
        age = showing.span(plane.get("last_response_age_seconds"))
        state: Cell = (f"up for {showing.span(plane.get('connected_for_seconds'))}, last response {age} ago", "green")
    else:
        last = f"; last: {plane['last_error']}" if plane.get("last_error") else ""
        state = (f"away, {_of(plane, 'attempts')} tries{last}; what it sent stays served", "red")
    showing.line(f"control plane {_of(plane, 'address')}: ", state)


def _workers(found: _Json) -> None:
    """Each process, where there are several; the listeners' streams and calls are those of the one that was asked."""
    if "workers" not in found:
        return
    _title(f"workers (worker {_of(found, 'worker')} answers)")
    showing.table(("worker", "pid", "state", "config", "streams", "calls"), [_worker(one) for one in found["workers"]])


def _worker(one: _Json) -> tuple[Cell, ...]:
    if "pid" not in one:
        return _of(one, "worker"), "-", ("does not answer", "red"), "-", "-", "-"
    state: Cell = ("draining" if one.get("draining") else "not ready" if "ready" in one else "-", "red")
    if one.get("ready"):
        state = ("ready", "green")
    config = f"generation {_of(one, 'config_generation')}"
    return _of(one, "worker"), _of(one, "pid"), state, config, _of(one, "open_streams"), _of(one, "running_calls")


def _scope(one: _Json) -> tuple[Cell, ...]:
    held = one.get("namespaces", {})
    spaces = [f"{name} ({_of(space, 'owner')}, {_of(space, 'tools')})" for name, space in list(held.items())[:8]]
    more = f", and {len(held) - 8} more" if len(held) > 8 else ""
    tokens = one.get("tokens")
    cost = "-" if tokens is None else f"{'' if tokens.get('exact') else '~'}{_of(tokens, 'total')}"
    return _of(one, "scope"), _of(one, "tools"), cost, _of(one, "revision"), ", ".join(spaces) + more


def _troubles(found: _Json) -> Iterator[tuple[Cell, ...]]:
    for one in found.get("mcp_servers", ()):
        if one.get("state") == "failing":
            what = f"{_of(one, 'last_error')} ({showing.ago(one.get('last_error_at'))} ago)"
            yield f"MCP server {_of(one, 'url')}", (what, "red")
    for one in found.get("pending_servers", ()):
        what = f"asked {_of(one, 'failures')} times {one.get('reason', '')}".strip()
        yield f"MCP server of {_of(one, 'scope')}/{_of(one, 'namespace')}", (what, "yellow")
    for one in found.get("clusters", ()):
        for endpoint in one.get("endpoints", ()):
            if endpoint.get("down"):
                yield f"cluster {_of(one, 'name')}, {_of(endpoint, 'origin')}", (_of(endpoint, "last_error"), "red")
