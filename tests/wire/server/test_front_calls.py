"""Calls that talk while they run, and calls that are cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import aiohttp
import pytest
from front_house import BOTH, events, house, messages, tool

from arion_tds.model.context import CallContext
from arion_tds.model.result import CallResult, RpcError, text_block

LEVEL = {"io.modelcontextprotocol/logLevel": "info"}


def note(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


PROGRESS = note("notifications/progress", progressToken="t", progress=1)
LOG = note("notifications/message", level="info", data="x")


async def talks(_arguments: dict[str, Any], context: CallContext) -> CallResult:
    assert context.notify is not None
    for message in (PROGRESS, LOG, note("notifications/tools/list_changed"), b"not json"):
        context.notify(message)
    return CallResult(content=text_block("done"))


class Hanging:
    """A tool that never ends by itself."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.ended = asyncio.Event()

    async def __call__(self, _arguments: dict[str, Any], _context: CallContext) -> CallResult:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        raise AssertionError


async def test_progress_turns_the_answer_into_a_stream_that_ends_with_the_result() -> None:
    async with house(tool("a")) as here:
        here.backend.does["a"] = talks
        sent = here.modern("tools/call", {"name": "shop.a"}, meta={"progressToken": "t"})
        async with here.http.post(here.url, **sent) as response:
            assert response.content_type == "text/event-stream"
            progress, answer = [one async for one in messages(response)]
            assert progress == json.loads(PROGRESS)
            assert answer["id"] == 1
            assert answer["result"]["content"][0]["text"] == "done"


@pytest.mark.parametrize(
    ("meta", "relayed"), [({}, []), (LEVEL, [LOG]), ({"progressToken": "t", **LEVEL}, [PROGRESS, LOG])]
)
async def test_only_what_the_call_asked_for_is_relayed(meta: dict[str, Any], relayed: list[bytes]) -> None:
    async with house(tool("a")) as here:
        here.backend.does["a"] = talks
        async with here.http.post(here.url, **here.modern("tools/call", {"name": "shop.a"}, meta=meta)) as response:
            if relayed:
                found = [one async for one in messages(response)][:-1]
                assert found == [json.loads(one) for one in relayed]
            else:
                assert response.content_type == "application/json"


async def test_a_legacy_call_streams_progress_too() -> None:
    async with house(tool("a")) as here:
        here.backend.does["a"] = talks
        session = await here.open()
        params = {"name": "shop.a", "_meta": {"progressToken": "t"}}
        body = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}
        async with here.http.post(here.url, json=body, headers={**session, **BOTH}) as response:
            progress, answer = [one async for one in messages(response)]
            assert (progress["params"]["progressToken"], answer["id"]) == ("t", 9)
        assert here.backend.contexts[0].progress_token == b'"t"'


@pytest.mark.parametrize("accept", ["application/json", "*/*"])
async def test_a_client_that_takes_no_streams_gets_json_and_hears_nothing(accept: str) -> None:
    async def quiet(_arguments: dict[str, Any], context: CallContext) -> CallResult:
        assert context.notify is None
        return CallResult(content=text_block("done"))

    async with house(tool("a")) as here:
        here.backend.does["a"] = quiet
        meta = {"progressToken": "t"}
        status, found = await here.ask("tools/call", {"name": "shop.a"}, meta=meta, headers={"Accept": accept})
        assert (status, found["result"]["isError"]) == (200, False)


async def test_a_client_that_takes_only_streams_gets_one() -> None:
    async with house(tool("a")) as here:
        for method, params in (("tools/call", {"name": "shop.a"}), ("tools/list", {}), ("server/discover", {})):
            sent = here.modern(method, params, headers={"Accept": "text/event-stream"})
            async with here.http.post(here.url, **sent) as response:
                assert response.content_type == "text/event-stream"
                (answer,) = [one async for one in messages(response)]
                assert "result" in answer


async def test_a_long_silence_becomes_a_stream_with_comments() -> None:
    async with house(tool("a"), sse_after=0.01, keepalive=0.01) as here:
        go = asyncio.Event()

        async def slow(_arguments: dict[str, Any], _context: CallContext) -> CallResult | RpcError:
            await go.wait()
            return RpcError(-32000, "sorry")

        here.backend.does["a"] = slow
        async with here.http.post(here.url, **here.modern("tools/call", {"name": "shop.a"})) as response:
            heard = events(response)
            assert [await anext(heard) for _ in range(3)] == [None, None, None]
            go.set()
            (answer,) = [one async for one in heard if one is not None]
            assert answer["error"] == {"code": -32000, "message": "sorry"}


async def test_closing_the_connection_cancels_the_call() -> None:
    hanging = Hanging()
    async with house(tool("a")) as here:
        here.backend.does["a"] = hanging
        async with aiohttp.ClientSession() as other:
            call = asyncio.create_task(other.post(here.url, **here.modern("tools/call", {"name": "shop.a"})))
            await hanging.started.wait()
            call.cancel()
            await hanging.ended.wait()


async def test_closing_the_response_stream_cancels_the_call() -> None:
    hanging = Hanging()
    async with house(tool("a"), sse_after=0.0) as here:
        here.backend.does["a"] = hanging
        response = await here.http.post(here.url, **here.modern("tools/call", {"name": "shop.a"}))
        await anext(events(response))
        response.close()
        await hanging.ended.wait()


async def test_a_legacy_client_cancels_its_own_call_by_id() -> None:
    hanging = Hanging()
    async with house(tool("a"), tool("b")) as here:
        here.backend.does["a"] = hanging
        session, other = await here.open(), await here.open()
        call = asyncio.create_task(here.legacy("tools/call", {"name": "shop.a"}, **session))
        await hanging.started.wait()
        assert here.front.status()["running_calls"] == 1
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        wrong = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "1"}}
        assert await here.post(cancel, other) == (202, None)
        assert await here.post(wrong, session) == (202, None)
        assert await here.post(cancel) == (202, None)
        assert not hanging.ended.is_set()
        assert await here.post(cancel, session) == (202, None)
        status, found = await call
        assert (status, found["id"], found["error"]["code"]) == (200, 1, -32800)
        assert here.front.status()["running_calls"] == 0
        assert (await here.legacy("tools/call", {"name": "shop.b"}, **session))[0] == 200


async def test_stopping_lets_a_call_finish_within_the_deadline() -> None:
    started, go = asyncio.Event(), asyncio.Event()

    async def slow(_arguments: dict[str, Any], _context: CallContext) -> CallResult:
        started.set()
        await go.wait()
        return CallResult(content=text_block("in time"))

    async with house(tool("a")) as here:
        here.backend.does["a"] = slow
        call = asyncio.create_task(here.ask("tools/call", {"name": "shop.a"}))
        await started.wait()
        stopping = asyncio.create_task(here.listener.stop(5.0))
        await asyncio.sleep(0)
        go.set()
        _, found = await call
        assert found["result"]["content"][0]["text"] == "in time"
        await stopping
        with pytest.raises(aiohttp.ClientConnectionError):
            await here.ask("tools/list")


async def test_stopping_cancels_what_is_not_done_by_the_deadline() -> None:
    hanging = Hanging()
    async with house(tool("a")) as here:
        here.backend.does["a"] = hanging
        call = asyncio.create_task(here.ask("tools/call", {"name": "shop.a"}))
        await hanging.started.wait()
        await here.listener.stop(0.02)
        await hanging.ended.wait()
        with pytest.raises(aiohttp.ClientConnectionError):
            await call


async def test_a_client_that_takes_nothing_is_cut_off_and_its_call_cancelled() -> None:
    ended = asyncio.Event()
    large = note("notifications/progress", progressToken="t", progress=1, message="x" * 60_000)

    async def floods(_arguments: dict[str, Any], context: CallContext) -> CallResult:
        assert context.notify is not None
        try:
            while True:
                context.notify(large)
                await asyncio.sleep(0)
        finally:
            ended.set()

    async with house(tool("a"), write_timeout=0.05) as here:
        here.backend.does["a"] = floods
        sent = here.modern("tools/call", {"name": "shop.a"}, meta={"progressToken": "t"})
        body = json.dumps(sent["json"]).encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in sent["headers"].items())
        start = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port, limit=1024)
        writer.write(start + body)
        await ended.wait()
        assert here.doorkeeper.lost > 0
        with contextlib.suppress(ConnectionError):
            while await reader.read(1 << 20):
                pass
        writer.close()
