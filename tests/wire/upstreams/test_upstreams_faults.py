"""The twenty faults that users of other gateways reported, one test each, through the whole gateway."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import re
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from gateway_house import BOUND, House, listener
from mcp_scripted import Asked, Reply, Scripted, text, tool
from upstream_house import (
    ERAS,
    Caller,
    Stream,
    announced,
    discovered,
    gateway,
    quiet,
    server,
    text_of,
    until,
    until_served,
)

Handler = Callable[[Asked], Awaitable[Reply]]


@pytest.fixture(params=ERAS)
def up(request: pytest.FixtureRequest) -> Scripted:
    """A server of either era."""
    return Scripted(request.param)


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """The caller's."""
    found: str = request.param
    return found


def complete(up: Scripted, result: dict[str, Any]) -> dict[str, Any]:
    return ({"resultType": "complete"} if up.era == "modern" else {}) | result


def paged(up: Scripted, total: int, size: int, *, empty: bool = False) -> None:
    """The list in pages; `empty`: the second page's cursor is the empty string."""

    async def page(asked: Asked) -> Reply:
        given = asked.params.get("cursor")
        at = 0 if given is None else size if given == "" else int(given)
        result: dict[str, Any] = {"tools": [tool(f"t{n:03}") for n in range(at, min(at + size, total))]}
        if at + size < total:
            result["nextCursor"] = "" if empty and at == 0 else str(at + size)
        return asked.result(complete(up, result))

    up.on["tools/list"] = page


async def test_1_meho_2745_names_fit_every_client_and_the_upstreams_own_name_is_called(up: Scripted, era: str) -> None:
    up.tools = [tool("repo.list"), tool("get-user_2"), tool("x.y.z")]
    async with discovered(up, listener(tool_names="portable")) as here:
        caller = await Caller.of(here, era)
        listed = await caller.listed()
        assert len(listed) == 3
        assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in listed)
        for name in listed:
            assert text_of(await caller.call(name)) == "{}"
        assert {asked.params["name"] for asked in up.of("tools/call")} == {"repo.list", "get-user_2", "x.y.z"}


async def test_2_mcp_proxy_233_cursors_go_on_and_the_walk_ends(up: Scripted, era: str) -> None:
    paged(up, 14, 8)
    async with discovered(up, listener(page_size=8)) as here:
        caller = await Caller.of(here, era)
        names: list[str] = []
        cursor: dict[str, str] = {}
        for _ in range(5):
            page = await caller.ask("tools/list", cursor)
            names += [one["name"] for one in page["tools"]]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        else:
            pytest.fail("the walk does not end")
        assert names == [f"up.t{n:03}" for n in range(14)]


@pytest.mark.parametrize("empty", [False, True])
async def test_3_factory_7_every_page_of_the_upstream_is_read(up: Scripted, era: str, empty: bool) -> None:
    paged(up, 101, 50, empty=empty)
    async with discovered(up) as here:
        assert len(await (await Caller.of(here, era)).listed()) == 101
        assert await here.problems() == []


async def test_4_mcphub_742_a_restarted_upstream_costs_one_handshake(era: str) -> None:
    up = Scripted("legacy")
    async with discovered(up) as here:
        caller = await Caller.of(here, era)
        await caller.call("up.echo")
        up.sessions.clear()  # what a restart does to sessions that live in memory
        up.asked.clear()
        results = await asyncio.gather(*(caller.call("up.echo", n=n) for n in range(8)))
        assert [json.loads(text_of(one)) for one in results] == [{"n": n} for n in range(8)]
        assert up.methods().count("initialize") == 1


async def test_5_fastmcp_4161_a_change_is_heard_once_by_clients_of_both_eras_and_is_in_the_next_list(
    up: Scripted,
) -> None:
    stream = Stream(up)
    async with discovered(up) as here, contextlib.AsyncExitStack() as stack:
        callers = [await Caller.of(here, one) for one in ERAS]
        heard = [await stack.enter_async_context(one.listening()) for one in callers]
        up.tools.append(tool("new"))
        await stream.announce()
        for caller, said in zip(callers, heard, strict=True):
            await announced(said)
            assert await caller.listed() == ["up.echo", "up.new"]
        for said in heard:
            await quiet(said)


async def test_6_apify_1233_an_announced_change_that_is_none_is_not_passed_on(up: Scripted) -> None:
    stream = Stream(up)
    async with discovered(up) as here, contextlib.AsyncExitStack() as stack:
        said = await stack.enter_async_context((await Caller.of(here, "modern")).listening())
        lists = len(up.of("tools/list"))
        await stream.announce()
        await until(lambda: len(up.of("tools/list")) > lists)
        await quiet(said)


async def test_7_context_forge_4042_structured_content_is_byte_equal(up: Scripted, era: str) -> None:
    up.tools = [tool("rich", outputSchema={"type": "object"})]
    raw = '{"big": 12345678901234567890, "text": "\\u00e4", "float": 1.0, "z": 1, "a": null}'

    async def rich(asked: Asked) -> Reply:
        kind = '"resultType":"complete",' if up.era == "modern" else ""
        body = (
            f'{{"jsonrpc":"2.0","id":{asked.message["id"]},"result":{{{kind}"content":[],"structuredContent":{raw}}}}}'
        )
        return web.Response(body=body.encode(), content_type="application/json")

    up.on["tools/call"] = rich
    async with discovered(up) as here:
        caller = await Caller.of(here, era)
        asked = caller.request("tools/call", {"name": "up.rich", "arguments": {}})
        async with here.http.post(caller.url, **asked) as response:
            assert raw.encode() in await response.read()


async def test_8_mcp_wordpress_50_a_result_that_misses_its_schema_passes(up: Scripted, era: str) -> None:
    schema = {"type": "object", "properties": {"at": {"type": "string", "format": "date"}}, "required": ["at"]}
    up.tools = [tool("odd", outputSchema=schema)]

    async def odd(asked: Asked) -> Reply:
        return asked.result(complete(up, {"content": [], "structuredContent": {"at": None}}))

    up.on["tools/call"] = odd
    async with discovered(up) as here:
        got = await (await Caller.of(here, era)).call("up.odd")
        assert got["structuredContent"] == {"at": None}
        assert not got.get("isError")


async def test_9_mcpx_28_one_odd_tool_hides_no_other(up: Scripted, era: str) -> None:
    odd = {"name": "odd", "inputSchema": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, "outputSchema": {}}
    up.tools = [tool("first"), odd, tool("list", outputSchema={"type": "array"}), tool("last")]
    async with discovered(up) as here:
        listed = {one["name"]: one for one in await (await Caller.of(here, era)).tools()}
        assert {"up.first", "up.last"} <= listed.keys()
        assert all(one["inputSchema"]["type"] == "object" for one in listed.values())
        if era == "legacy":  # its clients refuse the whole list for such an outputSchema
            assert all(one.get("outputSchema", {"type": "object"})["type"] == "object" for one in listed.values())


async def test_10_fastmcp_4124_a_cancelled_call_is_cancelled_at_its_upstream_while_another_runs(
    up: Scripted, era: str
) -> None:
    running: dict[str, Asked] = {}
    left: list[str] = []
    go_on = asyncio.Event()

    async def slow(asked: Asked) -> Reply:
        who = asked.params["arguments"]["who"]
        running[who] = asked
        try:
            await go_on.wait()
        except asyncio.CancelledError:
            left.append(who)
            raise
        return asked.result(complete(up, text(who)))

    up.on["tools/call"] = slow
    async with discovered(up) as here:
        caller, other = await Caller.of(here, era), await Caller.of(here, era)
        staying = asyncio.create_task(other.call("up.echo", who="stays"))
        asked = caller.request("tools/call", {"name": "up.echo", "arguments": {"who": "goes"}})
        going = asyncio.create_task(_post(here, caller, asked))
        await until(lambda: running.keys() == {"stays", "goes"})
        if era == "modern":
            going.cancel()  # closes the connection
            await asyncio.gather(going, return_exceptions=True)
        else:
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": asked["json"]["id"]}}
            async with here.http.post(caller.url, json=note, headers=asked["headers"]) as response:
                assert response.status == 202
            assert "error" in await going
        async with asyncio.timeout(1):
            if up.era == "modern":
                await until(lambda: left == ["goes"])
            else:
                await until(lambda: bool(up.of("notifications/cancelled")))
                (told,) = up.of("notifications/cancelled")
                assert told.params["requestId"] == running["goes"].message["id"]
        go_on.set()
        assert text_of(await staying) == "stays"


async def _post(here: House, caller: Caller, asked: dict[str, Any]) -> Any:
    async with here.http.post(caller.url, **asked) as response:
        return await response.json()


@contextlib.asynccontextmanager
async def black_hole() -> AsyncIterator[str]:
    """A server that accepts connections and never answers; its URL."""
    held: list[asyncio.StreamWriter] = []
    sink = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{sink.sockets[0].getsockname()[1]}/mcp"
    finally:
        sink.close()
        for writer in held:
            writer.transport.abort()
        await sink.wait_closed()


async def test_11_centian_41_a_dead_upstream_holds_up_neither_list_nor_verdict_of_others(era: str) -> None:
    one, two = Scripted("legacy"), Scripted("modern")
    hasty = {"mcp_servers": {"discovery_timeout": "0.4s"}}
    async with one.serving(), two.serving(), black_hole() as dead, gateway(**hasty) as here:
        here.plane.hold()
        for name, to in (("one", one), ("dead", dead), ("two", two)):
            await here.plane.put("McpDynamicServer", f"a/main/{name}", server(name, to))
        here.plane.release()  # all three in one response
        await until_served(here, "one.echo", "two.echo")  # before the verdict
        async with asyncio.timeout(1):
            assert await (await Caller.of(here, era)).listed() == ["one.echo", "two.echo"]
        nack = await here.plane.nacked("McpDynamicServer")
        assert nack.names == ("a/main/dead",)
        assert "discovery_timeout" in nack.reason


async def test_12_kuadrant_209_tools_come_back_after_an_outage_and_do_not_flap(
    up: Scripted, unused_tcp_port: int
) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}/mcp"
    async with gateway() as here:
        await here.refused("McpDynamicServer", "a/main/up", server("up", url), "cannot be reached")
        async with up.serving(unused_tcp_port):
            await until_served(here, "up.echo")
            assert text_of(await (await Caller.of(here, "modern")).call("up.echo")) == "{}"
            revision = (await here.dump())["revision"]
        caller = await Caller.of(here, "modern")
        assert (await caller.call("up.echo"))["isError"]
        assert await caller.listed() == ["up.echo"]  # an outage is no change of the catalog
        async with up.serving(unused_tcp_port):
            assert text_of(await caller.call("up.echo")) == "{}"
            assert (await here.dump())["revision"] == revision
        assert await here.problems() == []


async def test_13_mcpjungle_252_no_credential_of_the_client_reaches_an_upstream(up: Scripted, era: str) -> None:
    async with discovered(up) as here:
        caller = await Caller.of(here, era)
        caller.headers = {"Authorization": "Bearer canary", "Cookie": "c=canary", "X-Api-Key": "canary"}
        await caller.call("up.echo")
        assert up.of("tools/call")
        assert "canary" not in json.dumps([asked.headers for asked in up.asked])


async def test_14_python_sdk_1283_sessions_that_nobody_ends_cost_nothing() -> None:
    up = Scripted("legacy")
    async with discovered(up) as here:
        caller = await Caller.of(here, "legacy")

        async def initialize(count: int) -> None:
            for _ in range(count):
                await caller.initialize()
                assert text_of(await caller.call("up.echo")) == "{}"
                up.asked.clear()

        await initialize(20)
        tracemalloc.start()
        try:
            await initialize(20)
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
            await initialize(300)
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # Of so many ids as a client may have, it is remembered for a while that their signature was good.
        assert after - before < 300 * 300, "more is kept of each session than its id"
        assert len(up.sessions) == 1  # all clients share the gateway's own session


async def test_15_typescript_sdk_2538_silence_is_filled_with_comments(up: Scripted, era: str) -> None:
    finish = asyncio.Event()

    async def slow(asked: Asked) -> Reply:
        step = {"progressToken": asked.params["_meta"]["progressToken"], "progress": 1}
        response = await asked.stream({"jsonrpc": "2.0", "method": "notifications/progress", "params": step})
        await finish.wait()
        await asked.send(response, asked.answer(complete(up, text("done"))))
        return response

    up.on["tools/call"] = slow
    async with discovered(up, listener(keepalive="0.05s")) as here:
        caller = await Caller.of(here, era)
        params = {"name": "up.echo", "arguments": {}, "_meta": {"progressToken": 1}}
        async with asyncio.timeout(BOUND):
            async with here.http.post(caller.url, **caller.request("tools/call", params)) as response:
                assert response.content_type == "text/event-stream"
                await _comments(response, 3)
                finish.set()
                assert b"done" in await response.read()
            if era == "modern":
                asked = caller.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
                opened = here.http.post(caller.url, **asked)
            else:
                headers = {"Accept": "text/event-stream", "Mcp-Session-Id": caller.session or ""}
                opened = here.http.get(caller.url, headers=headers)
            async with opened as response:
                await _comments(response, 3)


async def _comments(response: Any, count: int) -> None:
    while count:
        count -= (await response.content.readline()).startswith(b":")


async def test_16_agno_7658_meta_and_unknown_keys_of_results_are_kept(up: Scripted, era: str) -> None:
    block = {"type": "text", "text": "x", "com.x/extra": [1], "annotations": {"audience": ["user"]}}

    async def rich(asked: Asked) -> Reply:
        return asked.result(complete(up, {"content": [block], "_meta": {"com.x/y": 1}, "com.x/z": {"k": None}}))

    up.on["tools/call"] = rich
    async with discovered(up) as here:
        got = await (await Caller.of(here, era)).call("up.echo")
        assert got["content"] == [block]
        assert got["_meta"]["com.x/y"] == 1
        assert got["com.x/z"] == {"k": None}


async def test_17_python_sdk_3565_calls_do_not_list(era: str) -> None:
    up = Scripted("modern")
    paged(up, 10_000, 1000)
    async with discovered(up) as here:
        lists = len(up.of("tools/list"))
        caller = await Caller.of(here, era)
        for number in range(0, 10_000, 100):
            assert text_of(await caller.call(f"up.t{number:03}")) == "{}"
        assert len(up.of("tools/list")) == lists == 10


async def test_18_context_forge_5484_upstreams_of_every_kind_serve_callers_of_both_eras() -> None:
    modern, stateful, stateless = Scripted("modern"), Scripted("legacy"), Scripted("legacy")
    stateless.stateless = True
    kinds = {"modern": modern, "stateful": stateful, "stateless": stateless}
    async with contextlib.AsyncExitStack() as stack:
        for one in kinds.values():
            await stack.enter_async_context(one.serving())
        here = await stack.enter_async_context(gateway())
        for name, one in kinds.items():
            await here.put("McpDynamicServer", f"a/main/{name}", server(name, one))
        for era in ERAS:
            caller = await Caller.of(here, era)
            calls = [caller.call(f"{name}.echo", n=n) for n in range(5) for name in kinds]
            results = await asyncio.gather(*calls)
            assert [json.loads(text_of(one))["n"] for one in results] == [n for n in range(5) for _ in kinds]
        assert len(stateful.sessions) == 1


async def test_19_mcpsnoop_92_name_and_method_headers_are_rewritten_with_the_body(era: str) -> None:
    up = Scripted("modern")  # refuses every header that differs from its body
    up.tools = [tool("own.name")]
    async with discovered(up) as here:
        assert text_of(await (await Caller.of(here, era)).call("up.own.name")) == "{}"
        (asked,) = up.of("tools/call")
        assert (asked.headers["mcp-name"], asked.headers["mcp-method"]) == ("own.name", "tools/call")


async def test_20_neotoma_1923_an_unknown_session_is_404_and_none_at_all_to_a_modern_request(up: Scripted) -> None:
    async with discovered(up) as here:
        legacy, modern = await Caller.of(here, "legacy"), await Caller.of(here, "modern")
        legacy.session = "nope"
        params = {"name": "up.echo", "arguments": {}}
        async with here.http.post(legacy.url, **legacy.request("tools/call", params)) as response:
            assert response.status == 404
        asked = modern.request("tools/call", params, **{"Mcp-Session-Id": "nope"})
        async with here.http.post(modern.url, **asked) as response:
            assert response.status == 200
            assert text_of((await response.json())["result"]) == "{}"
        await legacy.initialize()  # what a client does upon 404
        assert text_of(await legacy.call("up.echo")) == "{}"
