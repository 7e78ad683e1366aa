"""`arion-tds COMMAND`: parse the arguments and hand over to the command's module. Status: 0 good, 1 bad, 2 usage."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import arion_tds
from arion_tds.cli import check, openapi, serve
from arion_tds.errors import BindError, ConfigError

_COMMANDS = (serve, check, openapi)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Every expected failure is a sentence on standard error, never a traceback."""
    parser = argparse.ArgumentParser(
        prog="arion-tds", description="An MCP gateway whose tool catalog is pushed by a control plane."
    )
    parser.add_argument("--version", action="version", version=f"arion-tds {arion_tds.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.register(commands)
    chosen = parser.parse_args(arguments)
    try:
        status: int = chosen.run(chosen)
    except ConfigError as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        count = len(error.problems)
        print(f"{count} mistake{'s' if count > 1 else ''}: nothing was started", file=sys.stderr)
        return 1
    except BindError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return status
