"""Progressive disclosure on a running gateway: what is listed, what search finds, what can be called, in both eras."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from disclosure_clients import CHANGED, Client
from gateway_house import BOUND, House, house, inline, listener, tool

OWN = ["search_tools", "call_tool"]
SEARCHING = listener(gateway={"search": {}})
HIDDEN = {"action": "ALLOW", "permissions": [{"jwt_claim": {"field": "role", "value": "admin"}}]}
CITY = inline({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})

both_eras = pytest.mark.parametrize("modern", [True, False], ids=["modern", "handshake"])


async def weather(here: House) -> None:
    """Two progressive tools and an eager one."""
    forecast = tool("weather.get_forecast", "The forecast for a city", input_schema=CITY)
    await here.put("McpTool", "a/main/weather.get_forecast", forecast)
    await here.put("McpTool", "a/main/weather.get_alerts", tool("weather.get_alerts", "Storm warnings"))
    await here.put("McpTool", "a/main/clock.now", tool("clock.now", "The time", disclosure_mode="EAGER"))


@both_eras
async def test_only_eager_tools_and_the_two_own_ones_are_listed(modern: bool) -> None:
    async with house(SEARCHING) as here:
        await weather(here)
        client = await Client(here.a, modern=modern).open()
        assert await client.listed() == [*OWN, "clock.now"]


async def test_without_a_search_block_every_tool_is_listed_and_no_other() -> None:
    async with house(listener()) as here:
        await weather(here)
        assert await here.a.listed() == ["clock.now", "weather.get_alerts", "weather.get_forecast"]
        assert "Unknown tool" in (await here.a.call("search_tools", query="x"))["message"]


@both_eras
async def test_a_search_gives_whole_definitions_with_their_tokens(modern: bool) -> None:
    async with house(SEARCHING) as here:
        await weather(here)
        client = await Client(here.a, modern=modern).open()
        result = await client.use("search_tools", query="forecast of a city")
        found = result["structuredContent"]
        first = found["tools"][0]
        assert first["name"] == "weather.get_forecast"
        assert first["description"] == "The forecast for a city"
        assert first["inputSchema"] == json.loads(CITY["inline_string"])
        assert first["namespace"] == "weather"
        assert 10 < first["tokens"] < 100
        assert first["score"] > 0
        assert found["total"] == 1
        assert found["ranking"] == "bm25"
        assert json.loads(result["content"][0]["text"]) == found


@both_eras
async def test_searches_are_narrowed_paged_and_capped(modern: bool) -> None:
    async with house(listener(gateway={"search": {"max_allowable_results": 2}})) as here:
        await weather(here)
        client = await Client(here.a, modern=modern).open()
        assert await client.found("", namespace="weather") == ["weather.get_alerts", "weather.get_forecast"]
        assert await client.found("", namespace=["clock"]) == ["clock.now"]
        assert await client.found("", limit=1, offset=1) == ["weather.get_alerts"]
        result = await client.use("search_tools", query="", limit=50)
        assert result["structuredContent"]["capped"] == 2
        assert result["structuredContent"]["next_offset"] == 2


@both_eras
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"query": 5}, "query: must be a string"),
        ({"query": "x", "limit": 0}, "limit: must be an integer of at least 1"),
        ({"query": "x", "namespace": {}}, "namespace: must be a string or a list"),
        ({"query": "x", "tool": 1}, "tool: unknown field"),
    ],
)
async def test_a_search_that_makes_no_sense_says_why(modern: bool, arguments: Any, why: str) -> None:
    async with house(SEARCHING) as here:
        client = await Client(here.a, modern=modern).open()
        result = await client.use("search_tools", **arguments)
        assert result["isError"]
        assert result["structuredContent"]["error"]["code"] == "invalid_arguments"
        assert why in result["content"][0]["text"]


@both_eras
async def test_a_tool_that_is_not_listed_is_called_by_its_name_and_through_call_tool(modern: bool) -> None:
    async with house(SEARCHING) as here:
        await weather(here)
        client = await Client(here.a, modern=modern).open()
        direct = await client.use("weather.get_forecast", city="Bern")
        through = await client.use("call_tool", name="weather.get_forecast", arguments={"city": "Bern"})
        as_text = await client.use("call_tool", name="weather.get_forecast", arguments='{"city": "Bern"}')
        assert not direct["isError"]
        assert direct["content"] == through["content"] == as_text["content"]
        assert (await client.use("call_tool", name="weather.get_alerts"))["isError"] is False
        assert 'outcome="ok"' in await here.metrics()


@both_eras
async def test_call_tool_judges_arguments_as_a_call_does(modern: bool) -> None:
    async with house(SEARCHING) as here:
        await weather(here)
        client = await Client(here.a, modern=modern).open()
        for arguments in ({}, {"city": 5}):
            direct = await client.use("weather.get_forecast", **arguments)
            through = await client.use("call_tool", name="weather.get_forecast", arguments=arguments)
            assert direct["isError"]
            assert direct["structuredContent"] == through["structuredContent"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "name: must be the name of a tool"),
        ({"name": 5}, "name: must be the name of a tool"),
        ({"name": "weather.get_alerts", "arguments": [1]}, "arguments: must be a JSON object"),
        ({"name": "weather.get_alerts", "arguments": "{"}, "holds no JSON object"),
        ({"name": "weather.get_alerts", "city": "Bern"}, "city: unknown field: the tool's own arguments go into"),
        ({"name": "weather.get_forcast"}, "Did you mean weather.get_forecast, weather.get_alerts?"),
        ({"name": "nothing.like_it"}, "Unknown tool: nothing.like_it. Find its name with search_tools"),
        ({"name": "search_tools"}, "search_tools is not called through call_tool"),
    ],
)
async def test_a_call_that_names_no_tool_says_what_to_do(arguments: Any, why: str) -> None:
    async with house(SEARCHING) as here:
        await weather(here)
        result = await Client(here.a, modern=True).use("call_tool", **arguments)
        assert result["isError"]
        assert why in result["content"][0]["text"]


@both_eras
async def test_what_the_caller_may_not_use_is_not_found_suggested_or_called(modern: bool) -> None:
    async with house(SEARCHING) as here:
        await weather(here)
        await here.put("McpTool", "a/main/vault.open_door", tool("vault.open_door", "Open a vault", rbac=HIDDEN))
        client = await Client(here.a, modern=modern).open()
        assert await client.found("open vault door") == []
        assert "vault.open_door" not in await client.found("", limit=100)
        assert await client.found("", namespace="vault") == []
        result = await client.use("call_tool", name="vault.open_dor")
        assert "Did you mean" not in result["content"][0]["text"]
        assert "Unknown tool" in (await client.use("call_tool", name="vault.open_door"))["content"][0]["text"]


async def test_a_session_is_listed_what_it_has_found_and_told_so() -> None:
    async with house(SEARCHING) as here:
        await weather(here)
        client, other = await Client(here.a, modern=False).open(), await Client(here.a, modern=False).open()
        async with asyncio.timeout(BOUND), client.hearing() as heard:
            assert await client.found("forecast") == ["weather.get_forecast"]
            assert await heard.get() == CHANGED
            assert await client.listed() == [*OWN, "weather.get_forecast", "clock.now"]
            assert await other.listed() == [*OWN, "clock.now"]
            assert await client.found("forecast city") == ["weather.get_forecast"]  # nothing new: nothing to tell
            assert await client.found("storm") == ["weather.get_alerts"]
            assert await heard.get() == CHANGED
            assert await client.listed() == [*OWN, "weather.get_alerts", "weather.get_forecast", "clock.now"]
            assert heard.empty()


async def test_a_session_hears_of_changes_of_what_it_has_found() -> None:
    async with house(SEARCHING) as here:
        await weather(here)
        client = await Client(here.a, modern=False).open()
        await client.found("storm")
        async with asyncio.timeout(BOUND), client.hearing() as heard:
            await here.put("McpTool", "a/main/weather.get_alerts", tool("weather.get_alerts", "Floods too"))
            assert await heard.get() == CHANGED
            await here.remove("McpTool", "a/main/weather.get_alerts")
            assert await heard.get() == CHANGED
            assert await client.listed() == [*OWN, "clock.now"]
            await here.put("McpTool", "a/main/weather.get_alerts", tool("weather.get_alerts", "Back again"))
            assert await heard.get() == CHANGED
            assert await client.listed() == [*OWN, "weather.get_alerts", "clock.now"]


async def test_an_ended_session_takes_what_it_has_found_along() -> None:
    async with house(SEARCHING) as here:
        await weather(here)
        client = await Client(here.a, modern=False).open()
        await client.found("storm")
        await client.end()
        assert "error" in await client.ask("tools/list", {})
        again = await Client(here.a, modern=False).open()
        assert await again.listed() == [*OWN, "clock.now"]


async def test_in_the_stateless_era_a_search_changes_no_list() -> None:
    async with house(SEARCHING) as here:
        await weather(here)
        client = Client(here.a, modern=True)
        before = await client.ask("tools/list", {})
        await client.found("storm")
        assert await client.ask("tools/list", {}) == before


async def test_a_bare_name_that_is_one_of_the_gateways_own_is_refused() -> None:
    async with house(listener(gateway={"search": {}}, tool_names="bare")) as here:
        await here.refused(
            "McpTool", "a/main/mine.call_tool", tool("mine.call_tool"), "which is a tool of the gateway itself: rename"
        )
        await here.put("McpTool", "a/main/mine.call_it", tool("mine.call_it"))
        assert await Client(here.a, modern=True).found("call it") == ["call_it"]


@pytest.mark.parametrize("names", ["qualified", "portable"])
async def test_other_spellings_never_meet_the_gateways_own(names: str) -> None:
    async with house(listener(gateway={"search": {}}, tool_names=names)) as here:
        await here.put("McpTool", "a/main/mine.call_tool", tool("mine.call_tool"))
        client = Client(here.a, modern=True)
        (found,) = await client.found("call tool")
        assert (await client.use("call_tool", name=found))["isError"] is False


async def test_the_operator_sees_what_catalog_and_namespaces_cost() -> None:
    async with house(SEARCHING) as here:
        await weather(here)
        dump = await here.dump()
        spaces = dump["namespaces"]
        assert dump["tokens"]["total"] == spaces["weather"]["tokens"] + spaces["clock"]["tokens"]
        assert spaces["weather"]["tokens"] > spaces["clock"]["tokens"] > 5
        assert 'arion_tds_catalog_tokens{scope="a/main"}' in await here.metrics()
        found = await Client(here.a, modern=True).use("search_tools", query="", limit=100)
        costs = [one["tokens"] for one in found["structuredContent"]["tools"]]
        assert abs(sum(costs) - dump["tokens"]["total"]) < 20
        assert 'arion_tds_searches_total{listener="a",via="search_tools"} 1.0' in await here.metrics()


@both_eras
async def test_an_empty_query_gives_an_overview_of_what_the_caller_may_use(modern: bool) -> None:
    async with house(SEARCHING) as here:
        await weather(here)
        await here.put("McpTool", "a/main/vault.open_door", tool("vault.open_door", "Open a vault", rbac=HIDDEN))
        client = await Client(here.a, modern=modern).open()
        found = (await client.use("search_tools", query=" ", limit=1))["structuredContent"]
        assert (found["namespaces"], found["total"], found["ranking"]) == ({"clock": 1, "weather": 2}, 3, "name")
        for ask in ({"query": "storm"}, {"query": "", "namespace": "clock"}, {"query": "", "offset": 1}):
            assert "namespaces" not in (await client.use("search_tools", **ask))["structuredContent"]
