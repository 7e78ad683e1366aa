"""A pool of real sandboxes with small limits, and a watch over the event loop while programs run in them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from arion_tds.codemode import deno, limits, protocol, run
from arion_tds.codemode.deno import DenoEngine, DenoSandbox
from arion_tds.codemode.outcome import Failure, Outcome, Success
from arion_tds.codemode.pool import Pool
from arion_tds.model.gateway import CodeMode

SMALL = CodeMode(
    execution_timeout=0.7,
    max_host_calls=20,
    max_concurrent_executions=1,
    max_output_bytes=64 << 10,
    memory_limit_bytes=48 << 20,
    max_concurrent_tool_calls=4,
)
STALL = 2.0
"""Seconds that the event loop may be away at once, on a machine whose cores the programs keep busy."""

Answer = Callable[[int, str, bytes], Awaitable[bytes]]


async def echo(identity: int, op: str, args: bytes) -> bytes:
    """A host that answers every call with what it was asked."""
    return protocol.value(identity, b'{"op":"%s","args":%s}' % (op.encode(), args))


class Box:
    """One gateway's sandboxes, without the gateway."""

    def __init__(self, mode: CodeMode) -> None:
        self.limits = limits.of(mode)
        self.engine = DenoEngine(deno.find(), self.limits)
        self.pool = Pool(self.engine, self.limits)
        self.stall = 0.0
        self.busy: DenoSandbox | None = None

    async def run(self, code: str, answer: Answer = echo, namespaces: tuple[str, ...] = ()) -> Outcome:
        """What becomes of the program."""
        async with self.pool.turn():
            sandbox = await self.pool.take()
            self.busy = sandbox if isinstance(sandbox, DenoSandbox) else None
            try:
                execution = run.Execution(sandbox, answer, self.limits)
                return await execution.run(run.prepare(code), list(namespaces))
            finally:
                self.pool.discard(sandbox)

    async def value(self, code: str, **more: Any) -> bytes:
        """The value of a program that works."""
        outcome = await self.run(code, **more)
        assert isinstance(outcome, Success), outcome
        return outcome.value

    async def fails(self, code: str, **more: Any) -> Failure:
        """The error of one that does not."""
        outcome = await self.run(code, **more)
        assert isinstance(outcome, Failure), outcome
        return outcome

    def pids(self) -> set[int]:
        """The processes that there are."""
        return {sandbox.pid for sandbox in self.engine._sandboxes}

    async def ticking(self) -> None:
        """Note the longest time that the loop was away."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.005)
            self.stall = max(self.stall, loop.time() - before - 0.005)


@contextlib.asynccontextmanager
async def box(**limits_: Any) -> AsyncIterator[Box]:
    """A box with these of the small limits changed. Everything is bounded, and nothing is left afterwards."""
    made = Box(dataclasses.replace(SMALL, **limits_))
    async with asyncio.timeout(20):
        ticker = asyncio.create_task(made.ticking())
        try:
            yield made
        finally:
            ticker.cancel()
            await made.pool.close()
            assert not made.pids()
