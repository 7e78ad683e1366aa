"""`arion-tds watch`: what changes in a running gateway, a line each, until Ctrl-C."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from arion_tds.cli import asking, showing
from arion_tds.cli.showing import Cell
from arion_tds.errors import AskError

PAUSE = 1.0
"""Seconds before a lost stream is opened again."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("watch", help="follow what changes in a running gateway")
    parser.add_argument("--recent", action="store_true", help="begin with what happened lately")
    parser.add_argument("--limit", type=int, metavar="N", help="end after so many events")
    asking.options(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Follow until told to stop; a gateway that goes away is waited for."""
    left, last, seen = chosen.limit, "0" if chosen.recent else "", False
    while left is None or left > 0:
        try:
            for number, name, data in asking.events(chosen, last):
                last, seen = number, True
                _tell(chosen, name, data)
                if left is not None:
                    left -= 1
                    if left <= 0:
                        return 0
            seen = True
        except AskError:
            if not seen:
                raise
        print("the gateway went away; waiting for it", file=sys.stderr)
        # Another process counts its events from 1 again.
        last = ""
        time.sleep(PAUSE)
    return 0


def _tell(chosen: argparse.Namespace, name: str, data: dict[str, Any]) -> None:
    if chosen.json:
        print(json.dumps({"event": name, **data}, ensure_ascii=False), flush=True)
        return
    at = time.strftime("%H:%M:%S", time.localtime(data["at"])) if "at" in data else "        "
    try:
        told = _told(name, data)
    except KeyError:  # a gateway of another version says less
        told = (f"{name} {json.dumps(data, ensure_ascii=False)}",)
    showing.line((f"{at}  ", "dim"), *told)
    sys.stdout.flush()


def _told(name: str, data: dict[str, Any]) -> tuple[Cell, ...]:
    match name:
        case "catalog":
            parts = [_names(sign, data[what]) for sign, what in (("+", "added"), ("~", "changed"), ("-", "removed"))]
            return (data["scope"], "bold"), f"  {data['tools']} tools  {' '.join(part for part in parts if part)}"
        case "rejected":
            return (f"rejected {data['type']} {data['name']} version {data['version']!r}: ", "red"), data["reason"]
        case "control_plane" if data["connected"]:
            return (("control plane is here", "green"),)
        case "control_plane":
            return ((f"control plane is away: {data['reason']}", "red"),)
        case _:
            raise KeyError(name)


def _names(sign: str, part: dict[str, Any]) -> str:
    names, count = part["names"], part["count"]
    more = f" {sign}{count - len(names)} more" if count > len(names) else ""
    return " ".join(f"{sign}{one}" for one in names) + more
