"""`arion-tds serve -c gateway.yaml`: run the gateway until SIGTERM or SIGINT; SIGHUP reads the file again."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import signal
import sys
from typing import Final

from arion_tds import app, log
from arion_tds.config import judging

if sys.platform != "win32":
    import resource

    import uvloop

_FILES: Final = 1 << 20
"""Open files that are enough."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("serve", help="run the gateway")
    parser.add_argument("-c", "--config", required=True, metavar="FILE", help="gateway.yaml")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Serve until told to stop."""
    loaded = judging.load(chosen.config)
    log.setup(loaded.file.log.level, loaded.file.log.format)
    _more_files()
    # A catalog is hundreds of thousands of objects that live long: looking for cycles among them is what stalls a loop.
    gc.set_threshold(100_000, 50, 100)
    factory = uvloop.new_event_loop if sys.platform != "win32" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_serve(loaded, chosen.config))
    return 0


def _more_files() -> None:
    """Connections are files: have as many as the system allows, not as many as it gives to whoever does not ask."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(loaded: judging.Config, path: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with app.running(loaded, path) as gateway:
        if sys.platform != "win32":
            loop.add_signal_handler(signal.SIGHUP, gateway.reloader.ask)
        gc.freeze()
        await stop.wait()
        stop.clear()  # a second signal cuts the delay short
        await gateway.drain(stop)
