"""Clients of both eras that ask the gateway's own tools, and the stream on which a session hears of changes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from gateway_house import BOUND, Spec, Tenant

CHANGED = "notifications/tools/list_changed"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Client:
    """One client; `modern` without a session, else with one after `open`."""

    def __init__(self, tenant: Tenant, *, modern: bool) -> None:
        self.tenant = tenant
        self.modern = modern
        self.headers = {"accept": "application/json, text/event-stream"}

    async def open(self) -> Client:
        """The handshake, where the era has one."""
        if not self.modern:
            self.tenant.session = None
            await self.tenant.initialize()
            assert self.tenant.session is not None
            self.headers["Mcp-Session-Id"] = self.tenant.session
        return self

    async def ask(self, method: str, params: Spec) -> Spec:
        """The whole answer."""
        headers = dict(self.headers)
        if self.modern:
            params = {**params, "_meta": META}
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
            if "name" in params:
                headers["Mcp-Name"] = params["name"]
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with (
            asyncio.timeout(BOUND),
            self.tenant.http.post(f"{self.tenant.url}/mcp", json=body, headers=headers) as response,
        ):
            answer: Spec = await response.json()
            return answer

    async def listed(self) -> list[str]:
        """Names on the first page."""
        return [one["name"] for one in (await self.ask("tools/list", {}))["result"]["tools"]]

    async def use(self, tool: str, /, **arguments: Any) -> Spec:
        """The result of a tools/call."""
        result: Spec = (await self.ask("tools/call", {"name": tool, "arguments": arguments}))["result"]
        return result

    async def found(self, query: str = "", **more: Any) -> list[str]:
        """Names that search_tools finds."""
        result = await self.use("search_tools", query=query, **more)
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return [one["name"] for one in result["structuredContent"]["tools"]]

    async def end(self) -> None:
        """DELETE the session."""
        async with self.tenant.http.delete(f"{self.tenant.url}/mcp", headers=self.headers) as response:
            assert response.status == 204

    @contextlib.asynccontextmanager
    async def hearing(self) -> AsyncIterator[asyncio.Queue[str]]:
        """The session's stream: methods of what comes on it."""
        heard: asyncio.Queue[str] = asyncio.Queue()
        headers = {**self.headers, "accept": "text/event-stream"}
        async with self.tenant.http.get(f"{self.tenant.url}/mcp", headers=headers) as response:
            assert response.status == 200

            async def read() -> None:
                async for line in response.content:
                    if line.startswith(b"data: "):
                        heard.put_nowait(json.loads(line[6:])["method"])

            async with asyncio.TaskGroup() as group:
                task = group.create_task(read())
                yield heard
                task.cancel()
