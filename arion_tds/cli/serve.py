"""`arion-tds serve -c gateway.yaml`: run the gateway until SIGTERM or SIGINT; SIGHUP reads the file again.

Where several processes are to serve, this one starts and watches them, and imports nothing that serves.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time

from arion_tds import log
from arion_tds.config import sharing
from arion_tds.workers import choosing


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("serve", help="run the gateway")
    parser.add_argument("-c", "--config", required=True, metavar="FILE", help="gateway.yaml")
    parser.add_argument(
        "--workers",
        type=_count,
        metavar="N",
        help=f"processes that serve (default: `workers` of the file, else the cores, up to {sharing.USUAL})",
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)  # says in a list of processes which one this is
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Serve until told to stop."""
    if chosen.worker is None:
        plan = choosing.choose(chosen.config, chosen.workers)
        if plan.count > 1:
            return _supervise(chosen.config, plan)
    from arion_tds.cli import serving  # everything that serves is behind it

    return serving.alone(chosen.config) if chosen.worker is None else serving.worker(chosen.config)


def _supervise(path: str, plan: choosing.Plan) -> int:
    from arion_tds.workers.supervisor import Supervisor

    log.setup(*plan.log)
    command = (sys.executable, "-P", "-m", "arion_tds", "serve", "-c", path)
    rng = random.Random()  # noqa: S311 - jitter, not secrets
    return asyncio.run(Supervisor(command, plan, clock=time.monotonic, rng=rng).run())


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= sharing.MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {sharing.MOST}")
    return int(text)
