"""What becomes of events on their way to a receiver that is well, down, slow, or will not have them."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from events_receiver import Receiver, receiver
from gateway_house import BOUND

from arion_tds.webhook import CONTENT_TYPE, Event, Settings, Webhook

QUICK = {"batch_interval": 0.01, "backoff": 0.001, "backoff_max": 0.002}


class Sender:
    """A webhook under test and what it counted."""

    def __init__(self, url: str, **more: Any) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        settings = Settings(url=url, source="/test", **(QUICK | more))
        self.webhook = Webhook(settings, self._count, "life", random.Random(0))
        self._counted = asyncio.Event()

    def _count(self, outcome: str, count: int) -> None:
        self.counts[outcome] += count
        self._counted.set()

    def put(self, *numbers: int) -> None:
        for number in numbers:
            self.webhook.put(Event("t", f"s{number}", 1700000000.25, {"number": number}))

    async def until(self, outcome: str, count: int) -> None:
        async with asyncio.timeout(BOUND):
            while self.counts[outcome] < count:
                self._counted.clear()
                await self._counted.wait()


@contextlib.asynccontextmanager
async def sending(**more: Any) -> AsyncIterator[tuple[Sender, Receiver]]:
    async with receiver() as to:
        sender = Sender(to.url, **more)
        async with sender.webhook.running():
            yield sender, to


def numbers(to: Receiver) -> list[int]:
    return [event["data"]["number"] for event in to.events]


async def test_a_batch_is_a_list_of_cloudevents() -> None:
    async with sending(headers=(("Authorization", "Bearer x"),)) as (sender, to):
        sender.put(7)
        await sender.until("sent", 1)
    assert to.batches == [
        [
            {
                "specversion": "1.0",
                "id": "life-1",
                "source": "/test",
                "type": "t",
                "subject": "s7",
                "time": "2023-11-14T22:13:20.250Z",
                "sequence": "1",
                "datacontenttype": "application/json",
                "data": {"number": 7},
            }
        ]
    ]
    assert to.headers[0]["content-type"] == CONTENT_TYPE
    assert to.headers[0]["authorization"] == "Bearer x"


async def test_full_batches_go_at_once_and_the_rest_after_the_interval() -> None:
    async with sending(max_batch=10, batch_interval=0.2) as (sender, to):
        sender.put(*range(25))
        await sender.until("sent", 20)
        assert [len(batch) for batch in to.batches] == [10, 10]
        await sender.until("sent", 25)
    assert numbers(to) == list(range(25))


async def test_a_batch_of_too_many_bytes_goes_in_parts_and_a_large_event_alone() -> None:
    async with sending(max_batch_bytes=1024) as (sender, to):
        sender.put(1, 2)
        sender.webhook.put(Event("t", "large", 0, lambda: {"number": 3, "text": "x" * 5000}))
        sender.put(4)
        await sender.until("sent", 4)
    assert [len(batch) for batch in to.batches] == [2, 1, 1]
    assert numbers(to) == [1, 2, 3, 4]


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_receiver_in_trouble_gets_the_same_batch_again_and_nothing_twice(status: int) -> None:
    async with sending() as (sender, to):
        to.answers = [status, status]
        sender.put(1, 2)
        await sender.until("sent", 2)
    assert numbers(to) == [1, 2]
    assert to.asked == 3


async def test_what_a_receiver_will_never_take_is_not_sent_again_and_the_next_batch_is() -> None:
    async with sending() as (sender, to):
        to.answers = [400]
        sender.put(1)
        await sender.until("failed", 1)
        sender.put(2)
        await sender.until("sent", 1)
    assert numbers(to) == [2]
    assert to.events[0]["sequence"] == "2"  # the gap shows what is missing


async def test_tries_are_used_up_while_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    async with receiver() as to:
        url = to.url
    sender = Sender(url, retries=3)
    async with sender.webhook.running():
        sender.put(1)
        await sender.until("failed", 1)
    said = [record.getMessage() for record in caplog.records if "did not take a batch" in record.getMessage()]
    assert len(said) == 1  # once per reason


async def test_while_a_receiver_hangs_the_newest_wait_and_the_oldest_go() -> None:
    async with sending(max_queue=5, max_batch=1, retries=0) as (sender, to):
        to.open.clear()
        sender.put(0)
        await to.until(lambda: to.asked)
        sender.put(*range(1, 11))
        assert len(sender.webhook) == 5
        assert sender.counts["overflow"] == 5
        to.open.set()
        await sender.until("sent", 6)
    assert numbers(to) == [0, 6, 7, 8, 9, 10]
    assert [event["sequence"] for event in to.events] == ["1", "7", "8", "9", "10", "11"]


async def test_a_receiver_that_does_not_answer_in_time_is_tried_again() -> None:
    async with sending(timeout=0.05, retries=50) as (sender, to):
        to.open.clear()
        sender.put(1)
        await to.until(lambda: to.asked >= 2)
        to.open.set()
        await sender.until("sent", 1)


async def test_of_events_with_one_key_only_the_newest_waits() -> None:
    async with sending(max_batch=1) as (sender, to):
        to.open.clear()
        sender.put(0)
        await to.until(lambda: to.asked)
        for number in range(1, 1000):
            sender.webhook.put(Event("t", "list", 0, {"number": number}, key="list"))
        assert len(sender.webhook) == 1
        to.open.set()
        await sender.until("sent", 2)
    assert numbers(to) == [0, 999]
    assert sender.counts["overflow"] == 0


async def test_what_waits_when_the_gateway_stops_is_sent_then() -> None:
    async with sending(batch_interval=60) as (sender, to):
        sender.put(1, 2, 3)
    assert numbers(to) == [1, 2, 3]
    assert sender.counts == {"sent": 3}


async def test_a_dead_receiver_does_not_hold_up_the_stop_and_every_event_is_accounted_for() -> None:
    async with asyncio.timeout(BOUND), sending(timeout=0.05, max_batch=2, batch_interval=60) as (sender, to):
        to.open.clear()
        sender.put(1, 2)
        await to.until(lambda: to.asked)
        sender.put(3, 4, 5)
    to.open.set()
    assert sender.counts == {"failed": 5}
