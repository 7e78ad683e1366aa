"""OpenAPI expansion in worker processes: the driver of `openapi.worker`.

In: OpenAPI sources. Out: Expansions. Called by ingest, which owns the Expander and closes it.

A document of some megabytes costs a second of CPU and comes from a stranger, so it is never expanded in the gateway's
own process. A worker is reused while it is healthy; one that exceeds its time or memory, or dies, is killed and
replaced, and the document that did it is rejected with the limit's name. Tools come back in small frames with a turn of
the event loop between them.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import os
import pickle
import signal
import sys
from pathlib import Path
from typing import Any, Final

import arion_tds
from arion_tds import child
from arion_tds.child import Child
from arion_tds.model.problem import Problem
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.openapi.job import HEADER, Expansion, Head, Job, frame
from arion_tds.openapi.limits import Limits, Output

MAX_WAITING: Final = 256
"""Documents that may wait for a worker; further ones are rejected."""

_KILL_WAIT: Final = 5.0
_STEP: Final = 1 << 18  # bytes of a document written to a worker at a time
_MAX_FRAME: Final = 256 << 20
_ENVIRONMENT: Final = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "VIRTUAL_ENV")
"""What a worker gets to see of the gateway's environment: no secrets."""

_ALLOWED: Final = ("arion_tds.model.", "arion_tds.openapi.", "arion_tds.schema")


class _Unpickler(pickle.Unpickler):
    """Only our own nouns: a worker that a document has taken over cannot take over the gateway with its answer."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - the signature of pickle
        if not module.startswith(_ALLOWED) or "." in name:
            raise pickle.UnpicklingError(f"{module}.{name} is not part of an expansion")
        return super().find_class(module, name)


class _Worker:
    """One worker process. Used by one expansion at a time."""

    def __init__(self, process: Child) -> None:
        self.process = process

    async def expand(self, job: Job) -> tuple[Expansion, bool]:
        """The expansion, and whether the worker can be used again. Raises when the process is broken."""
        stdin, stdout = self.process.stdin, self.process.stdout
        document = job.source.document
        stdin.write(
            frame(pickle.dumps(dataclasses.replace(job, source=dataclasses.replace(job.source, document=b"")), 5))
        )
        stdin.write(len(document).to_bytes(HEADER, "big"))
        for start in range(0, len(document), _STEP):
            stdin.write(document[start : start + _STEP])
            await stdin.drain()
        head = _load(await _read(stdout))
        if not isinstance(head, Head):
            raise pickle.UnpicklingError("answer does not begin with a Head")
        tools: list[Tool] = []
        for _ in range(head.frames):
            tools.extend(_load(await _read(stdout)))
            await asyncio.sleep(0)
        found = head.expansion
        return Expansion(tuple(tools), found.skipped, found.warnings, found.problems), not head.last

    def kill(self) -> None:
        """Kill the process if it lives. Whoever reads from it finds the end of its output."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    async def end(self) -> int | None:
        """Kill the process and wait for it; nobody else may be reading. Its exit status, negative for a signal."""
        self.kill()
        try:
            async with asyncio.timeout(_KILL_WAIT):
                # wait() returns only after the pipe is at its end, so what the worker still said is thrown away.
                while await self.process.stdout.read(1 << 20):
                    pass
                return await self.process.wait()
        except TimeoutError:
            return None
        finally:
            self.process.close()


class Expander:
    """Expands sources, at most `max_workers` at a time; the rest wait in order.

    Fields belong to the event loop that made it. Close it: that ends the workers.
    """

    def __init__(self, limits: Limits, output: Output = "loose", max_workers: int = 1) -> None:
        """`output` is what becomes of response schemas. No process is started before the first document."""
        self._limits = limits
        self._output: Output = output
        self._slots = asyncio.Semaphore(max_workers)
        self._waiting = 0
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._closed = asyncio.Event()
        self._started = 0
        self._ended = 0

    def status(self) -> dict[str, int]:
        """Workers started and ended so far, documents waiting and under way."""
        return {
            "started": self._started,
            "ended": self._ended,
            "waiting": self._waiting,
            "busy": len(self._busy),
            "idle": len(self._idle),
        }

    async def expand(self, source: OpenApiSource) -> Expansion:
        """The source's expansion. A source that costs too much, or breaks its worker, comes back as rejected."""
        if self._waiting >= MAX_WAITING:
            return _rejected(f"{MAX_WAITING} OpenAPI documents are waiting already: send it again later")
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            if self._closed.is_set():
                return _rejected("the gateway is shutting down")
            return await self._expand(Job(source, self._limits, self._output))
        finally:
            self._slots.release()

    async def _expand(self, job: Job) -> Expansion:
        while True:
            try:
                worker, fresh = await self._take()
            except OSError as error:
                return _rejected(f"no worker process could be started: {error}")
            if self._closed.is_set():
                await worker.end()
                return _rejected("the gateway is shutting down")
            self._busy.add(worker)
            self._quiet.clear()
            healthy = False
            try:
                async with asyncio.timeout(self._limits.max_wall_seconds):
                    expansion, healthy = await worker.expand(job)
            except TimeoutError:
                return _rejected(f"expansion takes too long {self._limits.named('max_wall_seconds')}")
            except (OSError, EOFError, RuntimeError, pickle.UnpicklingError, ValueError) as error:
                status = await worker.end()
                if not fresh and not self._closed.is_set() and status is not None and status != -signal.SIGXCPU:
                    continue  # it may have died while it was idle: once more in a new one
                return _rejected(self._why(status, error))
            else:
                return expansion
            finally:
                await asyncio.shield(self._put_back(worker, healthy=healthy))

    async def _put_back(self, worker: _Worker, *, healthy: bool) -> None:
        """Keep the worker for the next document, or end it."""
        if healthy and not self._closed.is_set():
            self._idle.append(worker)
        else:
            self._ended += not healthy
            await worker.end()
        self._busy.discard(worker)
        if not self._busy:
            self._quiet.set()

    async def _take(self) -> tuple[_Worker, bool]:
        """A worker, and whether it is new."""
        while self._idle:
            worker = self._idle.pop()
            if worker.process.returncode is None:
                return worker, False
        self._started += 1
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        paths = [str(Path(arion_tds.__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        return _Worker(await child.start((sys.executable, "-P", "-m", "arion_tds.openapi.worker"), environment)), True

    def _why(self, status: int | None, error: Exception) -> str:
        if status == -signal.SIGXCPU:
            return f"expansion needs too much CPU {self._limits.named('max_cpu_seconds')}"
        if status is not None and status < 0:
            name = signal.Signals(-status).name
            return (
                f"expansion ended with {name}, most likely for want of memory {self._limits.named('max_memory_bytes')}"
            )
        return f"expansion broke off ({type(error).__name__}, exit status {status})"

    async def close(self) -> None:
        """End every worker, the busy ones too: their expansions come back as rejected."""
        self._closed.set()
        for worker in self._busy:
            worker.kill()  # its expansion is reading from it, and ends it
        while self._idle:
            await self._idle.pop().end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_KILL_WAIT):
                await self._quiet.wait()


def _rejected(why: str) -> Expansion:
    return Expansion(problems=(Problem("", why),))


async def _read(stream: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await stream.readexactly(HEADER), "big")
    if size > _MAX_FRAME:
        raise ValueError(f"frame of {size} bytes")
    return await stream.readexactly(size)


def _load(payload: bytes) -> Any:  # noqa: ANN401 - whoever reads it checks
    return _Unpickler(io.BytesIO(payload)).load()
