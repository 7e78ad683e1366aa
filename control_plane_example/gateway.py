"""A real gateway as a process of a test: `python -m arion_tds serve -c FILE`.

In: a config. Out: its addresses, readiness, log and exit code. Called by pytest_plugin.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from pathlib import Path
from typing import Any, Final

import aiohttp

READY_SECONDS: Final = 20.0
STOP_SECONDS: Final = 10.0
LOG_LINES: Final = 10_000


class Gateway:
    """One gateway process."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        """`path`: the config file. `config`: the same, to find the addresses in."""
        self.admin, self._listeners = addresses(config)
        self._path = path
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._lines: deque[str] = deque(maxlen=LOG_LINES)

    def url(self, listener: str | None = None) -> str:
        """The MCP endpoint of a listener, by its name or server name; None: of the first."""
        if listener is None:
            listener = next(iter(self._listeners))
        return self._listeners[listener]

    def logs(self) -> str:
        """What the process wrote so far (its last 10,000 lines), standard output and error together."""
        return "\n".join(self._lines)

    async def start(self, timeout: float = READY_SECONDS) -> None:
        """Start the process and wait until it is ready; RuntimeError with its log when it ends or takes too long."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "arion_tds", "serve", "-c", str(self._path),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        self._reader = asyncio.create_task(self._read(self._process))
        try:
            async with asyncio.timeout(timeout), aiohttp.ClientSession() as http:
                while not await self._is_ready(http):
                    if self._process.returncode is not None:
                        raise RuntimeError(f"the gateway ended with {self._process.returncode}:\n{self.logs()}")
                    await asyncio.sleep(0.05)
        except TimeoutError:
            await self.stop()
            raise RuntimeError(f"the gateway was not ready after {timeout:g} s:\n{self.logs()}") from None

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

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        stream = process.stdout
        if stream is None:
            return
        rest = b""
        while data := await stream.read(65536):
            *lines, rest = (rest + data).split(b"\n")
            self._lines.extend(line.decode(errors="replace") for line in lines)
        if rest:
            self._lines.append(rest.decode(errors="replace"))

    async def _is_ready(self, http: aiohttp.ClientSession) -> bool:
        try:
            async with http.get(f"{self.admin}/readyz", timeout=aiohttp.ClientTimeout(total=1)) as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


def addresses(config: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Where the config says that admin and the listeners are: (admin URL, name → URL of the MCP endpoint).

    Read are `admin.address` and, of each of `listeners`, `address` with `name` and `server_info.name`.
    """
    found: dict[str, str] = {}
    for index, listener in enumerate(config.get("listeners", [])):
        url = f"http://{listener['address']}/mcp"
        found[str(listener.get("name", index))] = url
        server = listener.get("gateway", listener).get("server_info", {}).get("name")
        if server:
            found.setdefault(server, url)
    return f"http://{config['admin']['address']}", found
