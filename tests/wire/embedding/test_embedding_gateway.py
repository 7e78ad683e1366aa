"""Search by meaning on a running gateway, through both doors, with an endpoint that fails in every way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from disclosure_clients import Client
from embedding_server import DIMENSIONS, Endpoint, endpoint, good, vector
from gateway_house import BOUND, House, Spec, house, listener, tool

HIDDEN = {"action": "ALLOW", "permissions": [{"jwt_claim": {"field": "role", "value": "admin"}}]}


@contextlib.asynccontextmanager
async def meaning(**more: Any) -> AsyncIterator[tuple[House, Endpoint]]:
    """A gateway whose embeddings come from an endpoint of the test's."""
    async with endpoint() as served:
        embeddings = {"cluster": "models", "model_id": "m", "dimensions": DIMENSIONS, **more}
        tenant = listener(gateway={"search": {"embeddings": embeddings}})
        clusters = [{"name": "models", "endpoints": [served.origin]}]
        async with house(tenant, more_clusters=clusters) as here:
            yield here, served


async def pushed(here: House) -> None:
    await here.put("McpTool", "a/main/sky.look", tool("sky.look", "Weather for a place"))
    await here.put("McpTool", "a/main/post.send", tool("post.send", "Send a letter"))


async def until(here: House, vectors: int) -> None:
    """Wait until that many tools have vectors."""
    async with asyncio.timeout(BOUND):
        while (await here.admin("config_dump"))["embeddings"]["a"]["vectors"] != vectors:
            pass


async def over_http(here: House, query: str, **more: Any) -> Spec:
    async with here.http.post(f"{here.a.url}/mcp/search", json={"query": query, **more}) as response:
        found: Spec = await response.json()
        return found


async def over_mcp(here: House, query: str, **more: Any) -> Spec:
    result = await Client(here.a, modern=True).use("search_tools", query=query, **more)
    found: Spec = result["structuredContent"]
    return found


doors = pytest.mark.parametrize("ask", [over_http, over_mcp], ids=["http", "search_tools"])


@doors
async def test_what_shares_no_word_with_a_query_is_found_by_meaning_and_the_answer_says_how(ask: Any) -> None:
    async with meaning() as (here, _):
        await pushed(here)
        await until(here, 2)
        found = await ask(here, "umbrella", limit=1)
        assert [one["name"] for one in found["tools"]] == ["sky.look"]
        assert found["ranking"] == "bm25+embeddings"
        assert "degraded" not in found
        assert 'arion_tds_vectors{scope="a/main"} 2.0' in await here.metrics()


@doors
async def test_a_new_tool_is_found_by_its_words_before_it_has_a_vector(ask: Any) -> None:
    async with meaning() as (here, served):
        served.hang = asyncio.Event()
        await pushed(here)
        found = await ask(here, "weather")
        assert [one["name"] for one in found["tools"]] == ["sky.look"]
        assert (found["ranking"], found["degraded"]) == ("bm25", "embeddings: pending")


@doors
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (lambda _: 500, "upstream_error"),
        (lambda _: b'{"data":[{"embedding":[NaN]}]}', "invalid_output"),
        (lambda _: {"data": []}, "invalid_output"),
        (lambda asked: {"data": [{"embedding": [1.0]} for _ in asked["input"]]}, "invalid_output"),
    ],
    ids=["500", "nan", "too-few", "wrong-dimensions"],
)
async def test_a_failing_endpoint_leaves_words_and_is_named_and_counted(ask: Any, answer: Any, code: str) -> None:
    async with meaning() as (here, served):
        await pushed(here)
        await until(here, 2)
        served.answer = answer
        found = await ask(here, "weather umbrella")
        assert [one["name"] for one in found["tools"]] == ["sky.look"]
        assert (found["ranking"], found["degraded"]) == ("bm25", f"embeddings: {code}")
        assert f'of="query",outcome="{code}",scope="a/main"' in await here.metrics()
        await here.put("McpTool", "a/main/new.tool", tool("new.tool", "An update is never refused for it"))
        assert "new.tool" in await here.a.search("update refused")
        assert await here.problems() == []


@doors
async def test_a_slow_endpoint_does_not_hold_a_search(ask: Any) -> None:
    async with meaning(timeout="0.05s") as (here, served):
        await pushed(here)
        await until(here, 2)
        served.hang = asyncio.Event()
        found = await ask(here, "weather")
        assert found["degraded"] == "embeddings: upstream_timeout"
        assert len(found["tools"]) == 1


@doors
async def test_vectors_that_came_with_the_tools_are_used(ask: Any) -> None:
    async with meaning() as (here, served):
        await here.put("McpTool", "a/main/x.y", tool("x.y", "Nothing to see", embedding=vector("rain")))
        await here.put("McpTool", "a/main/post.send", tool("post.send", "A letter", embedding=vector("letter")))
        found = await ask(here, "umbrella", limit=1)
        assert [one["name"] for one in found["tools"]] == ["x.y"]
        assert served.texts == ["umbrella"]


@doors
async def test_meaning_finds_nothing_outside_the_namespace_or_that_the_caller_may_not_use(ask: Any) -> None:
    async with meaning() as (here, _):
        await pushed(here)
        await here.put("McpTool", "a/main/sky.secret", tool("sky.secret", "Weather", rbac=HIDDEN))
        await until(here, 3)
        assert [one["name"] for one in (await ask(here, "umbrella"))["tools"]] == ["sky.look", "post.send"]
        only = await ask(here, "umbrella", namespace="post")
        assert ([one["name"] for one in only["tools"]], only["total"]) == (["post.send"], 1)


async def test_the_endpoint_comes_back_and_what_waited_is_embedded() -> None:
    async with meaning() as (here, served):
        served.answer = lambda _: 503
        await pushed(here)
        await served.until(lambda: len(served.asked) >= 1)
        assert (await over_http(here, "weather"))["ranking"] == "bm25"
        served.answer = good
        await until(here, 2)
        dump = (await here.admin("config_dump"))["embeddings"]["a"]
        assert dump == {"vectors": 2, "pending": 0, "given_up": 0, "last_failure": None}
