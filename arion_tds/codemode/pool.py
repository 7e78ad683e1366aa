"""Who runs when: sandboxes that are ready before they are needed, and a turn for each execution.

In: executions that want a sandbox. Out: one sandbox each, used once and cleared away. Called by executing, which owns
the pool and closes it. All state belongs to the event loop; a state step never awaits.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final

from arion_tds.codemode.engine import Engine, Sandbox, StartError
from arion_tds.codemode.limits import Limits

_STARTS_AT_ONCE: Final = 2
"""Sandboxes started at the same time: each costs about 25 ms of CPU, which the traffic wants as well."""

_log = logging.getLogger("arion_tds.codemode")


class BusyError(Exception):
    """No turn: too many executions run and wait. `waiting` is how many wait; `retry_after` seconds, a guess."""

    def __init__(self, waiting: int, retry_after: float) -> None:
        """`retry_after`: what the last executions took."""
        super().__init__(f"{waiting} executions wait")
        self.waiting = waiting
        self.retry_after = retry_after


class Pool:
    """The sandboxes of one gateway."""

    def __init__(self, engine: Engine, limits: Limits) -> None:
        """Starts nothing; see `fill`."""
        self._engine = engine
        self._limits = limits
        self._turns = asyncio.Semaphore(limits.max_concurrent_executions)
        self._idle: deque[Sandbox] = deque()
        self._wanted: deque[asyncio.Future[Sandbox]] = deque()
        self._starting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self.running = 0
        self.waiting = 0
        self.started = 0
        self._usual = 1.0  # seconds that an execution has lately taken

    def fill(self) -> None:
        """Start sandboxes in the background up to the number that is kept ready, and one for everybody who waits."""
        while (
            not self._closed
            and self._starting < _STARTS_AT_ONCE
            and len(self._idle) + self._starting < self._limits.idle + len(self._wanted)
        ):
            self._starting += 1
            self._own(self._start())

    def _own(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self) -> None:
        made: Sandbox | None = None
        failed: StartError | None = None
        try:
            made = await self._engine.sandbox()
        except StartError as error:
            failed = error
            if not self._closed:
                _log.warning("no sandbox: %s", error)
        finally:
            self._starting -= 1
        self.started += made is not None
        while self._wanted:
            wanted = self._wanted.popleft()
            if wanted.done():
                continue
            if made is not None:
                wanted.set_result(made)
                made = None
                break
            if failed is not None:
                wanted.set_exception(failed)
                return  # an idle one is not tried again before somebody asks
        if made is not None:
            self._idle.append(made)
        if failed is None:
            self.fill()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, for as long as an execution may take. Raises BusyError when too many wait, or in the end."""
        if self._turns.locked():
            if self.waiting >= self._limits.max_waiting:
                raise BusyError(self.waiting, self._usual)
            self.waiting += 1
            try:
                async with asyncio.timeout(self._limits.execution_timeout):
                    await self._turns.acquire()
            except TimeoutError:
                raise BusyError(self.waiting, self._usual) from None
            finally:
                self.waiting -= 1
        else:
            await self._turns.acquire()
        self.running += 1
        started = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            self.running -= 1
            self._turns.release()
            self._usual += (asyncio.get_running_loop().time() - started - self._usual) / 8

    async def take(self) -> Sandbox:
        """A ready sandbox; hand it to `discard` afterwards. Raises StartError."""
        while self._idle:
            found = self._idle.popleft()
            if found.alive:
                self.fill()
                return found
            self.discard(found)
        wanted: asyncio.Future[Sandbox] = asyncio.get_running_loop().create_future()
        self._wanted.append(wanted)
        self.fill()
        try:
            return await wanted
        except asyncio.CancelledError:
            if wanted.done() and not wanted.cancelled() and wanted.exception() is None:
                self._idle.append(wanted.result())  # it came in the same turn of the loop
            raise

    def discard(self, sandbox: Sandbox) -> None:
        """Kill it and clear it away in the background."""
        self._own(sandbox.clear())

    async def close(self) -> None:
        """End everything, the sandboxes in use too: their executions fail."""
        self._closed = True
        for wanted in self._wanted:
            if not wanted.done():
                wanted.set_exception(StartError("the gateway is shutting down"))
        self._wanted.clear()
        await self._engine.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)  # starts have failed by now
