"""Streams that stay open: who is told, when, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import aiohttp
from front_house import BOTH, House, events, house, messages, tool

from arion_tds.server.notify import AT_ONCE

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


def listening(here: House, wanted: dict[str, Any] | None = None, **more: Any) -> Any:
    filters = {"toolsListChanged": True} if wanted is None else wanted
    return here.http.post(here.url, **here.modern("subscriptions/listen", {"notifications": filters}, **more))


def tagged(identity: Any) -> dict[str, Any]:
    return {"_meta": {"io.modelcontextprotocol/subscriptionId": identity}}


async def test_a_get_stream_hears_of_changes_and_the_next_list_has_them() -> None:
    async with house(tool("a")) as here:
        session = await here.open()
        async with here.http.get(here.url, headers={**session, **BOTH}) as stream:
            assert stream.headers["Content-Type"] == "text/event-stream"
            assert stream.headers["X-Accel-Buffering"] == "no"
            heard = events(stream)
            assert await anext(heard) is None  # a comment opens the stream for proxies
            here.put(tool("b"))
            assert await anext(heard) == CHANGED
            _, found = await here.legacy("tools/list", **session)
            assert [one["name"] for one in found["result"]["tools"]] == ["shop.a", "shop.b"]


async def test_a_listen_stream_is_acknowledged_first_and_every_frame_carries_its_id() -> None:
    async with (
        house() as here,
        listening(here, {"toolsListChanged": True, "promptsListChanged": True}, id="s1") as stream,
    ):
        heard = messages(stream)
        first = await anext(heard)
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"] == {"notifications": {"toolsListChanged": True}, **tagged("s1")}
        here.put(tool("b"))
        assert await anext(heard) == {**CHANGED, "params": tagged("s1")}


async def test_a_kind_that_was_not_asked_for_is_never_sent() -> None:
    async with house() as here, listening(here, {"promptsListChanged": True}) as other, listening(here) as stream:
        silent, heard = messages(other), messages(stream)
        assert (await anext(silent))["params"]["notifications"] == {}
        await anext(heard)
        here.put(tool("b"))
        assert (await anext(heard))["method"] == CHANGED["method"]
        await here.front.close()
        assert "result" in await anext(silent)


async def test_a_publication_that_changes_nothing_listed_is_not_told() -> None:
    one = tool("a")
    async with house(one) as here, listening(here) as stream:
        heard = messages(stream)
        await anext(heard)
        here.put(tool("a"), gone=(one,))
        here.put(tool("b"))
        assert (await anext(heard))["method"] == CHANGED["method"]
        await here.front.close()
        assert "result" in await anext(heard)


async def test_at_shutdown_a_listen_stream_ends_with_its_result_and_a_get_stream_just_ends() -> None:
    async with house() as here:
        session = await here.open()
        async with listening(here, id=7) as modern, here.http.get(here.url, headers={**session, **BOTH}) as legacy:
            told = messages(modern)
            await anext(told)
            await here.front.close()
            last = await anext(told)
            assert last["id"] == 7
            assert last["result"]["resultType"] == "complete"
            assert last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 7
            assert [one async for one in told] == []
            assert [one async for one in messages(legacy)] == []
        async with listening(here) as refused:
            assert refused.status == 503


async def test_silence_is_filled_with_comments() -> None:
    async with house(keepalive=0.01) as here, listening(here) as stream:
        heard = events(stream)
        assert await anext(heard) is None
        assert await anext(heard) is not None
        assert [await anext(heard) for _ in range(3)] == [None, None, None]


async def test_beyond_max_streams_clients_are_turned_away_until_one_leaves() -> None:
    async with house(max_streams=1) as here:
        session = await here.open()
        async with listening(here) as first:
            await anext(messages(first))
            assert here.front.status()["open_streams"] == 1
            async with listening(here) as second:
                assert second.status == 503
                assert "max_streams" in (await second.json())["error"]["message"]
            async with here.http.get(here.url, headers={**session, **BOTH}) as third:
                assert third.status == 503
        await here.doorkeeper.until(0)
        async with here.http.get(here.url, headers={**session, **BOTH}) as third:
            assert third.status == 200


async def test_a_second_get_of_a_session_takes_the_place_of_the_first() -> None:
    async with house() as here:
        session = await here.open()
        async with here.http.get(here.url, headers={**session, **BOTH}) as first:
            heard = events(first)
            await anext(heard)
            async with here.http.get(here.url, headers={**session, **BOTH}) as second:
                assert [one async for one in heard] == []
                again = messages(second)
                here.put(tool("b"))
                assert await anext(again) == CHANGED


async def test_delete_ends_the_sessions_stream() -> None:
    async with house() as here:
        session = await here.open()
        async with here.http.get(here.url, headers={**session, **BOTH}) as stream:
            await anext(events(stream))
            async with here.http.delete(here.url, headers=session):
                pass
            assert [one async for one in messages(stream)] == []


async def test_a_client_that_must_not_get_a_stream_is_told() -> None:
    async with house() as here:
        session = await here.open()
        async with here.http.get(here.url, headers={**session, "Accept": "application/json"}) as stream:
            assert stream.status == 406
        async with listening(here, headers={"Accept": "application/json"}) as stream:
            assert stream.status == 406


async def test_a_listen_without_filters_is_invalid() -> None:
    async with house() as here:
        status, found = await here.ask("subscriptions/listen", {})
        assert (status, found["error"]["code"]) == (400, -32602)


async def test_a_client_that_left_is_forgotten() -> None:
    async with house() as here:
        async with aiohttp.ClientSession() as other:
            stream = await other.post(
                here.url, **here.modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            )
            await anext(messages(stream))
            stream.close()
        await here.doorkeeper.until(0)
        here.put(tool("b"))


async def test_the_first_change_is_told_at_once_and_a_storm_within_the_interval_not_again() -> None:
    async with house(notify_interval=3600.0) as here, listening(here) as stream:
        heard = messages(stream)
        await anext(heard)
        here.put(tool("first"))
        assert (await anext(heard))["method"] == CHANGED["method"]
        for number in range(1000):
            here.put(tool(f"t{number}"))
        await here.front.close()
        assert "result" in await anext(heard)


async def test_a_storm_of_updates_ends_with_a_message_after_which_the_list_has_the_newest_state() -> None:
    async with house(notify_interval=0.01) as here, listening(here) as stream:
        heard, old = messages(stream), tool("same", description="0")
        await anext(heard)
        here.put(old)
        for number in range(1, 1000):
            new = tool("same", description=str(number))
            here.put(new, gone=(old,))
            old = new
            await asyncio.sleep(0)
        while True:
            assert (await anext(heard))["method"] == CHANGED["method"]
            _, found = await here.ask("tools/list")
            if [one["description"] for one in found["result"]["tools"]] == ["999"]:
                break


async def test_messages_pushed_one_upon_the_other_arrive_whole_and_in_order() -> None:
    async with house() as here, listening(here) as stream:
        heard = messages(stream)
        await anext(heard)
        (opening,) = here.front._streams._open
        for number in range(300):
            assert opening.stream.push(b'{"n":%d}' % number)
            if not number % 7:
                await asyncio.sleep(0)
        assert [(await anext(heard))["n"] for _ in range(300)] == list(range(300))


async def test_a_client_of_http_1_0_gets_bare_events() -> None:
    async with house() as here:
        session = await here.open()
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        lines = [f"{name}: {value}" for name, value in {**session, **BOTH, "Host": f"127.0.0.1:{here.port}"}.items()]
        writer.write("\r\n".join(("GET /mcp HTTP/1.0", *lines, "", "")).encode())
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        assert await reader.readuntil(b"\n\n") == b": keep-alive\n\n"
        here.put(tool("a"))
        event = b"event: message\ndata: " + json.dumps(CHANGED, separators=(",", ":")).encode() + b"\n\n"
        assert await reader.readuntil(b"\n\n") == event
        writer.close()


async def test_every_stream_gets_its_comments_however_many_there_are() -> None:
    async with house(keepalive=0.01) as here, contextlib.AsyncExitStack() as stack:
        streams = [events(await stack.enter_async_context(listening(here))) for _ in range(AT_ONCE + 1)]
        for heard in streams:
            assert [await anext(heard) is None for _ in range(5)] == [True, False, True, True, True]
