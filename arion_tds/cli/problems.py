"""`arion-tds problems`: every resource that a running gateway refused or serves in part, and why."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from arion_tds.cli import asking, showing
from arion_tds.cli.showing import Cell


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("problems", help="list what a running gateway refused, and why")
    parser.add_argument("--scope", help="of this scope only")
    asking.options(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Ask and tell."""
    found = asking.get(chosen, "/problems", {"scope": chosen.scope})
    problems = found["problems"]
    if chosen.json:
        showing.as_json(found)
        return 0
    showing.table(("type", "resource", "version", "since", "state", "reason"), map(_row, problems))
    dropped = f" ({found['dropped']} older ones are forgotten)" if found["dropped"] else ""
    print(
        f"{showing.counted(len(problems), 'problem')}{dropped}" if problems else "nothing stands rejected",
        file=sys.stderr,
    )
    return 0


def _row(one: dict[str, Any]) -> tuple[Cell, ...]:
    state = (one["state"], "red" if one["state"] == "rejected" else "yellow")
    return one["type"], (one["name"], "bold"), one["version"], showing.ago(one["at"]), state, one["reason"]
