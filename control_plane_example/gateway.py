"""A real gateway as a process of a test: `python -m arion_tds serve -c FILE`.

In: a config file. Out: readiness, the addresses it listens on, its log and exit code. Called by pytest_plugin.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from pathlib import Path
from typing import Final

import aiohttp

READY_SECONDS: Final = 60.0
STOP_SECONDS: Final = 10.0
LOG_LINES: Final = 10_000


class Gateway:
    """One gateway process. Who starts it stops it."""

    def __init__(self, path: Path, admin: str) -> None:
        """`path`: the config file. `admin`: `host:port` of its admin listener, which has to be a fixed port."""
        self.admin = f"http://{admin}"
        self._path = path
        self._listeners: dict[str, str] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._lines: deque[str] = deque(maxlen=LOG_LINES)

    def url(self, listener: str | None = None) -> str:
        """The MCP endpoint of the listener of that name (None: of the first one). KeyError when there is none."""
        if listener is None:
            return next(iter(self._listeners.values()))
        return self._listeners[listener]

    def logs(self) -> str:
        """What the process wrote so far (its last 10,000 lines), standard output and error together."""
        return "\n".join(self._lines)

    async def start(self, timeout: float = READY_SECONDS) -> None:
        """Start the process and wait until it is ready; RuntimeError with its log when it ends or takes too long."""
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "arion_tds", "serve", "-c", str(self._path),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        self._reader = asyncio.create_task(self._read(process))
        try:
            async with asyncio.timeout(timeout), aiohttp.ClientSession(self.admin) as http:
                while not await _is_ready(http):
                    if process.returncode is not None:
                        await self._reader
                        raise RuntimeError(f"the gateway ended with {process.returncode}:\n{self.logs()}")
                    await asyncio.sleep(0.05)
                async with http.get("/config_dump") as response:
                    listeners = (await response.json())["listeners"]
        except TimeoutError:
            await self.stop()
            raise RuntimeError(f"the gateway was not ready after {timeout:g} s:\n{self.logs()}") from None
        self._listeners = {name: listener["endpoint"] for name, listener in listeners.items()}

    async def stop(self) -> int:
        """Stop the process: SIGTERM, after 10 s SIGKILL. Returns its exit code; safe to call again."""
        process, reader = self._process, self._reader
        if process is None or reader is None:
            return 0
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await process.wait()
            except TimeoutError:
                process.kill()
        code = await process.wait()
        await reader
        return code

    async def kill(self) -> None:
        """End the process as a crash does (SIGKILL); returns when it is gone. `stop` is still to be called."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        stream = process.stdout
        if stream is None:
            return
        rest = b""
        while data := await stream.read(65536):
            *lines, rest = (rest[-65536:] + data).split(b"\n")
            self._lines.extend(line.decode(errors="replace") for line in lines)
        if rest:
            self._lines.append(rest.decode(errors="replace"))


async def _is_ready(http: aiohttp.ClientSession) -> bool:
    try:
        async with http.get("/readyz", timeout=aiohttp.ClientTimeout(total=1)) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False
