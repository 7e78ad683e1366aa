"""A whole gateway between callers of both eras and MCP servers that a test scripts.

In: a House of tests/wire/gateway and `Scripted` servers of tests/wire/backends_mcp. Out: `discovered` publishes servers
over TDS and waits for their tools; a `Caller` lists, calls and listens as a client of its era.
Used by every test of this folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import aiohttp
import pytest
from aiohttp import web
from gateway_house import BOUND, House, Spec, house
from mcp_scripted import Asked, Reply, Scripted

from arion_tds.freshness import Backoff

ERAS: Final = ("legacy", "modern")
BOTH: Final = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
PREFIX: Final = "io.modelcontextprotocol/"
CHANGED: Final = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


def server(namespace: str, to: Scripted | str, **more: Any) -> Spec:
    """A DynamicMcpServer at that server or URL."""
    url = to if isinstance(to, str) else to.url
    return {"namespace": namespace, "description": "d", "transport": "StreamableHttp", "url": url, **more}


def quick(here: House) -> None:
    """Let whatever waits before it tries again wait for milliseconds."""
    here.gateway.freshness._backoff = Backoff(0.02, 0.05)
    settings = here.gateway.upstreams._settings
    default = dataclasses.replace(settings.default, watch_backoff=0.02, watch_backoff_max=0.05)
    here.gateway.upstreams._settings = dataclasses.replace(settings, default=default)


@contextlib.asynccontextmanager
async def gateway(*listeners: Spec, **more: Any) -> AsyncIterator[House]:
    """A house that tries again quickly."""
    async with house(*listeners, **more) as here:
        quick(here)
        yield here


@contextlib.asynccontextmanager
async def discovered(to: Scripted, *listeners: Spec, **more: Any) -> AsyncIterator[House]:
    """A house whose control plane has published the server as `up` of scope a/main, with its tools served."""
    async with to.serving(), gateway(*listeners, **more) as here:
        await here.put("McpDynamicServer", "a/main/up", server("up", to))
        yield here


@dataclasses.dataclass
class Caller:
    """A client of one era at one listener."""

    url: str
    http: aiohttp.ClientSession
    era: str
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    session: str | None = None
    numbers: Any = dataclasses.field(default_factory=lambda: itertools.count(1))

    @classmethod
    async def of(cls, here: House, era: str, tenant: str = "a") -> Caller:
        """Introduced to the gateway, as its era demands."""
        made = cls(f"{here.tenants[tenant].url}/mcp", here.http, era)
        if era == "legacy":
            await made.initialize()
        return made

    async def initialize(self) -> None:
        """The handshake; its session goes with every later request."""
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        async with self.http.post(self.url, **self.request("initialize", info)) as response:
            assert response.status == 200, await response.text()
            self.session = response.headers["Mcp-Session-Id"]

    def request(self, method: str, params: Spec, **more: str) -> dict[str, Any]:
        """Keyword arguments for a POST of it."""
        headers = {**BOTH, **self.headers, **more}
        if self.era == "modern":
            meta = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}
            params = {**params, "_meta": {**meta, **params.get("_meta", {})}}
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
            if "name" in params:
                headers["Mcp-Name"] = params["name"]
        elif self.session is not None:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-11-25"}
        body = {"jsonrpc": "2.0", "id": next(self.numbers), "method": method, "params": params}
        return {"json": body, "headers": headers}

    async def messages(self, method: str, params: Spec) -> list[Spec]:
        """Everything that is said until the answer, the answer last."""
        async with asyncio.timeout(BOUND), self.http.post(self.url, **self.request(method, params)) as response:
            if response.content_type != "text/event-stream":
                return [await response.json()]
            return [message async for message in events(response)]

    async def ask(self, method: str, params: Spec | None = None) -> Spec:
        """The answer: its result, or its error."""
        answer = (await self.messages(method, params or {}))[-1]
        found: Spec = answer["result"] if "result" in answer else answer["error"]
        return found

    async def call(self, name: str, /, _meta: Spec | None = None, **arguments: Any) -> Spec:
        """The result of a call, or its error."""
        return await self.ask(
            "tools/call", {"name": name, "arguments": arguments, **({"_meta": _meta} if _meta else {})}
        )

    async def tools(self) -> list[Spec]:
        """Every tool as it is listed, page by page."""
        found: list[Spec] = []
        cursor: Spec = {}
        while True:
            page = await self.ask("tools/list", cursor)
            found += page["tools"]
            if "nextCursor" not in page:
                return found
            cursor = {"cursor": page["nextCursor"]}

    async def listed(self) -> list[str]:
        """Every listed name."""
        return [tool["name"] for tool in await self.tools()]

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[AsyncIterator[Spec]]:
        """The announcements of this gateway, from here on."""
        if self.era == "modern":
            asked = self.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            opened = self.http.post(self.url, **asked)
        else:
            headers = {"Accept": "text/event-stream", "Mcp-Session-Id": self.session or ""}
            opened = self.http.get(self.url, headers=headers)
        async with opened as response:
            assert response.status == 200, await response.text()
            said = events(response)
            if self.era == "modern":
                async with asyncio.timeout(BOUND):
                    assert (await anext(said))["method"] == "notifications/subscriptions/acknowledged"
            yield said


class Stream:
    """The stream on which a server announces, in its era's way. `open` counts those that stand."""

    def __init__(self, up: Scripted) -> None:
        self.up = up
        self.open: list[tuple[Asked, web.StreamResponse]] = []
        up.on["GET" if up.era == "legacy" else "subscriptions/listen"] = self._opened

    async def _opened(self, asked: Asked) -> Reply:
        frames = []
        if self.up.era == "modern":
            meta = {"io.modelcontextprotocol/subscriptionId": asked.message["id"]}
            params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
            frames = [{"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}]
        response = await asked.stream(*frames)
        self.open.append((asked, response))
        try:
            await asyncio.Event().wait()
        finally:
            self.open.remove((asked, response))
        return response

    async def announce(self) -> None:
        """Say it on every stream."""
        await until(lambda: bool(self.open))
        for asked, response in self.open:
            await asked.send(response, CHANGED)


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[Spec]:
    """The messages of an event stream."""
    data: list[str] = []
    async for raw in response.content:
        line = raw.decode().rstrip("\r\n")
        if line.startswith("data: "):
            data.append(line.removeprefix("data: "))
        elif not line and data:
            yield json.loads("\n".join(data))
            data = []


async def announced(said: AsyncIterator[Spec]) -> None:
    """Wait for the next announcement, which must be of the tool list."""
    async with asyncio.timeout(BOUND):
        assert (await anext(said))["method"] == "notifications/tools/list_changed"


async def quiet(said: AsyncIterator[Spec]) -> None:
    """Nothing more is announced, for three times as long as announcements are gathered. The last use of a stream."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.3):
            pytest.fail(f"heard {await anext(said)}")


async def until_served(here: House, *names: str, scope: str = "a/main") -> None:
    """Wait until the scope serves exactly these tools, by qualified name."""
    (catalog,) = [one for one in here.gateway.catalogs if one.scope == scope]
    await here.published(lambda: sorted(catalog.published.view.qualified) == sorted(names))


async def until(ready: Callable[[], bool]) -> None:
    """Wait, within the loop, for something of which nobody tells."""
    async with asyncio.timeout(BOUND):
        while True:
            if ready():
                return
            await asyncio.sleep(0.005)


def text_of(result: Spec) -> str:
    """The text of a result's first block."""
    assert result.get("content"), result
    found: str = result["content"][0]["text"]
    return found


def failure_of(result: Spec) -> Spec:
    """The error that the gateway made of a failed call."""
    assert result.get("isError") is True, result
    found: Spec = result["structuredContent"]["error"]
    return found
