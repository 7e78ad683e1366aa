"""`arion-tds explain NAME`: why a tool is, or is not, where somebody looks for it. Status 1 when it is not served."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Final

from arion_tds.cli import asking, showing

_SERVED: Final = frozenset(("served", "older_version", "not_listed", "restricted", "upstream_down"))


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("explain", help="say why a tool is, or is not, served by a running gateway")
    parser.add_argument(
        "name", metavar="NAME", help="a tool as clients or control planes call it, a namespace, or a resource ID"
    )
    parser.add_argument("--scope", help="look here only (default: wherever the name is known)")
    parser.add_argument(
        "--claim", metavar="NAME=VALUE", action="append", help="as a caller whose token says so; repeatable"
    )
    parser.add_argument("--header", metavar="NAME=VALUE", action="append", help="the same for the token's JOSE header")
    asking.options(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Ask and tell."""
    params = {"name": chosen.name, "scope": chosen.scope, "claim": chosen.claim, "header": chosen.header}
    found = asking.get(chosen, "/explain", params)
    answers: list[dict[str, Any]] = found["answers"]
    if chosen.json:
        showing.as_json(found)
    else:
        for one in answers:
            _tell(one)
        if not answers:
            print("this gateway has no scope yet: see arion-tds status", file=sys.stderr)
    return 0 if any(one["state"] in _SERVED for one in answers) else 1


def _tell(one: dict[str, Any]) -> None:
    word, style = showing.state(one)
    showing.line((f"{one['name']}", "bold"), f"  in {one['scope']}: ", (word, f"bold {style}"))
    showing.line(f"  {one['summary']}")
    for detail in one.get("details", ()):
        showing.line(f"  {detail}")
    for verdict in one.get("history", ()) if len(one.get("history", ())) > 1 else ():
        times = f", {verdict['times']} times" if verdict["times"] > 1 else ""
        reason = f": {verdict['reason']}" if verdict["reason"] else ""
        version = f" version {verdict['version']!r}" if verdict["version"] else ""
        told = f"  {showing.ago(verdict['at']):>7} ago  {verdict['outcome']}{version}{times}{reason}"
        showing.line((told, "dim"))
    for other in one.get("workers", ()):
        said = f"{showing.state(other)[0]}: {other.get('summary', '')}" if "state" in other else "has no answer"
        showing.line((f"  worker {other['worker']}: ", "bold yellow"), said)
    for advice in one.get("advice", ()):
        showing.line(("  next: ", "bold"), advice)
    if one.get("suggestions"):
        showing.line(("  did you mean: ", "bold"), ", ".join(one["suggestions"]))
