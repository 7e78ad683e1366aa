"""The official Python SDK's client against a gateway process, in both eras of the protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from e2e_catalog import FORECAST, PUSHED, TOOLS, Tenant
from mcp import Client, MCPError
from mcp.client.subscriptions import ToolsListChanged

pytest_plugins = ["control_plane_example.pytest_plugin"]
pytestmark = pytest.mark.e2e

MODES = ("legacy", "2026-07-28")


async def pages(client: Client) -> list[list[str]]:
    found, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        found.append([tool.name for tool in page.tools])
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_lists_every_page_once_and_calls_with_validated_results(served: Tenant, mode: str) -> None:
    async with asyncio.timeout(20), Client(served.url, mode=mode) as client:
        assert client.protocol_version == {"legacy": "2025-11-25"}.get(mode, mode)
        found = await pages(client)
        assert [len(page) for page in found] == [100, 100, 50]
        assert len({name for page in found for name in page}) == TOOLS

        # The SDK itself checks what comes back against the output schema that was listed.
        result = await client.call_tool(FORECAST, {"city": "Zürich", "days": 1})
        assert result.is_error is False
        assert result.structured_content is not None
        assert result.structured_content["country"] == "CH"

        refused = await client.call_tool(FORECAST, {"days": 1})
        assert refused.is_error is True
        assert refused.structured_content is not None
        assert refused.structured_content["error"]["code"] == "invalid_arguments"

        with pytest.raises(MCPError, match=r"Unknown tool: weather\.no_such"):
            await client.call_tool("weather.no_such", {})


async def test_a_handshake_client_hears_of_a_push_on_its_get_stream(served: Tenant) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with asyncio.timeout(20), Client(served.url, mode="legacy", message_handler=heard.put) as client:
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed is True
        await served.until_listened_to()
        await served.push()
        assert (await heard.get()).method == "notifications/tools/list_changed"
        assert PUSHED in [name for page in await pages(client) for name in page]


async def test_a_stateless_client_hears_of_a_push_on_its_subscription(served: Tenant) -> None:
    async with (
        asyncio.timeout(20),
        Client(served.url, mode="2026-07-28") as client,
        client.listen(tools_list_changed=True) as subscription,
    ):
        assert subscription.honored.tools_list_changed is True
        assert sum(len(page) for page in await pages(client)) == TOOLS
        await served.push()
        assert await anext(subscription) == ToolsListChanged()
        assert PUSHED in [name for page in await pages(client) for name in page]  # and not the cached list
