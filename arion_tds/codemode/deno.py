"""Sandboxes that are Deno processes: one process, one program, no permission at all.

In: the limits of a gateway. Out: ready sandboxes. Called by pool; needs the extra `code-mode` (the `deno` wheel).

What keeps a program in: Deno was given no permission (files, network, environment, processes, foreign code), imports
from elsewhere and Node's are off, and the environment holds nothing of ours. What keeps it small:
V8's heap cap, the watch over resident memory (buffers lie outside of V8's heap), kernel limits on files and CPU. What
ends it: SIGKILL to its process group, by us, or by the kernel when we are gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from arion_tds.codemode import process as processes
from arion_tds.codemode import protocol
from arion_tds.codemode.engine import Ending, GoneError, StartError
from arion_tds.codemode.limits import Limits, size
from arion_tds.codemode.process import Process
from arion_tds.errors import ConfigError

INSTALL: Final = "pip install 'arion-tds[code-mode]'"
_CHILD: Final = Path(__file__).parent / "child"
_FLAGS: Final = (
    *("run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-check"),
    *("--no-remote", "--no-npm", "--no-code-cache", "--cached-only"),
    f"--import-map={_CHILD / 'imports.json'}",  # Node's modules lead nowhere
)
_ENVIRONMENT: Final = {
    # What Deno would write about a program goes nowhere: not even the directory can be made.
    "DENO_DIR": f"{os.devnull}/none",
    "DENO_EMIT_CACHE_MODE": "disable",
    "DENO_NO_PACKAGE_JSON": "1",
    "DENO_NO_UPDATE_CHECK": "1",
    "NO_COLOR": "1",
}
_OPEN_FILES: Final = 64
_STDERR_KEPT: Final = 8192
_CLOSE_SECONDS: Final = 5.0
_log = logging.getLogger("arion_tds.codemode")


def find() -> str:
    """The path of the deno that the extra installed. ConfigError with the command to run where there is none."""
    try:
        return str(importlib.import_module("deno").find_deno_bin())
    except (ImportError, AttributeError, OSError):
        raise ConfigError([f"code_mode needs the sandbox engine, which is not installed: {INSTALL}"]) from None


def engine() -> Callable[[Limits], DenoEngine]:
    """What makes engines. ConfigError where the extra is not installed."""
    binary = find()
    return lambda limits: DenoEngine(binary, limits)


class DenoSandbox:
    """One process. Its tasks (stderr, memory) end with it and are waited for by `clear`."""

    def __init__(self, process: Process, limits: Limits, cleared: Callable[[DenoSandbox], None]) -> None:
        """`cleared` hears when nothing is left of it."""
        self._process = process
        self._limits = limits
        self._cleared = cleared
        self._ending: GoneError | None = None
        self._stderr = b""
        self._base = 0
        self._tasks = [asyncio.create_task(self._read_stderr())]
        self._clearing: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The process, which leads a group of its own."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.running and self._ending is None

    def watch(self) -> None:
        """Start to look at its memory. What it holds now is Deno's own."""
        self._base = processes.held(self.pid) or 0
        self._tasks.append(asyncio.create_task(self._watch_memory()))

    async def _watch_memory(self) -> None:
        limit = self._base + self._limits.memory_limit_bytes
        while (held := processes.held(self.pid)) is not None:
            if held > limit:
                self._end(Ending.MEMORY, f"held {size(held - self._base)}")
                return
            await asyncio.sleep(self._limits.watch_interval)

    async def _read_stderr(self) -> None:
        with contextlib.suppress(ConnectionError):
            while part := await self._process.errors.read(4096):
                self._stderr = (self._stderr + part)[:_STDERR_KEPT]  # V8 says what ails it first

    async def send(self, frame: bytes) -> None:
        """Write one line and wait until little of it is left with us."""
        if self._ending is None:
            with contextlib.suppress(ConnectionError, RuntimeError):  # RuntimeError: uvloop, when it has just closed
                self._process.writer.writelines((frame, b"\n"))
                await self._process.writer.drain()
                return
        raise await self._why()

    async def receive(self) -> bytes:
        """The next line."""
        try:
            if self._ending is None:
                return (await self._process.reader.readuntil(b"\n"))[:-1]
        except asyncio.LimitOverrunError:
            self._end(Ending.OVERLONG, f"sent a line of more than {size(self._limits.max_frame_bytes)}")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        raise await self._why()

    async def _why(self) -> GoneError:
        """The reason of the end. The streams can be at their end a little before the process is."""
        status: int | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                status = await self._process.wait()
                await self._tasks[0]
        if self._ending is not None:
            return self._ending
        if b"out of memory" in self._stderr.lower() or b"heap limit" in self._stderr:
            return GoneError(Ending.MEMORY, "filled the heap")
        if status is not None and status < 0:
            return GoneError(Ending.EXITED, f"was ended by {signal.Signals(-status).name}")
        return GoneError(Ending.EXITED, f"ended itself with status {status}")

    def _end(self, ending: Ending, detail: str) -> None:
        if self._ending is None:
            self._ending = GoneError(ending, detail)
        self._process.kill()

    async def clear(self) -> None:
        """Kill it, and return once the process is buried and its tasks are done. Any number may ask for it."""
        if self._clearing is None:
            self._process.kill()
            self._clearing = asyncio.create_task(self._clear())
        await asyncio.shield(self._clearing)

    async def _clear(self) -> None:
        await self._process.clear(_CLOSE_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._cleared(self)


class DenoEngine:
    """Starts sandboxes and clears them away. One per gateway, since the heap's size is set at the start.

    Fields belong to the event loop that made it. Close it.
    """

    def __init__(self, binary: str, limits: Limits) -> None:
        """`binary` comes from `find`."""
        self._binary = binary
        self._limits = limits
        self._sandboxes: dict[DenoSandbox, None] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._sandboxes)

    async def sandbox(self) -> DenoSandbox:
        """Start one and wait until it says that it is ready."""
        self._expect_open()
        try:
            made = await self._start()
        except OSError as error:
            raise StartError(f"{self._binary}: {error}") from error
        self._sandboxes[made] = None
        try:
            self._expect_open()
            async with asyncio.timeout(self._limits.start_timeout):
                frame = protocol.read(await made.receive())
        except TimeoutError:
            frame = f"nothing within {self._limits.start_timeout:g} s"
        except GoneError as error:
            frame = error.detail
        except BaseException:
            await made.clear()
            raise
        if not isinstance(frame, protocol.Ready) or frame.version != protocol.VERSION:
            await made.clear()
            raise StartError(f"a sandbox did not become ready: {frame}")
        return made

    def _expect_open(self) -> None:
        if self._closed:
            raise StartError("the gateway is shutting down")

    async def _start(self) -> DenoSandbox:
        limits = self._limits
        heap = max(8, limits.memory_limit_bytes >> 20)
        flags = f"--v8-flags=--max-old-space-size={heap},--stack-size=900"
        command = (self._binary, *_FLAGS, flags, str(_CHILD / "worker.js"))
        process = await Process.start(command, _ENVIRONMENT, limits.max_frame_bytes)
        processes.restrain(process.pid, cpu_seconds=int(limits.execution_timeout * 4) + 30, open_files=_OPEN_FILES)
        return DenoSandbox(process, limits, self._forget)

    def _forget(self, sandbox: DenoSandbox) -> None:
        self._sandboxes.pop(sandbox, None)

    async def close(self) -> None:
        """End everything that was started."""
        self._closed = True
        await asyncio.gather(*(sandbox.clear() for sandbox in self._sandboxes))
