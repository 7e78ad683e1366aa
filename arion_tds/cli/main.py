"""`arion-tds COMMAND`: parse the arguments and hand over to the command's module. Status: 0 good, 1 bad, 2 usage.

Only the module of the command that was asked for is imported: a question to a running gateway does not wait for gRPC to
load, and a gateway does not hold what draws tables.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterable, Sequence
from typing import Final

import arion_tds
from arion_tds.errors import AskError, BindError, ConfigError

COMMANDS: Final = (
    "serve", "check", "openapi", "tokens",
    "explain", "status", "tools", "search", "call", "problems", "watch",
    "completion",
)  # fmt: skip


def parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The command line with these commands."""
    made = argparse.ArgumentParser(
        prog="arion-tds", description="An MCP gateway whose tool catalog is pushed by a control plane."
    )
    made.add_argument("--version", action="version", version=f"arion-tds {arion_tds.__version__}")
    commands = made.add_subparsers(metavar="COMMAND", required=True)
    for name in names:
        importlib.import_module(f"arion_tds.cli.{name}").register(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Every expected failure is a sentence on standard error, never a traceback."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    asked = given[:1] if given and given[0] in COMMANDS else COMMANDS
    chosen = parser(asked).parse_args(given)
    try:
        status: int = chosen.run(chosen)
    except ConfigError as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        count = len(error.problems)
        print(f"{count} mistake{'s' if count > 1 else ''}: nothing was started", file=sys.stderr)
        return 1
    except (AskError, BindError) as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # `| head` has seen enough
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    return status
