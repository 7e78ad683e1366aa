"""A gateway in code mode, from a pushed tool to a program that calls it, over MCP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from gateway_house import House, Spec, house, listener, serving, tool

from arion_tds import app
from arion_tds.codemode import deno
from arion_tds.config import judging
from arion_tds.errors import ConfigError

pytest.importorskip("deno", reason="the extra code-mode is not installed")

CITY = {
    "input_schema": {
        "inline_string": json.dumps(
            {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        )
    },
    "rest_backend": {"method": "GET", "path": "/weather/{{city}}", "cluster": "echo"},
}


def kit(*names: str, **more: Any) -> Spec:
    tools = [dict(zip(("namespace", "name"), name.split("."), strict=True)) for name in names]
    return {
        "name": "trip",
        "description": "Plan a trip",
        "instructions": "Ask for the city first.",
        "tools": tools,
        **more,
    }


@pytest.fixture
async def here() -> AsyncIterator[House]:
    async with house(listener(gateway={"code_mode": {"execution_timeout": "5s"}})) as made:
        yield made


async def run(here: House, code: str) -> Any:
    """The value of a program that works."""
    result = await here.a.call("execute", code=code)
    assert not result.get("isError"), result
    return result["structuredContent"]["result"]


async def fails(here: House, code: str) -> Spec:
    """The error of one that does not."""
    result = await here.a.call("execute", code=code)
    assert result.get("isError"), result
    error: Spec = result["structuredContent"]["error"]
    return error


async def test_a_program_searches_describes_calls_three_tools_at_once_and_joins_the_answers(here: House) -> None:
    await here.put("McpTool", "a/main/weather.current", tool("weather.current", "The weather of a city now", **CITY))
    await here.put("McpTool", "a/main/geo.find", tool("geo.find", "Where a place lies"))
    value = await run(
        here,
        """
        const {tools: [found]} = await catalog.tools.search("weather of a city", {limit: 3})
        const about = await catalog.tools.describe(found.name)
        const answers = await Promise.all(["Oslo", "Lima", "Kyoto"].map((city) => tools.call(found.name, {city})))
        const place = await tools.geo.find()
        return {signature: about.signature, paths: answers.map((one) => one.path), place: place.path}
        """,
    )
    assert value == {
        "signature": "tools.weather.current(args: {\n  city: string;\n}): Promise<unknown>",
        "paths": ["/weather/Oslo", "/weather/Lima", "/weather/Kyoto"],
        "place": "/geo/find",
    }


async def test_execute_is_all_that_is_listed_and_all_that_is_called(here: House) -> None:
    await here.put("McpTool", "a/main/geo.find", tool("geo.find"))
    (listed,) = await here.a.tools()
    assert listed["name"] == "execute"
    assert "geo (1)" in listed["description"]
    assert listed["inputSchema"]["required"] == ["code"]
    assert "Unknown tool" in (await here.a.call("geo.find"))["message"]


async def test_the_text_of_execute_follows_the_catalog_and_its_toolkits(here: House) -> None:
    assert "Namespaces (tools): none yet" in await here.a.text("execute")
    await here.put("McpTool", "a/main/geo.find", tool("geo.find"))
    await here.put("McpToolkit", "a/main/trip", kit("geo.find", "geo.later"))
    text = await here.a.text("execute")
    assert "Namespaces (tools): geo (1)" in text
    assert "- trip: Plan a trip Ask for the city first." in text
    await here.remove("McpToolkit", "a/main/trip")
    await here.remove("McpTool", "a/main/geo.find")
    assert "trip" not in await here.a.text("execute")
    assert "Namespaces (tools): none yet" in await here.a.text("execute")


async def test_clients_are_told_when_the_text_changes_and_only_then(here: House) -> None:
    catalog = here.gateway.catalogs[0]
    told: list[int] = []
    catalog.published.listen(lambda _old, new: told.append(new.list_revision))
    await here.put("McpTool", "a/main/geo.find", tool("geo.find", "One text"))
    await here.put("McpTool", "a/main/geo.find", tool("geo.find", "Another text"))
    await here.put("McpToolkit", "a/main/trip", kit("geo.find", "geo.later"))
    assert told == [1, 1, 2]


async def test_a_toolkit_shows_what_is_there_and_what_is_still_to_come(here: House) -> None:
    await here.put("McpTool", "a/main/geo.find", tool("geo.find"))
    await here.put("McpToolkit", "a/main/trip", kit("geo.find", "geo.later"))
    got = await run(here, 'return {kits: await catalog.toolkits.list(), kit: await catalog.toolkits.get("trip")}')
    assert got["kits"] == [{"name": "trip", "description": "Plan a trip", "tools": 2}]
    assert got["kit"]["instructions"] == "Ask for the city first."
    there, pending = got["kit"]["tools"]
    assert (there["name"], pending) == ("geo.find", {"name": "geo.later", "pending": True})
    assert there["signature"].startswith("tools.geo.find(")


async def test_a_tool_that_asks_for_a_token_is_not_there_for_who_has_none(here: House) -> None:
    policy = {"action": "ALLOW", "permissions": [{"jwt_claim": {"field": "role", "value": "admin"}}]}
    await here.put("McpTool", "a/main/vault.open", tool("vault.open", rbac=policy))
    await here.put("McpTool", "a/main/geo.find", tool("geo.find"))
    await here.put("McpToolkit", "a/main/trip", kit("geo.find", "vault.open"))
    assert "vault" not in (await here.a.text("execute")).partition("Toolkits")[0]
    seen = await run(
        here,
        """return {
            spaces: await catalog.namespaces(), listed: (await catalog.tools.list()).tools.map(t => t.name),
            found: (await catalog.tools.search("vault open")).total, keys: Object.keys(tools),
            kit: (await catalog.toolkits.get("trip")).tools.map(t => t.name),
        }""",
    )
    assert seen == {
        "spaces": [{"name": "geo", "tools": 1}],
        "listed": ["geo.find"],
        "found": 0,
        "keys": ["geo"],
        "kit": ["geo.find"],
    }
    assert (await fails(here, "await tools.vault.open()"))["tool_code"] == "unknown_tool"
    assert (await fails(here, 'await catalog.tools.describe("vault.open")'))["tool_code"] == "unknown_tool"


async def test_arguments_are_judged_as_they_are_over_mcp(here: House) -> None:
    await here.put("McpTool", "a/main/weather.current", tool("weather.current", **CITY))
    error = await fails(here, "\nawait tools.weather.current({city: 7})")
    assert (error["code"], error["tool_code"], error["name"]) == ("runtime_error", "invalid_arguments", "ToolError")
    assert (error["line"], error["retryable"]) == (2, False)
    caught = await run(
        here, "try { await tools.weather.current({}) } catch (e) { return [e.code, e.retryable, e instanceof Error] }"
    )
    assert caught == ["invalid_arguments", False, True]


async def test_a_tool_that_arrives_while_a_program_runs_is_for_the_next_one() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def gate(_request: web.BaseRequest) -> web.Response:
        asked.set()
        await answer.wait()
        return web.json_response("opened")

    code = """
        await tools.geo.find()
        return {
            spaces: (await catalog.namespaces()).map((one) => one.name),
            listed: (await catalog.tools.list()).tools.map((one) => one.name),
            called: await tools.late.comer().catch((error) => error.code),
        }
    """
    async with serving(gate) as origin:
        clusters = [{"name": "echo", "endpoints": [origin]}]
        async with house(listener(gateway={"code_mode": {}}), clusters=clusters) as here, asyncio.TaskGroup() as group:
            await here.put("McpTool", "a/main/geo.find", tool("geo.find"))
            running = group.create_task(run(here, code))
            await asked.wait()
            await here.put("McpTool", "a/main/late.comer", tool("late.comer"))
            answer.set()
            assert await running == {"spaces": ["geo"], "listed": ["geo.find"], "called": "unknown_tool"}
            assert await run(here, "await tools.late.comer()") == "opened"


async def test_calls_and_programs_are_counted(here: House) -> None:
    await here.put("McpTool", "a/main/geo.find", tool("geo.find"))
    await run(here, "await Promise.all([tools.geo.find(), tools.geo.find()])")
    await fails(here, "throw 1")
    page = await here.metrics()
    assert 'arion_tds_calls_total{backend="rest",listener="a",outcome="ok"} 2.0' in page
    assert 'arion_tds_executions_total{listener="a",outcome="ok"} 1.0' in page
    assert 'arion_tds_executions_total{listener="a",outcome="runtime_error"} 1.0' in page


async def test_without_the_extra_the_gateway_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "deno", None)
    block = {"server_info": {"name": "a", "version": "1"}, "code_mode": {}}
    config = {
        "listeners": [{"name": "a", "address": "127.0.0.1:0", "mcp_gateway": block}],
        "admin": {"address": "127.0.0.1:0"},
    }
    with pytest.raises(ConfigError, match="pip install 'arion-tds\\[code-mode\\]'") as refused:
        async with app.running(judging.judge(config)):
            pass
    assert deno.INSTALL in str(refused.value)
