"""The fixtures that other projects load, loaded as they would, with real gateway processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from plain_client import TOOL, Client

from control_plane_example.gateway import Gateway
from control_plane_example.mock import MockControlPlane

pytest_plugins = ["control_plane_example.pytest_plugin"]

Start = Callable[[dict[str, Any]], Awaitable[Gateway]]
FORECAST = "tenant-a-mcp/main/weather.get_forecast"
LISTENER = {
    "name": "a",
    "mcp_gateway": {
        "server_info": {"name": "tenant-a-mcp", "version": "1"},
        "tools_mode": {},
        "tds": {"config_name": "main"},
    },
}
CLUSTER = {"name": "weather_api", "endpoints": ["http://127.0.0.1:4001"]}


def forecast(**changes: Any) -> dict[str, Any]:
    return {
        "namespace": "weather",
        "name": "get_forecast",
        "description": "Forecast of a city",
        "input_schema": {"inline_string": '{"type": "object"}'},
        "rest_backend": {"method": "GET", "path": "/v1/alerts", "cluster": "weather_api"},
        **changes,
    }


async def found(running: Gateway, query: str) -> list[str]:
    async with aiohttp.ClientSession() as http, http.post(f"{running.url('a')}/search", json={"query": query}) as said:
        return [tool["name"] for tool in (await said.json())["tools"]]


async def test_the_control_plane_fixture_runs(
    control_plane: MockControlPlane, dial: Callable[[str], Awaitable[Client]]
) -> None:
    client = await dial(control_plane.address)
    await client.ask(TOOL, "*")
    assert await client.reads() == []


async def test_a_gateway_takes_what_is_put_and_says_what_it_does_not_take(
    gateway: Start, control_plane: MockControlPlane
) -> None:
    running = await gateway({"listeners": [LISTENER], "clusters": [CLUSTER]})
    assert running.url() == running.url("a")
    await control_plane.connected(1)
    version = await control_plane.put("McpTool", FORECAST, forecast())
    await control_plane.acked("McpTool", FORECAST, version)
    assert await found(running, "forecast") == ["weather.get_forecast"]
    await control_plane.put("McpTool", FORECAST, forecast(description=""))
    nack = await control_plane.nacked("McpTool", FORECAST)
    assert nack.names == (FORECAST,)
    assert "description" in nack.reason
    assert await found(running, "forecast") == ["weather.get_forecast"]
    control_plane.remove("McpTool", FORECAST)
    await control_plane.acked_removal("McpTool", FORECAST)
    assert await found(running, "forecast") == []
    assert "listener a serves" in running.logs()
    assert await running.stop() == 0
    await control_plane.connected(0)
    assert await running.stop() == 0


async def test_a_gateway_that_does_not_start_shows_its_log(gateway: Start) -> None:
    with pytest.raises(RuntimeError, match=r"ended with 1:\n(.|\n)*colour: unknown key"):
        await gateway({"listeners": [LISTENER], "colour": "red"})


async def test_content_without_sense_to_the_proto_is_refused_at_once(control_plane: MockControlPlane) -> None:
    with pytest.raises(ValueError, match="kind must be one of"):
        await control_plane.put("Tool", "s/c/n.a", {})
    with pytest.raises(ValueError, match=r"McpTool s/c/n\.a: spec is not a Tool"):
        await control_plane.put("McpTool", "s/c/n.a", {"nmae": 1})
    await control_plane.stop()
    with pytest.raises(RuntimeError, match="not running"):
        control_plane.release()
