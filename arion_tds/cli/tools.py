"""`arion-tds tools`: what a running gateway serves, by scope or namespace."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from arion_tds.cli import asking, showing
from arion_tds.cli.showing import Cell

_Json = dict[str, Any]


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("tools", help="list the tools that a running gateway serves")
    parser.add_argument("--scope", help="of this scope only")
    parser.add_argument("--namespace", help="of this namespace only")
    parser.add_argument("--names", action="store_true", help="names alone, one a line")
    asking.options(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Ask and tell."""
    scopes = [chosen.scope] if chosen.scope else [one["scope"] for one in asking.get(chosen, "/status")["scopes"]]
    found = [{**tool, "scope": scope} for scope in scopes for tool in _all(chosen, scope)]
    if chosen.json:
        showing.as_json({"tools": found})
        return 0
    if chosen.names:
        for one in found:
            print(showing.clean(one["name"]))
        return 0
    showing.table(("name", "scope", "owner", "backend", "tokens", "seen by", "description"), map(_row, found))
    print(
        showing.counted(len(found), "tool") + (f" of {len(scopes)} scopes" if len(scopes) > 1 else ""), file=sys.stderr
    )
    return 0


def _all(chosen: argparse.Namespace, scope: str) -> Iterator[_Json]:
    after = None
    while True:
        params = {"scope": scope, "namespace": chosen.namespace, "after": after, "limit": 500}
        page = asking.get(chosen, "/tools", params)
        yield from page["tools"]
        after = page.get("next")
        if after is None:
            return


def _row(one: _Json) -> tuple[Cell, ...]:
    seen: Cell = ("some callers", "yellow") if one["restricted"] else "all"
    return (
        (one["name"], "bold"),
        one["scope"],
        str(one["owner"]),
        one["backend"],
        str(one.get("tokens", "-")),
        seen,
        showing.shortened(one["description"]),
    )
