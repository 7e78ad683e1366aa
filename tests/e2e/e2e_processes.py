"""Real processes for the end-to-end tests, and the bounded wait for what they do.

`eventually` polls a real condition within a bound. `Process` is a command with its log in a file. `Demo` is what
`make demo` starts, on free ports and with copies of its files. Used by the fixtures and tests of this folder.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self, TypeVar

import aiohttp
import pytest

from control_plane_example.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30.0
STOP_SECONDS = 15.0


_T = TypeVar("_T")


async def eventually(look: Callable[[], Awaitable[_T]], timeout: float = 15.0, interval: float = 0.03) -> _T:
    """Look again and again until `look` returns without AssertionError or a connection error; what it returned.

    For conditions in other processes, which nobody can be told of. After `timeout` seconds the last error is raised.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout
    while True:
        try:
            return await look()
        except (AssertionError, aiohttp.ClientError, TimeoutError, OSError):
            if loop.time() >= end:
                raise
        await asyncio.sleep(interval)


class Process:
    """A command that runs in a session of its own, so that children which outlive it can be seen."""

    def __init__(self, log: Path, *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
        self._log = log
        self._file = log.open("ab")
        self.child = subprocess.Popen(
            arguments,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @classmethod
    def module(cls, log: Path, module: str, *arguments: str) -> Self:
        """`python -m module …` with this interpreter."""
        return cls(log, sys.executable, "-m", module, *arguments)

    def log(self) -> str:
        """What it wrote so far, standard output and error together."""
        return self._log.read_text("utf-8", "replace")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal if it still runs, wait, and return the exit code."""
        if self.child.poll() is None:
            self.child.send_signal(number)
        try:
            return self.child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{self.child.args} did not end within {STOP_SECONDS:g} s of {number.name}:\n{self.log()}")
        finally:
            self.kill()

    def kill(self) -> None:
        """End whatever is left of its session, the hard way."""
        if self.survivors():
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        self._file.close()

    def survivors(self) -> bool:
        """Whether a process of its session still runs."""
        self.child.poll()  # a child that ended and was not waited for would count
        try:
            os.killpg(self.child.pid, 0)
        except ProcessLookupError:
            return False
        return True


def ports_for(*texts: str) -> dict[int, int]:
    """A free port for every port of 127.0.0.1 that stands in the texts."""
    documented = sorted({int(found) for text in texts for found in re.findall(r"127\.0\.0\.1:(\d+)", text)})
    return dict(zip(documented, free_ports(len(documented)), strict=True))


def with_ports(text: str, ports: dict[int, int]) -> str:
    """The text with every port of the documentation replaced by one of the test. `ports`: documented → free."""
    return re.sub(r":(\d+)\b", lambda found: f":{ports.get(int(found[1]), found[1])}", text)


@dataclasses.dataclass
class Demo:
    """The three processes of `make demo`; the control plane can be killed and started again."""

    folder: Path
    ports: dict[int, int]
    processes: dict[str, Process] = dataclasses.field(default_factory=dict)

    @property
    def catalog(self) -> Path:
        """The folder that the control plane serves."""
        return self.folder / "catalog"

    def url(self, documented: int, path: str) -> str:
        """An address of the documentation, as it is in this test."""
        return f"http://127.0.0.1:{self.ports[documented]}{path}"

    def start(self, name: str, module: str, *arguments: str) -> Process:
        """Start one of the processes; its log is in the folder."""
        made = Process.module(self.folder / f"{name}.log", module, *(with_ports(one, self.ports) for one in arguments))
        self.processes[name] = made
        return made

    def start_control_plane(self) -> Process:
        """The example control plane on its documented addresses."""
        return self.start(
            "control_plane", "control_plane_example", str(self.catalog),
            "--address", "127.0.0.1:50051", "--http", "127.0.0.1:50052",
        )  # fmt: skip

    def start_all(self) -> None:
        """As scripts/demo.py does."""
        shutil.copytree(ROOT / "control_plane_example" / "catalog", self.catalog)
        config = with_ports((ROOT / "examples" / "gateway.yaml").read_text("utf-8"), self.ports)
        # Only so that a test which restarts the control plane is not kept waiting.
        address = f"control_plane: {{address: 127.0.0.1:{self.ports[50051]}"
        assert address in config
        path = self.folder / "gateway.yaml"
        path.write_text(config.replace(address, address + ", backoff_base: 0.1, backoff_max: 0.3"), encoding="utf-8")
        self.start_control_plane()
        self.start("service", "control_plane_example.sample_service", "--address", "127.0.0.1:4001")
        self.start("gateway", "arion_tds", "serve", "-c", str(path), "--workers", "1")

    async def get(self, documented: int, path: str) -> Any:
        """The JSON at an address of the documentation."""
        async with aiohttp.ClientSession() as http, http.get(self.url(documented, path)) as response:
            return await response.json()

    async def post(self, documented: int, path: str, body: object) -> Any:
        """POST JSON to an address of the documentation; the JSON that comes back."""
        async with aiohttp.ClientSession() as http, http.post(self.url(documented, path), json=body) as response:
            return await response.json()

    async def ready(self) -> None:
        """Until the gateway says that it is ready; fails with every log."""

        async def look() -> None:
            assert (await self.get(9901, "/readyz"))["ready"] is True, self.logs()

        await eventually(look, START_SECONDS)

    def logs(self) -> str:
        """What all processes wrote."""
        return "\n".join(f"--- {name}\n{process.log()}" for name, process in self.processes.items())
