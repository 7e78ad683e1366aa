"""Cancelling a call by its id, and telling that from other cancellations."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from arion_tds.server.running import Running


async def _served(running: Running, session: str = b"", identity: bytes = b"1") -> str | None:
    """What calling does: remember, wait, say whether it was cancelled by id."""
    task = asyncio.current_task()
    assert task is not None
    assert running.add(session, identity, task)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if running.was_cancelled(task):
            return "cancelled by id"
        raise
    finally:
        running.remove(session, identity, task)


async def _started(running: Running, **more: Any) -> asyncio.Task[str]:
    task = asyncio.create_task(_served(running, **more))
    await asyncio.sleep(0)
    return task


async def test_the_named_call_is_cancelled_and_no_other() -> None:
    running = Running()
    one = await _started(running, session="s", identity=b"1")
    other = await _started(running, session="s", identity=b'"1"')
    assert not running.cancel("t", b"1")
    assert running.cancel("s", b"1")
    assert not running.cancel("s", b"1")
    assert await one == "cancelled by id"
    assert not one.cancelling()
    assert not other.done()
    assert len(running) == 1
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other
    assert len(running) == 0


async def test_a_disconnect_wins_over_a_cancellation_by_id() -> None:
    running = Running()
    task = await _started(running, session="s")
    running.cancel("s", b"1")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_beyond_the_limit_calls_are_not_remembered() -> None:
    running = Running(limit=1)
    task = await _started(running, session="s")
    current = asyncio.current_task()
    assert current is not None
    assert not running.add("s", b"2", current)
    assert running.cancel("s", b"1")
    await task
    assert running.add("s", b"2", current)
    assert not running.add("s", b"2", current)
    running.remove("s", b"2", current)
