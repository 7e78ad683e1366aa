"""What becomes of spans on their way to a collector that is well, down, slow, or will not have them."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import logging
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from gateway_house import BOUND
from tracing_collector import Collector, collector

from arion_tds.tracing import otlp
from arion_tds.tracing.export import Exporter
from arion_tds.tracing.settings import Settings
from arion_tds.tracing.spans import Kind, Tracer

QUICK = {"batch_interval": 0.01, "backoff": 0.001, "backoff_max": 0.002}
RESOURCE: dict[str, str | int | bool] = {"service.name": "tests"}


class Sender:
    """An exporter under test and what it counted."""

    def __init__(self, url: str, **more: Any) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        settings = Settings(url=f"{url}/v1/traces", **(QUICK | more))
        self.exporter = Exporter(settings, otlp.Request(RESOURCE, "t", "1"), self._count, random.Random(0))
        numbers = itertools.count(1)
        self._tracer = Tracer(
            self.exporter.put, ratio=1, clock=lambda: next(numbers), random_bits=lambda _: next(numbers)
        )
        self._counted = asyncio.Event()

    def _count(self, outcome: str, count: int) -> None:
        self.counts[outcome] += count
        self._counted.set()

    def put(self, *numbers: int, **attributes: str) -> None:
        for number in numbers:
            span = self._tracer.start(f"s{number}", Kind.INTERNAL)
            assert span is not None
            span.attributes = dict(attributes)
            span.finish()

    async def until(self, outcome: str, count: int) -> None:
        async with asyncio.timeout(BOUND):
            while self.counts[outcome] < count:
                self._counted.clear()
                await self._counted.wait()


@contextlib.asynccontextmanager
async def sending(**more: Any) -> AsyncIterator[tuple[Sender, Collector]]:
    async with collector() as to:
        sender = Sender(to.url, **more)
        async with sender.exporter.running():
            yield sender, to


def names(to: Collector) -> list[str]:
    return [one.name for one in to.spans]


async def test_full_batches_go_at_once_and_the_rest_after_the_interval() -> None:
    async with sending(max_batch=10, batch_interval=0.2) as (sender, to):
        sender.put(*range(25))
        await sender.until("exported", 20)
        assert to.sizes == [10, 10]
        await sender.until("exported", 25)
    assert names(to) == [f"s{number}" for number in range(25)]


async def test_headers_and_content_type_are_what_otlp_wants() -> None:
    async with sending(headers=(("Authorization", "Bearer x"),)) as (sender, to):
        sender.put(1)
        await sender.until("exported", 1)
    assert to.headers[0]["content-type"] == "application/json"
    assert to.headers[0]["authorization"] == "Bearer x"


async def test_a_batch_that_is_not_taken_is_sent_again_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "arion_tds.tracing"):
        async with sending() as (sender, to):
            to.answers = [503, 503, 429]
            sender.put(1)
            await sender.until("exported", 1)
            sender.put(2)
            await sender.until("exported", 2)
    assert to.asked == 5
    said = [record.message for record in caplog.records]
    assert said == [
        "tracing: the collector did not take a batch: answered with HTTP status 503",
        "tracing: the collector did not take a batch: answered with HTTP status 429",
        "tracing: the collector takes batches again",
    ]


async def test_a_batch_that_will_never_be_taken_is_dropped_and_the_next_one_sent() -> None:
    async with sending(max_batch=2) as (sender, to):
        to.answers = [400]
        sender.put(1, 2)
        await sender.until("failed", 2)
        sender.put(3)
        await sender.until("exported", 1)
    assert names(to) == ["s3"]
    assert sender.counts == {"failed": 2, "exported": 1}


async def test_the_tries_of_a_batch_have_an_end() -> None:
    async with sending() as (sender, to):
        to.answers = [503] * 5
        sender.put(1)
        await sender.until("failed", 1)
        sender.put(2)
        await sender.until("exported", 1)
    assert names(to) == ["s2"]
    assert to.asked == 6


async def test_a_span_that_finds_the_queue_full_is_dropped_and_counted() -> None:
    async with sending(max_queue=3, max_batch=2, timeout=BOUND) as (sender, to):
        to.open.clear()
        sender.put(1, 2)
        await to.until(lambda: to.asked == 1)
        sender.put(3, 4, 5, 6, 7)
        assert len(sender.exporter) == 3
        assert sender.counts == {"overflow": 2}
        to.open.set()
        await sender.until("exported", 5)
    assert names(to) == ["s1", "s2", "s3", "s4", "s5"]


async def test_a_collector_that_cannot_be_reached_costs_no_more_than_the_spans() -> None:
    async with collector() as gone:
        pass
    sender = Sender(gone.url)
    async with sender.exporter.running():
        sender.put(1)
        await sender.until("failed", 1)


async def test_a_collector_that_does_not_answer_is_given_up_after_the_timeout(caplog: pytest.LogCaptureFixture) -> None:
    async with sending(timeout=0.02) as (sender, to):
        to.open.clear()
        sender.put(1)
        await sender.until("failed", 1)
        to.open.set()
    assert "no answer within 0.02 s (tracing.timeout)" in caplog.text


async def test_spans_that_a_collector_takes_and_does_not_want_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    async with sending(max_batch=3) as (sender, to):
        to.answer = b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}'
        sender.put(1, 2, 3)
        await sender.until("exported", 1)
    assert sender.counts == {"failed": 2, "exported": 1}
    assert "does not want 2 spans: too old" in caplog.text


async def test_what_waits_at_the_end_is_sent() -> None:
    async with sending(batch_interval=3600, max_batch=2) as (sender, to):
        sender.put(1, 2, 3)
    assert sorted(names(to)) == ["s1", "s2", "s3"]
    assert sender.counts == {"exported": 3}


async def test_a_batch_that_is_under_way_at_the_end_is_sent_once_more() -> None:
    async with sending(backoff=3600, backoff_max=3600) as (sender, to):
        to.answers = [503]
        sender.put(1)
        await to.until(lambda: to.asked == 1)
    assert names(to) == ["s1"]
    assert sender.counts == {"exported": 1}


async def test_a_collector_that_is_down_at_the_end_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    async with sending(batch_interval=3600, timeout=0.02) as (sender, to):
        to.open.clear()
        sender.put(1, 2, 3)
    to.open.set()
    assert sender.counts == {"failed": 3}
    assert "3 spans were not sent before the gateway stopped" in caplog.text


async def test_a_batch_of_more_than_a_megabyte_is_sent_too() -> None:
    async with sending() as (sender, to):
        sender.put(*range(20), long="x" * 100_000)
        await sender.until("exported", 20)
    assert len(to.bodies[0]) > 1 << 20


async def test_a_span_that_cannot_be_written_takes_its_batch_along_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with sending() as (sender, to):
        sender.put(1, wrong="\ud800")
        await sender.until("failed", 1)
        sender.put(2)
        await sender.until("exported", 1)
    assert names(to) == ["s2"]
    assert "a batch was not sent" in caplog.text
