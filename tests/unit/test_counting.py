"""Token counts follow what is published, when nothing else happens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

import pytest

from arion_tds import view as views
from arion_tds.counting import TokenCounts
from arion_tds.model.backend import McpBackend
from arion_tds.model.names import Naming
from arion_tds.model.tool import Tool
from arion_tds.schema import EMPTY_OBJECT
from arion_tds.search import tokens
from arion_tds.view import Published


def tool(name: str, description: str = "d") -> Tool:
    namespace, _, local = name.partition(".")
    backend = McpBackend("http://up.example/mcp", "x")
    return Tool(namespace=namespace, name=local, description=description, input_schema=EMPTY_OBJECT, backend=backend)


def put(place: Published, *come: Tool, gone: Iterable[Tool] = ()) -> None:
    entries = [views.entry(one, Naming.QUALIFIED) for one in come]
    place.publish(place.view.replace(gone, entries, {}, eager_only=False))


def exactly(*tools: Tool) -> int:
    return sum(tokens.count([tokens.text(one) for one in tools]))


@contextlib.asynccontextmanager
async def counting() -> AsyncIterator[tuple[Published, TokenCounts]]:
    place = Published("s", Naming.QUALIFIED)
    counts = TokenCounts(place, quiet=0)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        task = group.create_task(counts.run())
        yield place, counts
        task.cancel()


async def until_counted(counts: TokenCounts) -> None:
    while counts.pending:  # noqa: ASYNC110 - counting tells nobody when it is done
        await asyncio.sleep(0)


async def test_nothing_is_counted_before_somebody_asks_and_the_first_answer_is_an_estimate() -> None:
    async with counting() as (place, counts):
        one, other = tool("a.one", "word " * 100), tool("b.other")
        put(place, one, other)
        for _ in range(5):
            await asyncio.sleep(0)
        assert counts.pending == 2
        assert not counts.exact
        first = counts.by_namespace()
        assert counts.total == sum(first.values())
        assert abs(first["a"] - exactly(one)) < 0.4 * exactly(one)
        await until_counted(counts)
        assert counts.by_namespace() == {"a": exactly(one), "b": exactly(other)}
        assert counts.total == exactly(one, other)
        assert counts.exact == tokens.exact()
        assert counts.of(place.view.tools["a.one"]) == exactly(one)


async def test_sums_follow_every_change() -> None:
    async with counting() as (place, counts):
        one, other, third = tool("a.one"), tool("a.other"), tool("c.third")
        put(place, one, other, third)
        counts.by_namespace()
        await until_counted(counts)
        new = tool("a.one", "a much longer description than before")
        put(place, new, gone=[one, third])
        assert counts.of(place.view.tools["a.one"]) == exactly(new)
        await until_counted(counts)
        assert counts.by_namespace() == {"a": exactly(new, other)}
        put(place, gone=[new, other])
        assert (counts.by_namespace(), counts.total) == ({}, 0)
        assert counts.pending == 0


async def test_what_changes_while_it_is_counted_is_counted_as_it_is_now() -> None:
    async with counting() as (place, counts):
        old, new = tool("a.one", "old"), tool("a.one", "new and longer")
        put(place, old)
        counts.by_namespace()
        for _ in range(200):
            put(place, new, gone=[old])
            old = new
            await asyncio.sleep(0)
        await until_counted(counts)
        assert counts.by_namespace() == {"a": exactly(new)}


async def test_a_failure_of_the_counter_leaves_estimates_and_a_running_gateway(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise RuntimeError("no vocabulary")

    monkeypatch.setattr(tokens, "load", broken)
    place = Published("s", Naming.QUALIFIED)
    counts = TokenCounts(place, quiet=0)
    put(place, tool("a.one"))
    assert counts.by_namespace()["a"] > 5
    await counts.run()
    assert "not counted any more" in caplog.text
    assert counts.of(place.view.tools["a.one"]) > 5
