"""Three gateway processes with one session key behind a proxy that takes turns, and a client of them in either era.

In: the control plane and gateway fixtures of control_plane_example. Out: `Replicas`. Used by test_replicas.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from e2e_processes import eventually
from taking_turns import turns

from control_plane_example.gateway import Gateway
from control_plane_example.mock import MockControlPlane

Spec = dict[str, Any]
Start = Callable[[Spec], Awaitable[Gateway]]

NAMES = ("one", "two", "three")
SCOPE, TOOL = "a/main", "notes.add"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERAS = (LEGACY, MODERN)
ACCEPT = {"Accept": "application/json, text/event-stream"}


@dataclasses.dataclass
class Client:
    """One client of the endpoint. Every request has a connection of its own, so the next replica may get it."""

    url: str
    http: aiohttp.ClientSession
    session: str | None = None

    def request(self, era: str, method: str, **params: Any) -> Spec:
        """What `http.post` is to be given."""
        body: Spec = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {**ACCEPT, "MCP-Protocol-Version": era}
        if era == MODERN:
            meta = {"protocolVersion": era, "clientCapabilities": {}}
            params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}
            headers["Mcp-Method"] = method
            if "name" in params:
                headers["Mcp-Name"] = params["name"]
        elif self.session is not None:
            headers["Mcp-Session-Id"] = self.session
        return {"json": body, "headers": headers}

    async def ask(self, era: str, method: str, **params: Any) -> Spec:
        """The result. AssertionError when the answer is anything else."""
        async with self.http.post(self.url, **self.request(era, method, **params)) as response:
            answer = await response.json()
            assert response.status == 200, answer
            self.session = response.headers.get("Mcp-Session-Id", self.session)
        result: Spec = answer["result"]
        return result

    async def initialize(self) -> None:
        """The handshake of the older era."""
        about = {"name": "replicas", "version": "1"}
        await self.ask(LEGACY, "initialize", protocolVersion=LEGACY, capabilities={}, clientInfo=about)
        body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        headers = self.request(LEGACY, "")["headers"]
        async with self.http.post(self.url, json=body, headers=headers) as response:
            assert response.status == 202

    async def call(self, era: str) -> None:
        """Call the tool; it does what it is to do."""
        result = await self.ask(era, "tools/call", name=TOOL, arguments={})
        assert not result.get("isError"), result

    def stream(self, era: str) -> Any:
        """An open notification stream, as a context manager."""
        if era == MODERN:
            asked = self.request(era, "subscriptions/listen", notifications={"toolsListChanged": True})
            return self.http.post(self.url, **asked)
        headers = {**self.request(era, "")["headers"], "Accept": "text/event-stream"}
        return self.http.get(self.url, headers=headers)


async def told(stream: aiohttp.ClientResponse) -> bool:
    """Whether the stream says that the list changed, before it ends."""
    try:
        async for line in stream.content:
            if b"list_changed" in line:
                return True
    except aiohttp.ClientError:
        return False
    return False


@dataclasses.dataclass
class Replicas:
    """The gateways by name; `client` is of the proxy in front of them."""

    plane: MockControlPlane
    gateways: dict[str, Gateway]
    client: Client

    async def push(self, text: str) -> None:
        """Publish the tool with that description; returns when every replica that is there has taken it."""
        version = await self.plane.put("McpTool", f"{SCOPE}/{TOOL}", spec(text))

        async def taken() -> None:
            streams = self.plane.status()["streams"]
            assert {one["node"] for one in streams} == set(self.gateways)
            for one in streams:
                assert one["types"]["McpTool"]["sent"] == {f"{SCOPE}/{TOOL}": version}
                assert one["types"]["McpTool"]["unanswered"] == 0

        await eventually(taken)

    async def metric(self, name: str) -> dict[str, float]:
        """A metric of each replica, summed over its labels."""
        found: dict[str, float] = {}
        async with aiohttp.ClientSession() as http:
            for replica, gateway in self.gateways.items():
                async with http.get(f"{gateway.admin}/metrics") as response:
                    values = re.findall(rf"^{name}\{{.*\}} (\S+)$", await response.text(), re.MULTILINE)
                found[replica] = sum(map(float, values))
        return found

    async def kill(self, name: str) -> None:
        """End one as a crash does; returns when it is gone."""
        await self.gateways.pop(name).kill()


def spec(text: str) -> Spec:
    """The tool."""
    namespace, _, name = TOOL.partition(".")
    backend = {"method": "POST", "path": "/notes", "cluster": "notes"}
    return {"namespace": namespace, "name": name, "description": text, "rest_backend": backend}


@asynccontextmanager
async def replicas(start: Start, plane: MockControlPlane, scratch: Path) -> AsyncIterator[Replicas]:
    """All three, ready and with the tool, while the block runs."""
    key = scratch / "sessions.key"
    key.write_bytes(base64.b64encode(b"k" * 32))
    block: Spec = {"server_info": {"name": "a", "version": "1"}, "tools_mode": {}, "tds": {"config_name": "main"}}
    async with AsyncExitStack() as stack:
        service = web.Application()
        service.router.add_post("/notes", _noted)
        backend = await stack.enter_async_context(TestServer(service))
        config: Spec = {
            "workers": 1,
            "sessions": {"key": {"file": str(key)}},
            "listeners": [{"name": "a", "mcp_gateway": block}],
            "clusters": [{"name": "notes", "endpoints": [f"http://127.0.0.1:{backend.port}"]}],
        }
        nodes = [{"id": name, "cluster": "arion"} for name in NAMES]
        started = await asyncio.gather(*(start({**config, "node": node}) for node in nodes))
        gateways = dict(zip(NAMES, started, strict=True))
        targets = [gateway.url().removeprefix("http://").removesuffix("/mcp") for gateway in gateways.values()]
        origin = await stack.enter_async_context(turns(targets))
        connector = aiohttp.TCPConnector(force_close=True, limit=0)
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        running = Replicas(plane, gateways, Client(f"{origin}/mcp", http))
        await running.push("first")
        await running.client.initialize()
        yield running


async def _noted(_: web.Request) -> web.Response:
    return web.json_response({"noted": True})
