"""What sources and servers stand on: a small OpenAPI document, and an MCP server whose tools the test chooses."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from aiohttp import web
from gateway_house import Spec, inline, serving

PAGE = 2
"""Tools on one page of the MCP server's list."""


def document(*operations: str, version: str = "3.1.0") -> str:
    """An OpenAPI document: one GET per operationId, at `/api/<operationId>`."""
    paths = {
        f"/api/{name}": {
            "get": {"operationId": name, "summary": f"Operation {name}", "responses": {"200": {"description": "ok"}}}
        }
        for name in operations
    }
    return json.dumps({"openapi": version, "info": {"title": "t", "version": "1"}, "paths": paths})


def source(namespace: str, *operations: str, **more: Any) -> Spec:
    """An OpenApiToolSource of these operations on the echo backend."""
    return {"namespace": namespace, "cluster": "echo", "spec": inline(document(*operations)), **more}


def server(namespace: str, url: str, **more: Any) -> Spec:
    """A DynamicMcpServer at that URL."""
    return {"namespace": namespace, "description": "d", "transport": "StreamableHttp", "url": url, **more}


class McpUpstream:
    """A stateless MCP server of the handshake era.

    `status`: what every POST is answered with when it is not 200. While `open` is not set, lists are not answered;
    `asked` tells that one was asked for.
    """

    def __init__(self, *tools: str) -> None:
        self.tools: Sequence[str] = tools
        self.status = 200
        self.url = ""
        self.lists = 0
        self.asked = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()

    async def handle(self, request: web.BaseRequest) -> web.Response:
        if request.method != "POST" or request.headers.get("MCP-Protocol-Version") == "2026-07-28":
            return web.Response(status=405 if request.method != "POST" else 400)
        if self.status != 200:
            return web.Response(status=self.status)
        message = json.loads(await request.read())
        if message["method"] == "tools/list":
            self.asked.set()
            await self.open.wait()
        if "id" not in message:
            return web.Response(status=202)
        result = self._result(message["method"], message.get("params") or {})
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _result(self, method: str, params: Spec) -> Spec:
        if method == "initialize":
            version = params["protocolVersion"]
            return {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "u", "version": "1"},
            }
        if method == "tools/list":
            self.lists += 1
            at = int(params.get("cursor", "0"))
            page: Spec = {"tools": [self._tool(name) for name in self.tools[at : at + PAGE]]}
            if at + PAGE < len(self.tools):
                page["nextCursor"] = str(at + PAGE)
            return page
        text = json.dumps({"method": method, "path": params["name"], "arguments": params.get("arguments")})
        return {"content": [{"type": "text", "text": text}]}

    @staticmethod
    def _tool(name: str) -> Spec:
        return {"name": name, "description": f"Discovered {name}", "inputSchema": {"type": "object"}}


@contextlib.asynccontextmanager
async def mcp_upstream(*tools: str) -> AsyncIterator[McpUpstream]:
    """A running MCP server with these tools."""
    made = McpUpstream(*tools)
    async with serving(made.handle) as origin:
        made.url = f"{origin}/mcp"
        yield made
