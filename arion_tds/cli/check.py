"""`arion-tds check -c gateway.yaml`: judge a config without starting anything; every mistake at once, with its path."""

from __future__ import annotations

import argparse

from arion_tds.config import judging


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("check", help="judge a config and say every mistake")
    parser.add_argument("-c", "--config", required=True, metavar="FILE", help="gateway.yaml")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print what is wrong (status 1) or a line that all is well (status 0)."""
    loaded = judging.load(chosen.config)
    for warning in loaded.warnings:
        print(f"warning: {warning}")
    listeners = len(loaded.file.listeners)
    print(f"{chosen.config}: good: {listeners} listener{'s' if listeners > 1 else ''}")
    return 0
