"""Vectors fetched behind the scenes, over real sockets: batches, failures, what a search hears meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from embedding_server import DIMENSIONS, Endpoint, endpoint, good, vector

from arion_tds import view as views
from arion_tds.backends.clusters import Clusters
from arion_tds.embedding import Embedder, Sources, Waits
from arion_tds.metrics import Metrics
from arion_tds.model.backend import McpBackend
from arion_tds.model.cluster import Cluster
from arion_tds.model.gateway import Embeddings
from arion_tds.model.names import Naming
from arion_tds.model.tool import Tool
from arion_tds.schema import EMPTY_OBJECT
from arion_tds.search.remote import text
from arion_tds.search.vectors import unit
from arion_tds.view import Published

QUICK = Waits(query=5.0, rest=5.0, backoff=0.001, backoff_max=0.005)


def tool(name: str, description: str = "d", **more: Any) -> Tool:
    namespace, _, local = name.partition(".")
    return Tool(
        namespace=namespace,
        name=local,
        description=description,
        input_schema=EMPTY_OBJECT,
        backend=McpBackend("http://up.example/mcp", "x"),
        **more,
    )


def packed(words: str) -> bytes:
    made = unit(vector(words), DIMENSIONS)
    assert not isinstance(made, str)
    return made.tobytes()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Room:
    """An embedder at work, its endpoint and what it follows."""

    def __init__(self, served: Endpoint, clusters: Clusters, settings: Embeddings, waits: Waits) -> None:
        self.served = served
        self.clock = Clock()
        self.metrics = Metrics()
        self.place = Published("s", Naming.QUALIFIED)
        sources = Sources(self.clock, random.Random(1), lambda size: b"\x01" * size, waits)
        self.embedder = Embedder(self.place, settings, clusters, self.metrics, sources)

    def put(self, *come: Tool, gone: Iterable[Tool] = ()) -> None:
        entries = [views.entry(one, Naming.QUALIFIED) for one in come]
        self.place.publish(self.place.view.replace(gone, entries, {}, eager_only=False))

    async def settled(self) -> None:
        """Wait until no tool waits for its vector."""
        while self.embedder.status()["pending"]:  # noqa: ASYNC110 - the embedder tells nobody when it is done
            await asyncio.sleep(0.001)

    async def nearest(self, query: str, limit: int = 3) -> list[str]:
        near = await self.embedder.near(query)
        assert callable(near), near
        return [key for key, _ in near(limit, None, None)]

    def counted(self, of: str, outcome: str) -> float:
        return (
            self.metrics.registry.get_sample_value(
                "arion_tds_embeddings_total", {"scope": "s", "of": of, "outcome": outcome}
            )
            or 0.0
        )


@contextlib.asynccontextmanager
async def room(*, waits: Waits = QUICK, down: bool = False, **settings: Any) -> AsyncIterator[Room]:
    chosen = Embeddings(**{"cluster": "e", "model_id": "m", "dimensions": DIMENSIONS, "timeout": 5.0, **settings})
    async with asyncio.timeout(10), endpoint() as served:
        origin = "http://127.0.0.1:1" if down else served.origin
        clusters = Clusters({"e": Cluster(name="e", endpoints=(origin,))})
        here = Room(served, clusters, chosen, waits)
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(here.embedder.run())
                yield here
                task.cancel()
        finally:
            await clusters.close()


async def test_tools_are_fetched_in_batches_and_found_by_meaning() -> None:
    async with room(max_batch_size=4) as here:
        here.put(*[tool(f"n.t{number}", f"number {number}") for number in range(9)], tool("sky.look", "weather"))
        await here.settled()
        assert [len(one["input"]) for one in here.served.asked] == [4, 4, 2]
        assert all(one["model"] == "m" and one["dimensions"] == DIMENSIONS for one in here.served.asked)
        assert sorted(here.served.texts) == sorted(text(entry.tool) for entry in here.place.view.tools.values())
        assert (await here.nearest("umbrella"))[0] == "sky.look"
        assert here.embedder.status() == {"vectors": 10, "pending": 0, "given_up": 0, "last_failure": None}
        assert here.counted("tools", "ok") == 3
        assert here.counted("query", "ok") == 1


async def test_a_vector_that_came_with_the_tool_is_used_as_it_is() -> None:
    async with room() as here:
        here.put(tool("a.given", "nothing to see", embedding=packed("weather")), tool("a.other", "letters"))
        await here.settled()
        assert here.served.texts == ["a other: letters"]
        assert (await here.nearest("rain"))[0] == "a.given"


async def test_only_what_changed_its_text_is_fetched_again() -> None:
    async with room() as here:
        old = tool("a.one", "rain")
        here.put(old, tool("a.two", "letters"))
        await here.settled()
        same_text = tool("a.one", "rain", eager=True)
        here.put(same_text, gone=[old])
        await here.settled()
        assert len(here.served.texts) == 2
        changed = tool("a.one", "invoice")
        here.put(changed, gone=[same_text])
        await here.settled()
        assert here.served.texts[2:] == ["a one: invoice"]
        assert (await here.nearest("bill"))[0] == "a.one"
        here.put(gone=[changed])
        assert "a.one" not in await here.nearest("bill")


async def test_what_changed_or_went_while_it_was_fetched_does_not_get_the_old_vector() -> None:
    async with room() as here:
        here.served.hang = asyncio.Event()
        one, two = tool("a.one", "rain"), tool("a.two", "rain")
        here.put(one, two)
        await here.served.until(lambda: len(here.served.asked) == 1)
        here.put(tool("a.one", "invoice"), gone=[one, two])
        here.served.hang.set()
        await here.settled()
        assert here.served.texts[2:] == ["a one: invoice"]
        assert here.embedder.status()["vectors"] == 1


async def test_a_query_is_asked_once_and_then_remembered() -> None:
    async with room() as here:
        here.put(tool("a.one"))
        await here.settled()
        for query in ("rain  today", " rain today ", "rain\ttoday"):
            await here.nearest(query)
        assert here.served.texts[1:] == ["rain today"]


BAD = {
    "500": (lambda _: 500, "upstream_error"),
    "404": (lambda _: 404, "upstream_error"),
    "no-json": (lambda _: b"<html>", "invalid_output"),
    "too-few": (lambda asked: {"data": good(asked)["data"][:-1]}, "invalid_output"),
    "too-long": (lambda asked: {"data": [{"embedding": [0.5] * 17} for _ in asked["input"]]}, "invalid_output"),
    "nan": (lambda _: b'{"data":[{"embedding":[NaN]}]}', "invalid_output"),
    "zeros": (lambda asked: {"data": [{"embedding": [0.0] * 16} for _ in asked["input"]]}, "invalid_output"),
    "huge": (lambda _: b" " * 300_000, "response_too_large"),
}


@pytest.mark.parametrize("how", BAD)
async def test_a_failing_endpoint_is_asked_again_until_it_is_well(how: str) -> None:
    answer, code = BAD[how]
    async with room() as here:
        here.served.answer = answer
        here.put(tool("a.one", "rain"))
        await here.served.until(lambda: len(here.served.asked) >= 3)
        assert await here.embedder.near("x") == code
        assert here.counted("tools", code) >= 2
        here.served.answer = good
        await here.settled()
        assert await here.nearest("umbrella") == ["a.one"]
        assert here.embedder.status()["last_failure"] is None


@pytest.mark.parametrize("how", BAD)
async def test_a_search_hears_why_its_query_has_no_vector_and_the_next_ones_do_not_wait(how: str) -> None:
    answer, code = BAD[how]
    async with room() as here:
        here.put(tool("a.one", "rain"))
        await here.settled()
        here.served.answer = answer
        assert await here.embedder.near("umbrella") == code
        asked = len(here.served.asked)
        assert await here.embedder.near("another") == code
        assert len(here.served.asked) == asked
        assert here.counted("query", "resting") == 1
        here.served.answer = good
        here.clock.now += QUICK.rest
        assert await here.nearest("another") == ["a.one"]


async def test_an_endpoint_that_is_down_costs_a_search_nothing() -> None:
    async with room(down=True) as here:
        here.put(tool("a.one", "rain"), tool("a.given", embedding=packed("weather")))
        while not here.counted("tools", "upstream_error"):  # noqa: ASYNC110 - a counter cannot be waited for
            await asyncio.sleep(0.001)
        assert await here.embedder.near("umbrella") == "upstream_error"


async def test_an_endpoint_that_is_slow_is_not_waited_for_longer_than_a_search_may_take() -> None:
    async with room(waits=Waits(query=0.02, backoff=0.001)) as here:
        here.put(tool("a.one", "rain"))
        await here.settled()
        here.served.hang = asyncio.Event()
        assert await here.embedder.near("umbrella") == "upstream_timeout"


async def test_before_the_first_vector_a_search_hears_that_they_are_pending() -> None:
    async with room() as here:
        assert await here.embedder.near("umbrella") is None
        here.served.hang = asyncio.Event()
        here.put(tool("a.one", "rain"))
        assert await here.embedder.near("umbrella") == "pending"


async def test_an_endpoint_that_refuses_dimensions_is_asked_without_them() -> None:
    async with room(max_batch_size=1) as here:
        here.served.answer = lambda asked: 400 if "dimensions" in asked else good(asked)
        here.put(tool("a.one", "rain"), tool("a.two", "letters"))
        await here.settled()
        assert ["dimensions" in one for one in here.served.asked] == [True, False, False]


async def test_one_text_that_is_refused_costs_the_others_nothing() -> None:
    async with room(max_batch_size=8) as here:
        here.served.answer = lambda asked: 400 if any("poison" in one for one in asked["input"]) else good(asked)
        here.put(tool("a.first", "rain"))
        await here.settled()
        here.put(*[tool(f"n.t{number}") for number in range(6)], tool("n.bad", "poison"), tool("n.last", "invoice"))
        await here.settled()
        assert here.embedder.status()["given_up"] == 1
        assert here.embedder.status()["vectors"] == 8
        assert (await here.nearest("bill"))[0] == "n.last"


def test_a_batch_is_never_so_large_that_reading_its_answer_holds_the_loop() -> None:
    settings = Embeddings(cluster="e", model_id="m", dimensions=3072, max_batch_size=2048)
    sources = Sources(Clock(), random.Random(1), lambda size: b"\x01" * size)
    made = Embedder(Published("s", Naming.QUALIFIED), settings, Clusters({}), Metrics(), sources)
    assert made._most == 65
