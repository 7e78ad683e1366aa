"""A front on a real socket, with a backend that a test scripts, and clients that speak plain HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp

from arion_tds import schema
from arion_tds.model.backend import McpBackend
from arion_tds.model.context import CallContext
from arion_tds.model.names import Naming
from arion_tds.model.result import CallResult, RpcError, text_block
from arion_tds.model.tool import Tool
from arion_tds.schema import Schema
from arion_tds.server.http import FrontSettings, HttpListener, McpFront
from arion_tds.server.sessions import Sessions
from arion_tds.server.settings import Allows, Found, SearchAsk
from arion_tds.view import Entry, Published, View, entry

REVISION = "2026-07-28"
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
BOTH = {"Accept": "application/json, text/event-stream"}

Answer = Callable[[dict[str, Any], CallContext], Awaitable[CallResult | RpcError]]


def tool(name: str, inputs: dict[str, Any] | None = None, **more: Any) -> Tool:
    compiled = schema.of({"type": "object"} if inputs is None else inputs)
    assert isinstance(compiled, Schema), compiled
    description = more.pop("description", f"does {name}")
    return Tool(
        namespace="shop",
        name=name,
        description=description,
        input_schema=compiled,
        backend=McpBackend("up", name),
        **more,
    )


class Backend:
    """A CallPort: what each tool does is a function of the test; others echo their arguments."""

    def __init__(self) -> None:
        self.does: dict[str, Answer] = {}
        self.contexts: list[CallContext] = []

    async def call(
        self, view: View, entry: Entry, arguments: dict[str, Any], context: CallContext
    ) -> CallResult | RpcError:
        assert view.find(entry.published) is entry
        self.contexts.append(context)
        answer = self.does.get(entry.tool.name)
        if answer is not None:
            return await answer(arguments, context)
        return CallResult(content=text_block(json.dumps(arguments)))


class NameSearch:
    """A SearchPort that finds what has the query in its name."""

    async def search(self, view: View, ask: SearchAsk, allows: Allows) -> Found:
        found = [
            view.tools[name]
            for name in view.order
            if ask.query in name
            and allows(view.tools[name].tool.rbac)
            and (ask.namespaces is None or view.tools[name].tool.namespace in ask.namespaces)
        ]
        hits = [(one, 1.0) for one in found[ask.offset : ask.offset + ask.limit]]
        return Found(hits=hits, total=len(found), ranking="names")


class Doorkeeper:
    """An Observer that knows how many streams are open, and lets tests wait for a number."""

    def __init__(self) -> None:
        self.open = 0
        self.lost = 0
        self.turned_away: list[str] = []
        self._moved = asyncio.Event()

    def answered(self, method: str, status: int, seconds: float, *, modern: bool) -> None:
        """Not of interest."""

    def dropped(self, what: str) -> None:
        self.lost += 1

    def refused(self, what: str) -> None:
        self.turned_away.append(what)
        self._moved.set()

    def streams(self, count: int) -> None:
        self.open = count
        self._moved.set()

    async def until_refused(self, what: str) -> None:
        """Return once somebody was turned away for this."""
        while what not in self.turned_away:
            self._moved.clear()
            await self._moved.wait()

    async def until(self, count: int) -> None:
        """Return once exactly so many streams are open."""
        while self.open != count:
            self._moved.clear()
            await self._moved.wait()


class Wall:
    """The clock of sessions."""

    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class House:
    """One listener and what belongs to it."""

    def __init__(self, backend: Backend, *tools: Tool, **settings: Any) -> None:
        self.doorkeeper = Doorkeeper()
        parts: dict[str, Any] = {"observer": self.doorkeeper}
        parts |= {key: settings.pop(key) for key in ("config", "access", "observer", "search") if key in settings}
        searching = parts.pop("search", None)
        counter = itertools.count(1)
        self.backend = backend
        self.wall = Wall()
        self.published = Published("shop/main", Naming.QUALIFIED)
        self.sessions = Sessions(
            b"k" * 32, clock=self.wall, random_bytes=lambda size: next(counter).to_bytes(size, "big"), lifetime=100.0
        )
        self.put(*tools)
        self.front = McpFront(
            FrontSettings(**{"name": "gw", "version": "1", "loopback": True, "notify_interval": 0.001, **settings}),
            self.published,
            backend,
            searching,
            self.sessions,
            clock=asyncio.get_running_loop().time,
            random_bytes=lambda size: b"\x01" * size,
            **parts,
        )
        self.listener = HttpListener(self.front, "127.0.0.1", 0)
        self.http: aiohttp.ClientSession
        self.port = 0
        self.url = ""

    def put(self, *come: Tool, gone: tuple[Tool, ...] = ()) -> None:
        entries = [entry(one, Naming.QUALIFIED) for one in come]
        self.published.publish(self.published.view.replace(gone, entries, {}, eager_only=False))

    async def post(self, body: Any, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """Status and JSON (None for an empty body) of a POST."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **BOTH, **(headers or {})}
        async with self.http.post(self.url, data=data, headers=sent) as response:
            text = await response.text()
            return response.status, json.loads(text) if text else None

    def modern(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Keyword arguments for `http.post` of a well-formed stateless request."""
        meta = {**META, **more.pop("meta", {})}
        params = {**(params or {}), "_meta": meta}
        headers = {"MCP-Protocol-Version": REVISION, "Mcp-Method": method, "Content-Type": "application/json", **BOTH}
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        headers.update(more.pop("headers", {}))
        return {
            "json": {"jsonrpc": "2.0", "id": more.pop("id", 1), "method": method, "params": params},
            "headers": headers,
        }

    async def ask(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> tuple[int, Any]:
        """Status and JSON of a stateless request."""
        async with self.http.post(self.url, **self.modern(method, params, **more)) as response:
            return response.status, await response.json()

    async def open(self, revision: str = "2025-11-25") -> dict[str, str]:
        """Initialize; the headers of the session's further requests."""
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": revision}}
        async with self.http.post(self.url, json=body, headers=BOTH) as response:
            assert response.status == 200
            assert (await response.json())["result"]["protocolVersion"] == revision
            return {"Mcp-Session-Id": response.headers["Mcp-Session-Id"], "MCP-Protocol-Version": revision}

    async def legacy(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON of a request of the handshake era; keywords are headers with `_` for `-`."""
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        return await self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}, sent)


@contextlib.asynccontextmanager
async def house(*tools: Tool, **settings: Any) -> AsyncIterator[House]:
    """A served front; everything is bounded by ten seconds."""
    async with asyncio.timeout(10):
        here = House(Backend(), *tools, **settings)
        host, here.port = await here.listener.start()
        here.url = f"http://{host}:{here.port}/mcp"
        async with aiohttp.ClientSession() as here.http:
            try:
                yield here
            finally:
                await here.listener.stop(1.0)


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[Any]:
    """The messages of an event stream; comments are None."""
    data: list[str] = []
    async for raw in response.content:
        line = raw.decode().rstrip("\r\n")
        if line.startswith(":"):
            yield None
        elif line.startswith("data: "):
            data.append(line.removeprefix("data: "))
        elif not line and data:
            yield json.loads("\n".join(data))
            data = []


async def messages(response: aiohttp.ClientResponse) -> AsyncIterator[Any]:
    """Like `events`, without the comments."""
    async for one in events(response):
        if one is not None:
            yield one
