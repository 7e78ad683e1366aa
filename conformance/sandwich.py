"""The gateway as the suite's client: `python -m conformance.sandwich URL`, started by `conformance client`.

In: the URL of the suite's mock server, and the scenario with its context in the environment. Out: what the gateway says
to that server, which is what the suite judges. The gateway gets the server pushed by a control plane, and a caller of
the suite's revision lists its tools and calls them; all of it in this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp

from arion_tds import app
from arion_tds.config import judging
from control_plane_example.mock import MockControlPlane

NAME: Final = "tenant/conformance/server"
SECONDS: Final = 20.0
PREFIX: Final = "io.modelcontextprotocol/"
MODERN: Final = "2026-07-28"
Json = dict[str, Any]


class Caller:
    """A client of one revision."""

    def __init__(self, http: aiohttp.ClientSession, url: str, revision: str) -> None:
        self._http = http
        self._url = url
        self._revision = revision
        self._session: Json = {}
        self._numbers = itertools.count(1)

    async def open(self) -> None:
        """The handshake, where there is one."""
        if self._revision == MODERN:
            return
        info = {"name": "sandwich", "version": "1"}
        await self.ask("initialize", {"protocolVersion": self._revision, "capabilities": {}, "clientInfo": info})

    async def ask(self, method: str, params: Json, **headers: str) -> Json:
        """The result; RuntimeError with the error."""
        sent = {"Accept": "application/json, text/event-stream", **self._session, **headers}
        if self._revision == MODERN:
            capabilities = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
            meta = {PREFIX + "protocolVersion": MODERN, PREFIX + "clientCapabilities": capabilities}
            params = {**params, "_meta": meta}
            sent |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        body = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        async with self._http.post(self._url, json=body, headers=sent) as response:
            if "Mcp-Session-Id" in response.headers:
                session = response.headers["Mcp-Session-Id"]
                self._session = {"Mcp-Session-Id": session, "MCP-Protocol-Version": self._revision}
            text = await response.text()
        if response.content_type == "text/event-stream":
            text = [line for line in text.splitlines() if line.startswith("data: {")][-1].removeprefix("data: ")
        answer = json.loads(text)
        if "result" not in answer:
            raise RuntimeError(text)
        found: Json = answer["result"]
        return found

    async def call(self, tool: Json, arguments: Json, **more: object) -> Json:
        """A tools/call with the headers that the tool's schema asks for."""
        name = tool["name"]
        headers = {"Mcp-Name": name} if self._revision == MODERN else {}
        if self._revision == MODERN:
            for key, schema in tool["inputSchema"].get("properties", {}).items():
                if "x-mcp-header" in schema and arguments.get(key) is not None:
                    headers[f"Mcp-Param-{schema['x-mcp-header']}"] = _header(arguments[key])
        return await self.ask("tools/call", {"name": name, "arguments": arguments, **more}, **headers)


def _header(value: str | bool | int) -> str:  # noqa: FBT001 - a JSON value
    from mcp.shared.inbound import encode_header_value  # the SDK's, not our own: another witness

    return encode_header_value(value if isinstance(value, str) else json.dumps(value))


async def scenario(caller: Caller, context: Json) -> None:
    """List, and call what the scenario wants called."""
    tools: dict[str, Json] = {tool["name"]: tool for tool in (await caller.ask("tools/list", {}))["tools"]}
    asked = context.get("toolCalls") or [{"name": name, "arguments": _arguments(name, tools)} for name in tools]
    for one in asked:
        tool, arguments = tools[one["name"]], one["arguments"]
        result = await caller.call(tool, arguments)
        if result.get("resultType") != "input_required":
            continue
        if "test_mrtr_unrelated" in tools:
            await caller.call(tools["test_mrtr_unrelated"], {})  # in between: nothing of the other may cling to it
        replies = {key: {"action": "accept", "content": {"confirmed": True}} for key in result["inputRequests"]}
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        await caller.call(tool, arguments, inputResponses=replies, **state)


def _arguments(name: str, tools: dict[str, Json]) -> Json:
    match name:
        case "add_numbers":
            return {"a": 5, "b": 3}
        case "json_schema_echo":
            return {"schema": tools["json_schema_2020_12_tool"]["inputSchema"]}
        case "json_schema_2020_12_tool":
            return {"name": "x", "contactMethod": "email", "email": "x@example.com"}
        case "lookup_user":
            return {"id": "x"}
    return {}


@contextlib.asynccontextmanager
async def gateway(url: str) -> AsyncIterator[str]:
    """A gateway that serves the tools of the server at that URL; its MCP endpoint."""
    async with MockControlPlane() as plane:
        block = {
            "server_info": {"name": "tenant", "version": "1"},
            "tools_mode": {},
            "tds": {"config_name": "conformance"},
        }
        settings = {
            "control_plane": {"address": plane.address},
            "admin": {"address": "127.0.0.1:0"},
            "log": {"level": "warning"},
            "listeners": [{"name": "l", "address": "127.0.0.1:0", "tool_names": "bare", "mcp_gateway": block}],
        }
        async with app.running(judging.judge(settings)) as running:
            spec = {"namespace": "server", "description": "The suite's", "transport": "StreamableHttp", "url": url}
            await plane.put("McpDynamicServer", NAME, spec)
            await plane.acked("McpDynamicServer", NAME)
            yield f"http://{running.bound['l']}/mcp"


async def main(url: str) -> None:
    """One scenario."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", MODERN)
    async with asyncio.timeout(SECONDS), gateway(url) as endpoint, aiohttp.ClientSession() as http:
        caller = Caller(http, endpoint, revision)
        await caller.open()
        await scenario(caller, context)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
