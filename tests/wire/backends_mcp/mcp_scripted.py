"""A scripted MCP server on loopback: says what a test tells it to, and keeps what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from aiohttp import web

from arion_tds.model.context import CallContext, Limits

Reply = web.StreamResponse
Handler = Callable[["Asked"], Awaitable[Reply]]

LIMITS = Limits(timeout=5.0, max_response_bytes=1 << 20)
OBJECT = {"type": "object"}


def context(*, modern: bool = False, **more: Any) -> CallContext:
    return CallContext(
        request_id="req-1",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        modern=modern,
        **more,
    )


CONTEXT = context()


@dataclasses.dataclass
class Asked:
    """One request: its HTTP side, and its JSON-RPC message ({} for none)."""

    http: web.BaseRequest
    message: dict[str, Any]

    @property
    def method(self) -> str:
        return str(self.message.get("method") or self.http.method)

    @property
    def params(self) -> dict[str, Any]:
        found: dict[str, Any] = self.message.get("params") or {}
        return found

    @property
    def headers(self) -> dict[str, str]:
        return {key.lower(): value for key, value in self.http.headers.items()}

    def result(self, value: object, **headers: str) -> Reply:
        return reply({"jsonrpc": "2.0", "id": self.message.get("id"), "result": value}, headers=headers)

    def error(self, code: int, message: str, data: object = None, status: int = 200) -> Reply:
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        return reply({"jsonrpc": "2.0", "id": self.message.get("id"), "error": error}, status)

    async def stream(self, *frames: object) -> web.StreamResponse:
        """An event stream of these messages, left open: the handler that returns it ends it."""
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(self.http)
        await self.send(response, *frames)
        return response

    async def send(self, response: web.StreamResponse, *frames: object) -> None:
        for frame in frames:
            data = frame if isinstance(frame, bytes) else b"data: " + json.dumps(frame).encode() + b"\n\n"
            await response.write(data)

    def answer(self, value: object) -> dict[str, Any]:
        """The response message, for a stream."""
        return {"jsonrpc": "2.0", "id": self.message.get("id"), "result": value}


def reply(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    return web.Response(
        status=status,
        body=json.dumps(value).encode(),
        content_type="application/json",
        headers={key.replace("_", "-"): text for key, text in (headers or {}).items()},
    )


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": OBJECT, **more}


class Scripted:
    """Speaks one era by default; `on[method]` overrides. `asked` holds every request in order."""

    def __init__(self, era: str = "legacy") -> None:
        self.era = era
        self.asked: list[Asked] = []
        self.heard = asyncio.Condition()
        self.on: dict[str, Handler] = {}
        self.tools: list[dict[str, Any]] = [tool("echo")]
        self.sessions: set[str] = set()
        self.stateless = False
        self._names = itertools.count(1)
        self.origin = ""

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    def methods(self) -> list[str]:
        return [each.method for each in self.asked]

    def of(self, method: str) -> list[Asked]:
        return [each for each in self.asked if each.method == method]

    async def until(self, ready: Callable[[], bool]) -> None:
        """Wait until a request makes `ready` true."""
        async with asyncio.timeout(5), self.heard:
            await self.heard.wait_for(ready)

    async def handle(self, http: web.BaseRequest) -> Reply:
        body = await http.read()
        message = json.loads(body) if body else {}
        asked = Asked(http, message)
        async with self.heard:
            self.asked.append(asked)
            self.heard.notify_all()
        handler = self.on.get(asked.method)
        if handler is not None:
            return await handler(asked)
        return await (self._modern(asked) if self.era == "modern" else self._legacy(asked))

    async def _legacy(self, asked: Asked) -> Reply:
        if asked.http.method == "GET":
            return web.Response(status=405)
        if asked.http.method == "DELETE":
            self.sessions.discard(asked.headers.get("mcp-session-id", ""))
            return web.Response(status=200)
        if asked.method == "initialize":
            session = f"session-{next(self._names)}"
            self.sessions.add(session)
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "scripted", "version": "1"},
            }
            return asked.result(result) if self.stateless else asked.result(result, mcp_session_id=session)
        if not self.stateless:
            session = asked.headers.get("mcp-session-id", "")
            if not session:
                return asked.error(-32600, "Bad Request: Missing session ID", status=400)
            if session not in self.sessions:
                return asked.error(-32001, "Session not found", status=404)
        if "id" not in asked.message or "result" in asked.message or "error" in asked.message:
            return web.Response(status=202)
        return await self._common(asked, not_found=200)

    async def _modern(self, asked: Asked) -> Reply:
        if asked.http.method != "POST":
            return web.Response(status=405)
        if asked.headers.get("mcp-protocol-version") != "2026-07-28":
            data = {"supported": ["2026-07-28"], "requested": asked.headers.get("mcp-protocol-version", "")}
            return asked.error(-32022, "Unsupported protocol version", data, status=400)
        if asked.headers.get("mcp-method") != asked.message["method"]:
            return asked.error(-32020, "Mcp-Method does not match", status=400)
        if asked.method == "tools/call" and asked.headers.get("mcp-name") != asked.params["name"]:
            return asked.error(-32020, "Mcp-Name does not match", status=400)
        if asked.method == "server/discover":
            info = {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}}
            result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            return asked.result(result | {"ttlMs": 0, "cacheScope": "private", "_meta": info})
        return await self._common(asked, not_found=404)

    async def _common(self, asked: Asked, not_found: int) -> Reply:
        kind = {"resultType": "complete"} if self.era == "modern" else {}
        if asked.method == "tools/list":
            return asked.result(kind | {"tools": self.tools})
        if asked.method == "tools/call":
            return asked.result(kind | text(json.dumps(asked.params.get("arguments"))))
        return asked.error(-32601, "Method not found", status=not_found)

    @contextlib.asynccontextmanager
    async def serving(self, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[Scripted]:
        server = web.Server(self.handle, handler_cancellation=True)
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
        await site.start()
        host, bound = runner.addresses[0][:2]
        self.origin = f"{'https' if tls else 'http'}://{host}:{bound}"
        try:
            yield self
        finally:
            await runner.cleanup()
