"""`arion-tds search QUERY`: what a listener's search finds, as its clients would."""

from __future__ import annotations

import argparse
import sys

from arion_tds.cli import asking, showing


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("search", help="search a running gateway's tools as a client would")
    parser.add_argument("query", metavar="QUERY", nargs="+", help="words; what the tool should do")
    parser.add_argument("--namespace", help="in this namespace only")
    parser.add_argument("--limit", type=int, default=10, help="results (default: 10)")
    asking.listener_options(parser)
    asking.token_option(parser)
    asking.options(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Ask and tell. Status 1 when nothing is found."""
    endpoint, scope = asking.listener(chosen)
    body = {"query": " ".join(chosen.query), "limit": chosen.limit}
    if chosen.namespace is not None:
        body["namespace"] = chosen.namespace
    found = asking.post(chosen, f"{endpoint}/search", body)
    tools = found["tools"]
    if chosen.json:
        showing.as_json(found)
        return 0 if tools else 1
    rows = [((one["name"], "bold"), f"{one['score']:.3f}", showing.shortened(one["description"])) for one in tools]
    showing.table(("name", "score", "description"), rows)
    corrected = "".join(f", {typed!r} read as {read!r}" for typed, read in found.get("corrected", {}).items())
    print(f"{len(tools)} of {found['total']} in {scope}, by {found['ranking']}{corrected}", file=sys.stderr)
    if not tools:
        print(f"nothing fits: fewer words, or arion-tds tools --scope {scope}", file=sys.stderr)
    return 0 if tools else 1
