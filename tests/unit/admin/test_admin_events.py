"""Live events: a bounded ring that nobody waits for; who is slow hears how much was missed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from arion_tds.admin import events as module
from arion_tds.admin.events import Events, Follower


def following(events: Events, after: int | None = None) -> Follower:
    found = events.follow(after)
    assert found is not None
    return found


async def heard(follower: Follower) -> list[tuple[str, Any]]:
    """Name and data of what there is to take."""
    async with asyncio.timeout(5):
        text = (await follower.take()).decode()
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        found.append((fields["event"], json.loads(fields["data"])))
    return found


async def test_a_reader_hears_what_happens_from_now_on_in_order() -> None:
    events = Events(lambda: 7.0)
    events.tell("before", {})
    reader = following(events)
    taking = asyncio.create_task(heard(reader))
    await asyncio.sleep(0)
    events.tell("one", {"n": 1})
    events.tell("two", {"n": 2})
    assert await taking == [("one", {"at": 7.0, "n": 1}), ("two", {"at": 7.0, "n": 2})]


async def test_a_reader_that_comes_back_hears_what_came_after_what_it_knows() -> None:
    events = Events(lambda: 0.0)
    for name in ("one", "two", "three"):
        events.tell(name, {})
    assert [name for name, _ in await heard(following(events, 1))] == ["two", "three"]


async def test_a_number_of_another_process_begins_now() -> None:
    events = Events(lambda: 0.0)
    events.tell("one", {})
    reader = following(events, 99)
    events.tell("two", {})
    assert [name for name, _ in await heard(reader)] == ["two"]


async def test_what_fell_out_of_the_ring_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    events = Events(lambda: 0.0)
    reader = following(events)
    for number in range(10):
        events.tell("tick", {"n": number})
    told = await heard(reader)
    assert told[0] == ("missed", {"missed": 7})
    assert [data["n"] for _, data in told[1:]] == [7, 8, 9]


async def test_readers_are_bounded_and_make_room_when_they_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FOLLOWERS", 1)
    events = Events(lambda: 0.0)
    first = following(events)
    assert events.follow(None) is None
    events.leave(first)
    assert events.follow(None) is not None


async def test_the_end_ends_those_who_wait_and_takes_no_others() -> None:
    events = Events(lambda: 0.0)
    reader = following(events)
    taking = asyncio.create_task(reader.take())
    await asyncio.sleep(0)
    events.close()
    async with asyncio.timeout(5):
        assert await taking == b""
    assert events.follow(None) is None
