"""A whole gateway, the control plane that drives it and the backend behind it, all in the test's own event loop.

In: a config of listeners. Out: a `House`: what a tenant's clients see (`Tenant`), what the operator sees (`problems`,
`dump`), and what the control plane hears. Used by every test of this folder.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Final

import aiohttp
from aiohttp import web

from arion_tds import app
from arion_tds.config import judging
from arion_tds.model.delivery import Kind, ResourceId
from control_plane_example import documents
from control_plane_example.mock import MockControlPlane, Nack

BOUND: Final = 10.0
"""Seconds that any single thing may take before the test gives up."""

Spec = dict[str, Any]

OWN = ("search_tools", "call_tool")
"""Tools of the gateway itself, on a listener with search."""


def settings(address: str, backend: str, listeners: Sequence[Spec], **more: Any) -> Spec:
    """A config as the file would hold it; every port is 0."""
    plane = {"address": address, "backoff_base": "20ms", "backoff_max": "50ms"}
    return {
        "control_plane": {**plane, **more.pop("control_plane", {})},
        "admin": {"address": "127.0.0.1:0"},
        "listeners": list(listeners),
        "clusters": [{"name": "echo", "endpoints": [backend]}, *more.pop("more_clusters", ())],
        **more,
    }


def listener(name: str = "a", *, gateway: Spec | None = None, **more: Any) -> Spec:
    """A listener in tools mode whose scope is `<name>/main`."""
    block = {"server_info": {"name": name, "version": "1"}, "tools_mode": {}, "tds": {"config_name": "main"}}
    chosen = {**block, **(gateway or {})}
    if "code_mode" in chosen:
        del chosen["tools_mode"]
    return {"name": name, "address": "127.0.0.1:0", "drain_timeout": "1s", "mcp_gateway": chosen, **more}


def tool(qualified: str, text: str = "A tool that echoes", **more: Any) -> Spec:
    """A REST tool on the echo backend; `more` overrides or adds fields, None takes one away."""
    namespace, _, name = qualified.partition(".")
    spec = {
        "namespace": namespace,
        "name": name,
        "description": text,
        "rest_backend": {"method": "GET", "path": f"/{namespace}/{name}", "cluster": "echo"},
        **more,
    }
    return {field: value for field, value in spec.items() if value is not None}


@dataclasses.dataclass
class Tenant:
    """One listener as its clients see it."""

    url: str
    http: aiohttp.ClientSession
    session: str | None = None

    async def post(self, method: str, params: Spec) -> Spec:
        """One JSON-RPC request of a handshake revision; the whole answer."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"accept": "application/json, text/event-stream"}
        async with asyncio.timeout(BOUND), self.http.post(f"{self.url}/mcp", json=body, headers=headers) as response:
            answer: Spec = await response.json()
            self.session = response.headers.get("Mcp-Session-Id", self.session)
            return answer

    async def page(self, cursor: str | None = None) -> tuple[list[Spec], str | None]:
        """One page of tools/list, and the cursor of the next."""
        result = (await self.post("tools/list", {} if cursor is None else {"cursor": cursor}))["result"]
        return result["tools"], result.get("nextCursor")

    async def tools(self) -> list[Spec]:
        """Every definition, page by page."""
        found, cursor = await self.page()
        while cursor is not None:
            more, cursor = await self.page(cursor)
            found += more
        return found

    async def listed(self) -> list[str]:
        """Every listed name, in order."""
        return [one["name"] for one in await self.tools()]

    async def text(self, name: str) -> str:
        """The description under which the tool is listed."""
        (found,) = [one["description"] for one in await self.tools() if one["name"] == name]
        assert isinstance(found, str)
        return found

    async def search(self, query: str = "", limit: int = 100) -> list[str]:
        """Names that a search finds (an empty query: all of them)."""
        ask = {"query": query, "limit": limit}
        async with asyncio.timeout(BOUND), self.http.post(f"{self.url}/mcp/search", json=ask) as response:
            assert response.status == 200, await response.text()
            return [one["name"] for one in (await response.json())["tools"]]

    async def call(self, name: str, **arguments: Any) -> Spec:
        """A call's answer: a result, or an error."""
        answer = await self.post("tools/call", {"name": name, "arguments": arguments})
        found: Spec = answer.get("result") or answer["error"]
        return found

    async def echo(self, name: str, **arguments: Any) -> Spec:
        """What the echo backend got when the tool was called."""
        result = await self.call(name, **arguments)
        assert not result.get("isError"), result
        got: Spec = json.loads(result["content"][0]["text"])
        return got

    async def serves(self, *names: str) -> None:
        """Exactly these tools are listed and found, and each can be called."""
        assert [name for name in await self.listed() if name not in OWN] == sorted(names)
        assert sorted(await self.search()) == sorted(names)
        for name in names:
            assert (await self.echo(name))["method"]

    async def refuses(self, name: str) -> None:
        """No such tool is there: not listed, not found, not callable."""
        assert name not in await self.listed()
        assert name not in await self.search()
        assert "Unknown tool" in (await self.call(name))["message"]

    async def initialize(self) -> None:
        """The handshake; the session id is kept."""
        await self.post(
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
        )


@dataclasses.dataclass
class House:
    """Control plane, gateway and backend. `tenants` by listener name; `a` is the one that most tests use."""

    plane: MockControlPlane
    gateway: app.Gateway
    http: aiohttp.ClientSession
    tenants: dict[str, Tenant]

    @property
    def a(self) -> Tenant:
        return self.tenants["a"]

    async def put(self, kind: str, name: str, spec: Spec) -> str:
        """Publish, and wait until the gateway has taken it (anew, if it was there before); the version."""
        before = self._accepted(kind, name)
        version = await self.plane.put(kind, name, spec)
        stream = max((one["stream"] for one in self.plane.status()["streams"]), default=0)

        def taken() -> bool:
            if self._accepted(kind, name, version) and self._accepted(kind, name) > before:
                return True
            # Its ACK may be lost with a stream that ends meanwhile: the next one says that the version is in use.
            return (
                any(one["stream"] > stream for one in self.plane.status()["streams"])
                and self._used(kind, name) == version
            )

        await self._until(taken, name)
        return version

    def _used(self, kind: str, name: str) -> str | None:
        """The version that the gateway says is in use."""
        scope, name = "/".join(name.split("/", 2)[:2]), name.split("/", 2)[-1]
        ads = self.gateway.ads
        return None if ads is None else ads.version(Kind(documents.TYPE_URLS.get(kind, kind)), ResourceId(scope, name))

    async def remove(self, kind: str, name: str) -> None:
        """Withdraw, and wait until the gateway has taken that."""
        before = self._removed(name)
        assert self.plane.remove(kind, name)
        await self._until(lambda: self._removed(name) > before, f"{name} gone")

    def _accepted(self, kind: str, name: str, version: str | None = None) -> int:
        """How many responses with the resource (of this version, or of any) were ACKed."""
        url = documents.TYPE_URLS.get(kind, kind)
        return sum(
            answer.type_url == url
            and answer.reason is None
            and name in answer.versions
            and version in {None, answer.versions[name]}
            for _, answer in self.plane._answers
        )

    def _removed(self, name: str) -> int:
        return sum(answer.reason is None and name in answer.removed for _, answer in self.plane._answers)

    async def _until(self, found: Callable[[], bool], what: str) -> None:
        await self.plane._await(lambda: found() or None, BOUND, f"the ACK of {what}")

    async def refused(self, kind: str, name: str, spec: Spec, why: str) -> Nack:
        """Publish what must be refused: the NACK and /problems name it with its version and the reason."""
        version = await self.plane.put(kind, name, spec)
        nack = await self.plane.nacked(kind, name)
        assert f"{name}: " in nack.reason
        assert why in nack.reason
        (problem,) = [one for one in await self.problems() if one["name"] == name]
        assert (problem["state"], problem["version"]) == ("rejected", version)
        assert why in problem["reason"]
        return nack

    async def cut(self) -> None:
        """End the stream, and wait until a new one has been answered for every type."""
        before = max(stream for stream, _ in self.plane._answers)
        self.plane.cut()
        kinds = len(documents.CATALOG)
        await self._until(
            lambda: len({answer.type_url for stream, answer in self.plane._answers if stream > before}) == kinds,
            "every type on a new stream",
        )

    async def published(self, found: Callable[[], bool]) -> None:
        """Wait for the publication after which `found` holds."""
        held = asyncio.Event()
        stops = [
            catalog.published.listen(lambda _old, _new: held.set() if found() else None)
            for catalog in self.gateway.catalogs
        ]
        try:
            async with asyncio.timeout(BOUND):
                if not found():
                    await held.wait()
        finally:
            for stop in stops:
                stop()

    async def problems(self) -> list[Spec]:
        """What /problems shows."""
        found: list[Spec] = (await self.admin("problems"))["problems"]
        return found

    async def dump(self, scope: str = "a/main") -> Spec:
        """The scope's part of /config_dump."""
        (found,) = [one for one in (await self.admin("config_dump"))["scopes"] if one["scope"] == scope]
        assert isinstance(found, dict)
        return found

    async def admin(self, page: str) -> Spec:
        """A page of the operator's listener as JSON."""
        async with asyncio.timeout(BOUND), self.http.get(f"http://{self.gateway.admin}/{page}") as response:
            found: Spec = await response.json()
            return found

    async def metrics(self) -> str:
        """The metrics page."""
        async with asyncio.timeout(BOUND), self.http.get(f"http://{self.gateway.admin}/metrics") as response:
            return await response.text()


@contextlib.asynccontextmanager
async def house(*listeners: Spec, plane: MockControlPlane | None = None, **more: Any) -> AsyncIterator[House]:
    """A house of these listeners (none given: `a`), its gateway connected and ready."""
    async with contextlib.AsyncExitStack() as stack:
        if plane is None:
            plane = await stack.enter_async_context(MockControlPlane())
        backend = await stack.enter_async_context(echoing())
        http = await stack.enter_async_context(aiohttp.ClientSession())
        judged = judging.judge(settings(plane.address, backend, listeners or (listener(),), **more))
        gateway = await stack.enter_async_context(app.running(judged))
        assert gateway.ads is not None
        async with asyncio.timeout(BOUND):
            await plane.connected()
            await gateway.ads.wait_ready()
        tenants = {name: Tenant(f"http://{bound}", http) for name, bound in gateway.bound.items()}
        yield House(plane, gateway, http, tenants)


@contextlib.asynccontextmanager
async def echoing() -> AsyncIterator[str]:
    """A backend that tells what it was asked; its origin."""

    async def echo(request: web.BaseRequest) -> web.Response:
        body = (await request.read()).decode()
        return web.json_response(
            {"method": request.method, "path": request.path, "query": dict(request.query), "body": body}
        )

    async with serving(echo) as origin:
        yield origin


@contextlib.asynccontextmanager
async def serving(handler: Any) -> AsyncIterator[str]:
    """An HTTP server of this handler on a free port; its origin."""
    runner = web.ServerRunner(web.Server(handler, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def inline(value: object) -> Spec:
    """A DataSource: text as it is, anything else as JSON."""
    return {"inline_string": value if isinstance(value, str) else json.dumps(value)}


def raw(content: bytes) -> Spec:
    """A DataSource of bytes."""
    return {"inline_bytes": base64.b64encode(content).decode()}


def merged(spec: Spec, path: str, value: object) -> Spec:
    """The spec with the field at the dot path set, or taken away (None)."""
    head, dot, rest = path.partition(".")
    new = dict(spec)
    if dot:
        new[head] = merged(new.get(head, {}), rest, value)
    elif value is None:
        new.pop(head, None)
    else:
        new[head] = value
    return new


def numbered(prefix: str, count: int) -> Iterator[str]:
    """`prefix000`, `prefix001`, …"""
    return (f"{prefix}{number:03}" for number in range(count))
