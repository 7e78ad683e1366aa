"""Three gateways behind a proxy that takes turns: they are one to clients, and one of them can go."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any

import aiohttp
from gateway_house import BOUND, Spec, tool
from gateway_many import Fleet, fleet

THREE = ("one", "two", "three")
CLIENTS = 8
BOTH = {"Accept": "application/json, text/event-stream"}
REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def filled(here: Fleet, text: str = "first") -> None:
    await here.plane.put("McpTool", "a/main/notes.add", tool("notes.add", text))
    await here.everywhere("notes.add", text)


def modern(method: str, **params: Any) -> dict[str, Any]:
    headers = {**BOTH, "MCP-Protocol-Version": REVISION, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    return {"json": body, "headers": headers}


async def test_clients_of_both_eras_are_served_by_whichever_has_its_turn(tmp_path: Path) -> None:
    async with fleet(tmp_path, *THREE) as here:
        await filled(here)
        await here.front.initialize()
        assert here.front.session is not None
        headers = {**BOTH, "Mcp-Session-Id": here.front.session}
        call = {"name": "notes.add", "arguments": {}}
        for _ in range(6):
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            async with here.front.http.post(f"{here.front.url}/mcp", json=body, headers=headers) as response:
                assert response.status == 200
                assert "error" not in await response.json()
            async with here.front.http.post(f"{here.front.url}/mcp", **modern("tools/call", **call)) as response:
                assert not (await response.json())["result"]["isError"]
        assert sum(gateway._sessions.issued for gateway in here.gateways.values()) == 1


async def test_one_push_is_told_by_every_gateway_to_its_own_streams(tmp_path: Path) -> None:
    async with fleet(tmp_path, *THREE) as here, contextlib.AsyncExitStack() as stack:
        await filled(here)
        await here.front.initialize()
        assert here.front.session is not None
        headers = {"Accept": "text/event-stream", "Mcp-Session-Id": here.front.session}
        streams: list[aiohttp.ClientResponse] = []
        for name in THREE:
            url = f"{here.tenant(name).url}/mcp"
            streams.append(await stack.enter_async_context(here.http.get(url, headers=headers)))
            listen = modern("subscriptions/listen", notifications={"toolsListChanged": True})
            streams.append(await stack.enter_async_context(here.http.post(url, **listen)))
        async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
            for stream in streams:
                group.create_task(_told(stream))
            await here.plane.put("McpTool", "a/main/notes.add", tool("notes.add", "second"))


async def _told(stream: aiohttp.ClientResponse) -> None:
    async for line in stream.content:
        if b"list_changed" in line:
            return
    raise AssertionError("the stream ended")


async def test_one_gateway_goes_under_load_and_no_call_fails_but_those_on_their_way_to_it(tmp_path: Path) -> None:
    async with fleet(tmp_path, *THREE) as here:
        await filled(here)
        answers: list[Spec] = []
        lost: list[aiohttp.ClientError] = []  # connected to it, and not taken any more
        half = asyncio.Event()

        async def drive(count: int) -> None:
            for _ in range(count):
                try:
                    answers.append(await here.front.call("notes.add"))
                except aiohttp.ClientError as error:
                    lost.append(error)
                if len(answers) >= 40:
                    half.set()

        async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(drive(20))
            await half.wait()
            await here.stop("two")
        assert len(lost) <= CLIENTS
        assert len(answers) == 20 * CLIENTS - len(lost)
        assert not [one for one in answers if one.get("isError") or "content" not in one]


async def test_gateways_share_one_address_and_each_serves_what_it_is_given(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        async with fleet(tmp_path, "one", "two", address=address, share_address=True) as here:
            await filled(here)
            for _ in range(30):
                await here.front.echo("notes.add")
            await here.stop("one")
            for _ in range(10):
                await here.front.echo("notes.add")
