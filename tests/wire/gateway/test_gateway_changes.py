"""list_changed and cursors on a running gateway: who is told of a change, how often, and walking across one."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
from gateway_house import BOUND, House, Spec, Tenant, house, listener, numbered, tool

CHANGED = "notifications/tools/list_changed"
TENANTS = (listener(), listener("b"))
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


class Stream:
    """One open event stream: its messages so far, read by a task of its own until the server ends it."""

    def __init__(self) -> None:
        self.messages: list[Spec] = []
        self._heard = asyncio.Condition()

    async def read(self, response: aiohttp.ClientResponse) -> None:
        async for line in response.content:
            if line.startswith(b"data: "):
                async with self._heard:
                    self.messages.append(json.loads(line[6:]))
                    self._heard.notify_all()

    @property
    def changes(self) -> int:
        """How often it was told that the list changed."""
        return sum(one.get("method") == CHANGED for one in self.messages)

    async def told(self, times: int) -> None:
        """Wait until it was told that often."""
        async with asyncio.timeout(BOUND), self._heard:
            await self._heard.wait_for(lambda: self.changes >= times)


@contextlib.asynccontextmanager
async def legacy(tenant: Tenant) -> AsyncIterator[Stream]:
    """A session's GET stream. At the end of the block the server must have ended it, so that nothing is missed."""
    await tenant.initialize()
    assert tenant.session is not None
    headers = {"accept": "text/event-stream", "mcp-session-id": tenant.session}
    async with tenant.http.get(f"{tenant.url}/mcp", headers=headers) as response, _reading(response) as stream:
        yield stream


@contextlib.asynccontextmanager
async def modern(tenant: Tenant) -> AsyncIterator[Stream]:
    """A subscriptions/listen stream, acknowledged."""
    meta = {VERSION: "2026-07-28", CAPABILITIES: {}}
    params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
    body = {"jsonrpc": "2.0", "id": "sub-1", "method": "subscriptions/listen", "params": params}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "subscriptions/listen",
    }
    async with (
        tenant.http.post(f"{tenant.url}/mcp", json=body, headers=headers) as response,
        _reading(response) as stream,
    ):
        yield stream


@contextlib.asynccontextmanager
async def _reading(response: aiohttp.ClientResponse) -> AsyncIterator[Stream]:
    assert response.status == 200, await response.text()
    stream = Stream()
    reader = asyncio.create_task(stream.read(response))
    try:
        yield stream
        async with asyncio.timeout(BOUND):
            await reader
    finally:
        reader.cancel()


@contextlib.asynccontextmanager
async def listening(*listeners: Spec) -> AsyncIterator[tuple[House, dict[str, list[Stream]]]]:
    """A house, and both kinds of stream of every tenant. The gateway is stopped before the streams are judged."""
    async with contextlib.AsyncExitStack() as streams, house(*listeners) as here:
        # The streams outlive the gateway: whatever it said until its end is read.
        http = await streams.enter_async_context(aiohttp.ClientSession())
        opened: dict[str, list[Stream]] = {}
        for name, tenant in here.tenants.items():
            own = Tenant(tenant.url, http)
            opened[name] = [await streams.enter_async_context(open_(own)) for open_ in (legacy, modern)]
        for name, found in opened.items():
            await _subscribed(here, name, len(found))
        yield here, opened
        await quiet(here)


async def _subscribed(here: House, name: str, count: int) -> None:
    async with asyncio.timeout(BOUND):
        while here.gateway.fronts[name].status()["open_streams"] < count:
            await here.tenants[name].post("ping", {})


async def quiet(here: House) -> None:
    """Until no front has a notification left to send."""
    async with asyncio.timeout(BOUND):
        for name, front in here.gateway.fronts.items():
            while front._streams._notifier._timer is not None:
                await here.tenants[name].post("ping", {})


def counts(streams: dict[str, list[Stream]]) -> dict[str, list[int]]:
    return {name: [one.changes for one in found] for name, found in streams.items()}


async def test_one_response_with_many_tools_is_one_notification_on_every_stream_of_the_tenant_and_none_elsewhere() -> (
    None
):
    async with listening(*TENANTS) as (here, streams):
        here.plane.hold()
        names = list(numbered("shop.t", 60))
        for name in names:
            await here.plane.put("McpTool", f"a/main/{name}", tool(name))
        here.plane.release()
        await here.plane.acked("McpTool", f"a/main/{names[-1]}")
    assert counts(streams) == {"a": [1, 1], "b": [0, 0]}


async def test_a_burst_of_changes_is_gathered() -> None:
    async with listening(*TENANTS) as (here, streams):
        for name in numbered("shop.t", 30):
            await here.put("McpTool", f"a/main/{name}", tool(name))
        changes = here.gateway.catalogs[0].published.view.list_revision
        assert changes == 30
    told = counts(streams)
    assert told["b"] == [0, 0]
    assert told["a"][0] == told["a"][1]
    assert 1 <= told["a"][0] < changes  # at most one in a tenth of a second


async def test_what_tools_list_does_not_show_is_no_change_of_the_list() -> None:
    spec = tool("shop.order")
    async with listening() as (here, streams):
        await here.put("McpTool", "a/main/shop.order", spec)
        for stream in streams["a"]:
            await stream.told(1)
        for path in ("/v2/order", "/v3/order"):
            hidden = {**spec, "rest_backend": {**spec["rest_backend"], "path": path}}
            await here.put("McpTool", "a/main/shop.order", hidden)
            assert (await here.a.echo("shop.order"))["path"] == path
    assert counts(streams) == {"a": [1, 1]}


async def test_a_tool_that_search_alone_finds_is_no_change_of_the_list() -> None:
    async with listening(listener(gateway={"search": {}})) as (here, streams):
        await here.put("McpTool", "a/main/shop.hidden", tool("shop.hidden"))
        assert await here.a.search("echoes") == ["shop.hidden"]
        assert await here.a.listed() == ["search_tools", "call_tool"]
        await here.put("McpTool", "a/main/shop.shown", tool("shop.shown", disclosure_mode="EAGER"))
        assert await here.a.listed() == ["search_tools", "call_tool", "shop.shown"]
        for stream in streams["a"]:
            await stream.told(1)
        await here.put("McpTool", "a/main/shop.hidden", tool("shop.hidden", "Another text"))
        await here.remove("McpTool", "a/main/shop.hidden")
    assert counts(streams) == {"a": [1, 1]}


async def test_a_refused_tool_an_equal_one_and_a_reconnect_are_no_change_of_the_list() -> None:
    async with listening() as (here, streams):
        spec = tool("shop.order")
        await here.put("McpTool", "a/main/shop.order", spec)
        for stream in streams["a"]:
            await stream.told(1)
        await here.refused("McpTool", "a/main/shop.order", {**spec, "description": ""}, "description is empty")
        await here.put("McpTool", "a/main/shop.order", spec)
        await here.cut()
        await here.a.serves("shop.order")
    assert counts(streams) == {"a": [1, 1]}


async def test_a_description_a_schema_and_a_removal_are_changes_of_the_list() -> None:
    async with listening() as (here, streams):
        steps: list[Spec] = [
            tool("shop.order"),
            tool("shop.order", "Another text"),
            tool("shop.order", "Another text", input_schema={"inline_string": '{"required":["id"]}'}),
        ]
        for number, spec in enumerate(steps, 1):
            await here.put("McpTool", "a/main/shop.order", spec)
            for stream in streams["a"]:
                await stream.told(number)
        await here.remove("McpTool", "a/main/shop.order")
        for stream in streams["a"]:
            await stream.told(4)
    assert counts(streams) == {"a": [4, 4]}


async def test_the_streams_end_in_order_and_the_modern_one_with_its_result() -> None:
    async with listening() as (here, streams):
        await here.put("McpTool", "a/main/shop.order", tool("shop.order"))
        for stream in streams["a"]:
            await stream.told(1)
    _, listened = streams["a"]
    first, *_, last = listened.messages
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert (last["id"], last["result"]["resultType"]) == ("sub-1", "complete")


@pytest.mark.parametrize("page_size", [1, 2, 5])
async def test_a_walk_across_changes_neither_loses_nor_doubles_what_was_there_throughout(page_size: int) -> None:
    throughout = list(numbered("shop.keep", 9))
    coming_and_going = [f"shop.keep{number:03}x" for number in range(9)]
    async with house(listener(page_size=page_size)) as here:
        for name in [*throughout, *coming_and_going[::2]]:
            await here.put("McpTool", f"a/main/{name}", tool(name))
        there = dict.fromkeys(coming_and_going[::2])
        turn = itertools.cycle(coming_and_going)

        found, cursor = await here.a.page()
        while cursor is not None:
            name = next(turn)
            if name in there:
                await here.remove("McpTool", f"a/main/{name}")
                del there[name]
            else:
                await here.put("McpTool", f"a/main/{name}", tool(name))
                there[name] = None
            replaced = throughout[len(found) % 9]
            await here.put("McpTool", f"a/main/{replaced}", tool(replaced, f"After {len(found)}"))
            page, cursor = await here.a.page(cursor)
            found += page

        names = [one["name"] for one in found]
        assert names == sorted(set(names))
        assert [name for name in names if name in throughout] == throughout


async def test_a_cursor_whose_tool_is_gone_continues_after_it() -> None:
    async with house(listener(page_size=1)) as here:
        for name in ("n.a", "n.b", "n.c"):
            await here.put("McpTool", f"a/main/{name}", tool(name))
        first, cursor = await here.a.page()
        assert cursor is not None
        for name in ("n.a", "n.b"):
            await here.remove("McpTool", f"a/main/{name}")
        rest, end = await here.a.page(cursor)
        assert [one["name"] for one in (*first, *rest)] == ["n.a", "n.c"]
        assert end is None
