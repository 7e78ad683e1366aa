"""The official Python SDK as the client, in both eras."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest
from front_house import house, tool
from mcp import Client, MCPError
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import TextContent, ToolListChangedNotification

from arion_tds.model.context import CallContext
from arion_tds.model.result import CallResult, text_block

Era = Literal["legacy", "2026-07-28", "auto"]
ERAS: list[Era] = ["legacy", "2026-07-28", "auto"]


@pytest.mark.parametrize("era", ERAS)
async def test_list_call_and_errors(era: Era) -> None:
    tools = [tool(f"t{number:03}") for number in range(7)]
    async with house(*tools, page_size=3) as here, Client(here.url, mode=era) as client:
        if era != "2026-07-28":  # a client that is told the revision asks for nothing before its first request
            assert client.server_info.name == "gw"
        names: list[str] = []
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            names += [one.name for one in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert names == [f"shop.t{number:03}" for number in range(7)]
        result = await client.call_tool("shop.t001", {"x": "é"})
        assert isinstance(result.content[0], TextContent)
        assert result.content[0].text == '{"x": "\\u00e9"}'
        with pytest.raises(MCPError) as caught:
            await client.call_tool("shop.none", {})
        assert caught.value.error.code == -32602


@pytest.mark.parametrize("era", ERAS)
async def test_progress_arrives_in_order(era: Era) -> None:
    async def counts(_arguments: dict[str, Any], context: CallContext) -> CallResult:
        assert context.notify is not None
        assert context.progress_token is not None
        for step in (1, 2, 3):
            token = context.progress_token
            context.notify(
                b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}'
                % (token, step)
            )
        return CallResult(content=text_block("done"))

    heard: list[float] = []

    async def on_progress(progress: float, _total: float | None, _message: str | None) -> None:
        heard.append(progress)

    async with house(tool("a")) as here:
        here.backend.does["a"] = counts
        async with Client(here.url, mode=era) as client:
            await client.call_tool("shop.a", {}, progress_callback=on_progress)
    assert heard == [1, 2, 3]


async def test_a_modern_client_listens_and_sees_the_new_list() -> None:
    async with house(tool("a")) as here, Client(here.url, mode="2026-07-28") as client:
        assert len((await client.list_tools()).tools) == 1
        async with client.listen(tools_list_changed=True) as changes:
            here.put(tool("b"))
            assert isinstance(await anext(aiter(changes)), ToolsListChanged)
            assert len((await client.list_tools()).tools) == 2


async def test_a_legacy_client_is_notified_and_sees_the_new_list() -> None:
    told = asyncio.Event()

    async def on_message(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            told.set()

    async with house(tool("a")) as here, Client(here.url, mode="legacy", message_handler=on_message) as client:
        await here.doorkeeper.until(1)
        here.put(tool("b"))
        await told.wait()
        assert len((await client.list_tools()).tools) == 2
