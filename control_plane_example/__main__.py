"""The command: `python -m control_plane_example [DIR] --address HOST:PORT --http HOST:PORT`.

In: arguments. Out: one line on standard output once it serves, log lines on standard error. Composition root: it owns
the clock, the servers and the one task that follows the folder.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final

try:
    from control_plane_example.documents import DEFAULT_FLEET
    from control_plane_example.files import Folder, Scan
    from control_plane_example.http import HttpApi
    from control_plane_example.server import Settings, XdsServer
    from control_plane_example.snapshot import Origin
except ModuleNotFoundError as missing:
    sys.exit(
        f"the example control plane needs the module {str(missing.name).partition('.')[0]!r}, which {sys.executable} "
        "does not have: pip install 'arion-tds[control-plane]', or in a checkout take .venv/bin/python"
    )

POLL_SECONDS: Final = 0.07
"""Between two looks at the folder. A change counts when two looks agree, so it is served after 70 to 140 ms."""

_log: Final = logging.getLogger("control_plane")


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM. Returns the exit code: 0, or 2 when an address cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m control_plane_example", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="folder of *.yaml, *.yml, *.json documents")
    parser.add_argument("--address", default="127.0.0.1:50051", help="xDS address (default %(default)s; port 0: any)")
    parser.add_argument("--http", default="127.0.0.1:50052", help="HTTP address (default %(default)s; port 0: any)")
    parser.add_argument(
        "--unknown-fleet",
        choices=("wait", "unavailable"),
        default="wait",
        help="what a stream of a fleet without any resource gets: no answer yet, or UNAVAILABLE (default %(default)s)",
    )
    options = parser.parse_args(arguments)
    if options.folder is not None and not options.folder.is_dir():
        print(f"{options.folder} is not a folder: make it, or name another", file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    try:
        asyncio.run(_serve(options))
    except (OSError, ValueError) as error:
        print(f"cannot serve: {error}", file=sys.stderr)
        return 2
    return 0


async def _serve(options: argparse.Namespace) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, stopped.set)
    clock = time.time  # noqa: TID251 - the composition root hands the clock down
    server = XdsServer(Settings(clock=clock, unknown_fleet=options.unknown_fleet))
    follower = Follower(server, options.folder)
    http = HttpApi(server, follower.status)
    try:
        # Listening first lets gateways connect early; nothing is answered before the folder is loaded.
        address = await server.start(options.address)
        await follower.look()
        server.publish_fleet(DEFAULT_FLEET)
        server.open()
        http_address = await http.start(options.http)
        print(f"serving xDS on {address} and HTTP on http://{http_address}", flush=True)
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(follower.run())
            await stopped.wait()
            following.cancel()
    finally:
        await http.stop()
        await server.stop()


class Follower:
    """Keeps what is published equal to the folder (None: there is no folder, and nothing to do)."""

    def __init__(self, server: XdsServer, path: Path | None) -> None:
        self._server = server
        self._folder = None if path is None else Folder(path)
        self._faults: dict[str, str] = {}

    async def run(self, interval: float = POLL_SECONDS) -> None:
        """Look again and again, until cancelled."""
        while self._folder is not None:
            await asyncio.sleep(interval)
            await self.look()

    async def look(self) -> None:
        """Take over what changed, and say so."""
        if self._folder is None:
            return
        scan: Scan = await asyncio.to_thread(self._folder.scan)
        for name, fault in scan.faults.items():
            if self._faults.get(name) != fault:
                _log.error("file %s: %s; what it served before stays", name, fault)
        for name in self._faults:
            if name not in scan.faults:
                _log.info("file %s: can be taken again", name)
        self._faults = scan.faults
        if scan.updates or scan.removals:
            self._server.publish(scan.updates, scan.removals, Origin.FILE)

    def status(self) -> dict[str, Any]:
        """`{"folder", "file_faults": {file: sentence}}`."""
        folder = None if self._folder is None else str(self._folder.path)
        return {"folder": folder, "file_faults": self._faults}


if __name__ == "__main__":
    sys.exit(main())
