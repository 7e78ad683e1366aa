"""A tenant with 250 tools for tests of clients: one of the demo catalog that can be called, and 249 of no use.

In: the control plane and gateway fixtures of control_plane_example. Out: `Tenant`, a gateway process that serves them.
Used by the tests of this folder that drive MCP clients.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp.test_utils import TestServer
from e2e_processes import ROOT, eventually

from control_plane_example import sample_service
from control_plane_example.gateway import Gateway
from control_plane_example.mock import MockControlPlane

Start = Callable[[dict[str, Any]], Awaitable[Gateway]]
SCOPE = "tenant-a-mcp/main"
FORECAST = "weather.get_forecast"
TOOLS = 250
PUSHED = "weather.get_pushed"
CATALOG = ROOT / "control_plane_example" / "catalog"


def document(path: Path) -> dict[str, Any]:
    """The spec in a catalog file."""
    spec: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))["spec"]
    return spec


def filler(number: int) -> dict[str, Any]:
    """A tool that is only listed."""
    return {
        "namespace": "filler",
        "name": f"tool_{number:03}",
        "description": f"Number {number}",
        "input_schema": {"inline_string": '{"type": "object"}'},
        "rest_backend": {"method": "GET", "path": "/", "cluster": "weather_api"},
    }


@dataclasses.dataclass(frozen=True)
class Tenant:
    """A running gateway with its control plane."""

    gateway: Gateway
    control_plane: MockControlPlane

    @property
    def url(self) -> str:
        """The MCP endpoint."""
        return self.gateway.url()

    async def push(self) -> None:
        """Publish one tool more; returns when the gateway has taken it."""
        name = f"{SCOPE}/{PUSHED}"
        spec = document(CATALOG / f"tenant-a-{FORECAST}.yaml")
        await self.control_plane.put("McpTool", name, {**spec, "name": "get_pushed"})
        await self.control_plane.acked("McpTool", name)

    async def until_listened_to(self, streams: int = 1) -> None:
        """Until so many streams for notifications are open."""

        async def open_stream() -> None:
            async with aiohttp.ClientSession() as http, http.get(f"{self.gateway.admin}/config_dump") as response:
                assert (await response.json())["listeners"]["a"]["open_streams"] == streams

        await eventually(open_stream)


@asynccontextmanager
async def tenant(start: Start, control_plane: MockControlPlane) -> AsyncIterator[Tenant]:
    """A gateway that serves all 250 tools while the block runs."""
    names = [f"filler.{filler(number)['name']}" for number in range(TOOLS - 1)]
    for number, name in enumerate(names):
        await control_plane.put("McpTool", f"{SCOPE}/{name}", filler(number))
    spec = document(CATALOG / f"tenant-a-{FORECAST}.yaml")
    await control_plane.put("McpTool", f"{SCOPE}/{FORECAST}", spec)
    async with TestServer(sample_service.app()) as service:
        server, config = SCOPE.split("/")
        gateway = {"server_info": {"name": server, "version": "1"}, "tools_mode": {}, "tds": {"config_name": config}}
        running = await start(
            {
                "listeners": [{"name": "a", "page_size": 100, "mcp_gateway": gateway}],
                "clusters": [{"name": "weather_api", "endpoints": [f"http://127.0.0.1:{service.port}"]}],
            }
        )
        await control_plane.acked("McpTool", f"{SCOPE}/{FORECAST}")
        yield Tenant(running, control_plane)
