"""Who gets a sandbox when, with an engine that makes them as the test says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from arion_tds.codemode import limits
from arion_tds.codemode.engine import StartError
from arion_tds.codemode.pool import BusyError, Pool
from arion_tds.model.gateway import CodeMode


class FakeSandbox:
    def __init__(self, number: int) -> None:
        self.number = number
        self.alive = True
        self.cleared = False

    def watch(self) -> None: ...

    async def send(self, frame: bytes) -> None: ...

    async def receive(self) -> bytes:
        return b""

    async def clear(self) -> None:
        self.alive = False
        self.cleared = True


class FakeEngine:
    """Starts at once, or when `gate` is open; `fail` counts starts that go wrong."""

    def __init__(self) -> None:
        self.made: list[FakeSandbox] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fail = 0
        self.starting = 0
        self.most = 0
        self.closed = False

    async def sandbox(self) -> FakeSandbox:
        self.starting += 1
        self.most = max(self.most, self.starting)
        try:
            await self.gate.wait()
        finally:
            self.starting -= 1
        if self.fail:
            self.fail -= 1
            raise StartError("no room")
        self.made.append(FakeSandbox(len(self.made)))
        return self.made[-1]

    async def close(self) -> None:
        self.closed = True
        self.fail = 100
        self.gate.set()


@contextlib.asynccontextmanager
async def pool(engine: FakeEngine, at_once: int = 2, timeout: float = 5) -> AsyncIterator[Pool]:
    made = Pool(engine, limits.of(CodeMode(max_concurrent_executions=at_once, execution_timeout=timeout)))
    async with asyncio.timeout(5):
        try:
            yield made
        finally:
            await made.close()
            assert engine.closed


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_sandboxes_are_ready_before_they_are_needed_and_started_two_at_a_time() -> None:
    engine = FakeEngine()
    engine.gate.clear()
    async with pool(engine, at_once=8) as here:
        here.fill()
        await settle()
        engine.gate.set()
        await settle()
        assert (len(engine.made), engine.most) == (4, 2)


async def test_each_is_used_once_and_replaced() -> None:
    engine = FakeEngine()
    async with pool(engine) as here:
        numbers = []
        for _ in range(5):
            taken = await here.take()
            assert isinstance(taken, FakeSandbox)
            numbers.append(taken.number)
            here.discard(taken)
            await settle()
            assert taken.cleared
        assert numbers == sorted(set(numbers))


async def test_a_sandbox_that_died_while_it_was_idle_is_passed_over() -> None:
    engine = FakeEngine()
    async with pool(engine) as here:
        here.fill()
        await settle()
        engine.made[0].alive = False
        assert await here.take() is not engine.made[0]
        await settle()
        assert engine.made[0].cleared


async def test_who_waits_is_told_why_none_could_be_started() -> None:
    engine = FakeEngine()
    engine.fail = 10
    async with pool(engine) as here:
        with pytest.raises(StartError, match="no room"):
            await here.take()
        engine.fail = 0
        assert (await here.take()).alive


async def test_turns_are_given_in_order_and_no_more_than_may_wait() -> None:
    engine = FakeEngine()
    order: list[int] = []
    go = asyncio.Event()

    async def work(number: int, here: Pool) -> None:
        async with here.turn():
            order.append(number)
            await go.wait()

    async with pool(engine, at_once=1) as here, asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(work(number, here))
        await settle()
        assert (here.running, here.waiting) == (1, 2)
        with pytest.raises(BusyError):
            async with here.turn():
                pass
        go.set()
    assert order == [0, 1, 2]


async def test_a_wait_for_a_turn_ends_too() -> None:
    engine = FakeEngine()
    async with pool(engine, at_once=1, timeout=0.01) as here, here.turn():
        with pytest.raises(BusyError):
            async with here.turn():
                pass
        assert here.waiting == 0


async def test_a_sandbox_that_comes_for_somebody_who_has_gone_is_kept() -> None:
    engine = FakeEngine()
    engine.gate.clear()
    async with pool(engine, at_once=1) as here:
        gone = asyncio.create_task(here.take())
        await settle()
        gone.cancel()
        await settle()
        engine.gate.set()
        await settle()
        assert await here.take() is engine.made[0]


async def test_who_waits_when_the_pool_closes_is_told_so() -> None:
    engine = FakeEngine()
    engine.gate.clear()
    async with pool(engine) as here:
        waiting = asyncio.create_task(here.take())
        await settle()
        await here.close()
        with pytest.raises(StartError, match="shutting down"):
            await waiting
