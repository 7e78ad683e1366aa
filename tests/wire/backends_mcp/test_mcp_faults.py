"""Faults that users of other gateways reported, one test each, named by the report."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from mcp_scripted import CONTEXT, LIMITS, Asked, Reply, Scripted, context, text, tool

from arion_tds.backends.mcp import discovery
from arion_tds.backends.mcp.connection import Upstream
from arion_tds.backends.mcp.listing import Listing
from arion_tds.backends.mcp.pool import Upstreams, UpstreamsSettings
from arion_tds.backends.mcp.settings import UpstreamSettings
from arion_tds.model.backend import McpBackend
from arion_tds.model.context import Limits
from arion_tds.model.result import CallFailure, CallResult, ErrorCode
from arion_tds.model.server import McpServer

Connect = Callable[..., Upstream]


async def listed(upstream: Upstream) -> Listing:
    async with asyncio.timeout(10):
        found = await upstream.list_tools()
    assert isinstance(found, Listing), found
    return found


def named(listing: Listing) -> list[str]:
    tools, _ = discovery.tools(McpServer(namespace="ns", description="d", url="http://x/"), listing)
    return [each.name for each in tools]


async def called(upstream: Upstream, name: str = "echo", arguments: bytes = b"{}") -> CallResult:
    async with asyncio.timeout(10):
        found = await upstream.call(name, arguments, CONTEXT, LIMITS, idempotent=False)
    assert isinstance(found, CallResult), found
    return found


def pages(server: Scripted, total: int, size: int, first: str = "") -> None:
    """`total` tools in pages of `size`; `first` stands before each cursor's number."""

    async def page(asked: Asked) -> Reply:
        given = asked.params.get("cursor")
        start = 0 if given is None else size if given == "" else int(given.removeprefix(first))
        tools = [tool(f"t{number}") for number in range(start, min(start + size, total))]
        result: dict[str, Any] = {"resultType": "complete", "tools": tools}
        if start + size < total:
            result["nextCursor"] = "" if first == "" and start == 0 else f"{first}{start + size}"
        return asked.result(result)

    server.on["tools/list"] = page


async def test_2_mcp_proxy_233_a_cursor_is_followed_and_the_walk_ends(server: Scripted, connect: Connect) -> None:
    pages(server, 14, 8, first="c")
    assert named(await listed(connect(server))) == [f"t{number}" for number in range(14)]
    assert len(server.of("tools/list")) == 2


async def test_2_codebase_memory_1247_a_cursor_that_never_advances_ends_the_walk_and_is_reported(
    server: Scripted, connect: Connect
) -> None:
    async def same(asked: Asked) -> Reply:
        return asked.result({"tools": [tool("a"), tool("b")], "nextCursor": "same"})

    server.on["tools/list"] = same
    found = await listed(connect(server))
    assert named(found) == ["a", "b"]
    assert len(found.tools) == 2
    assert "repeated a cursor" in found.problems[0].why
    assert not found.partial


async def test_2_metamcp_cursors_without_end_are_cut_by_the_page_limit(server: Scripted, connect: Connect) -> None:
    async def endless(asked: Asked) -> Reply:
        number = int(asked.params.get("cursor", "0"))
        return asked.result({"tools": [tool(f"t{number}")], "nextCursor": str(number + 1)})

    server.on["tools/list"] = endless
    found = await listed(connect(server, max_list_pages=5))
    assert len(found.tools) == 5
    assert found.partial
    assert "max_list_pages" in found.problems[0].why


async def test_3_factory_7_every_page_is_read_and_an_empty_cursor_is_no_end(server: Scripted, connect: Connect) -> None:
    pages(server, 101, 50)
    assert len(named(await listed(connect(server)))) == 101
    assert server.of("tools/list")[1].params["cursor"] == ""


async def test_3_too_many_tools_and_bytes_are_cut_and_said(server: Scripted, connect: Connect) -> None:
    pages(server, 100, 10, first="c")
    found = await listed(connect(server, max_list_tools=25))
    assert (len(found.tools), found.partial) == (25, True)
    assert "max_list_tools" in found.problems[0].why
    found = await listed(connect(server, max_list_bytes=1500))
    assert found.partial
    assert "max_list_bytes" in found.problems[0].why
    server.tools = [tool("x" * 5000)]
    del server.on["tools/list"]
    refused = await connect(server, max_list_bytes=1000).list_tools()
    assert isinstance(refused, CallFailure)
    assert refused.code is ErrorCode.RESPONSE_TOO_LARGE


async def test_3_a_page_that_fails_fails_the_list_instead_of_shortening_it(server: Scripted, connect: Connect) -> None:
    async def second_fails(asked: Asked) -> Reply:
        if "cursor" in asked.params:
            return asked.error(-32603, "oops")
        return asked.result({"tools": [tool("a")], "nextCursor": "2"})

    server.on["tools/list"] = second_fails
    found = await connect(server).list_tools()
    assert isinstance(found, CallFailure)
    assert "oops" in found.message


async def test_4_mcphub_742_a_forgotten_session_is_made_once_more_for_all(legacy: Scripted, connect: Connect) -> None:
    upstream = connect(legacy)
    await called(upstream)
    legacy.sessions.clear()
    results = await asyncio.gather(*(called(upstream) for _ in range(8)))
    assert not any(each.is_error for each in results)
    assert len(legacy.of("initialize")) == 2
    legacy.sessions.clear()
    assert len((await listed(upstream)).tools) == 1
    assert len(legacy.of("server/discover")) == 1


async def test_4_mcp_proxy_149_a_restart_on_the_same_port_is_survived(connect: Connect, unused_tcp_port: int) -> None:
    for era in ("legacy", "modern", "legacy"):
        async with Scripted(era).serving(unused_tcp_port) as first:
            upstream = connect(first)
            assert not (await called(upstream)).is_error
        gone = await called(upstream)
        assert gone.failure is not None
        assert gone.failure.retryable
        async with Scripted(era).serving(unused_tcp_port) as second:
            assert not (await called(upstream)).is_error
            assert second.of("tools/call")


async def test_4_a_server_that_forgets_every_session_is_an_error(legacy: Scripted, connect: Connect) -> None:
    async def forgetful(asked: Asked) -> Reply:
        return asked.error(-32001, "Session not found", status=404)

    legacy.on["tools/call"] = forgetful
    async with asyncio.timeout(10):
        found = await connect(legacy).call("echo", b"{}", CONTEXT, LIMITS, idempotent=True)
    assert not isinstance(found, CallResult)
    assert found.code == -32001
    assert len(legacy.of("initialize")) == 2


async def test_6_apify_1233_an_announced_change_that_is_none_can_be_told(server: Scripted, connect: Connect) -> None:
    upstream = connect(server)
    first, second = await listed(upstream), await listed(upstream)
    assert first.digest == second.digest
    server.tools.append(tool("new"))
    assert (await listed(upstream)).digest != first.digest


async def test_7_context_forge_4042_structured_content_is_byte_equal(server: Scripted, connect: Connect) -> None:
    async def structured(asked: Asked) -> Reply:
        body = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"z":1.0,"a":[1e2,"\\u00e9"]}}}'
        return web.Response(body=body % asked.message["id"], content_type="application/json")

    server.on["tools/call"] = structured
    assert (await called(connect(server))).structured == b'{"z":1.0,"a":[1e2,"\\u00e9"]}'


async def test_8_mcp_wordpress_50_a_result_that_misses_its_schema_passes(server: Scripted, connect: Connect) -> None:
    server.tools = [tool("s", outputSchema={"type": "object", "required": ["x"]})]

    async def misses(asked: Asked) -> Reply:
        return asked.result({"content": [], "structuredContent": {"x": None, "y": "not-a-date"}})

    server.on["tools/call"] = misses
    upstream = connect(server)
    assert named(await listed(upstream)) == ["s"]
    found = await called(upstream, "s")
    assert not found.is_error
    assert json.loads(found.structured or b"") == {"x": None, "y": "not-a-date"}


async def test_10_fastmcp_4124_a_modern_server_sees_its_stream_closed_by_a_cancelled_call(
    modern: Scripted, connect: Connect
) -> None:
    seen = asyncio.Event()

    async def waits(asked: Asked) -> Reply:
        try:
            await asyncio.Event().wait()
        finally:
            seen.set()
        return asked.result({})

    modern.on["tools/call"] = waits
    upstream = connect(modern)
    running = asyncio.create_task(called(upstream))
    await modern.until(lambda: bool(modern.of("tools/call")))
    running.cancel()
    async with asyncio.timeout(1):
        await seen.wait()
    assert modern.of("notifications/cancelled") == []


@pytest.mark.parametrize("streaming", [False, True])
async def test_10_xcodemcpkit_210_an_older_server_is_told_the_right_id_while_another_call_runs(
    legacy: Scripted, connect: Connect, streaming: bool
) -> None:
    go = asyncio.Event()

    async def waits(asked: Asked) -> Reply:
        if streaming:
            response = await asked.stream(b": open\n\n")
            await go.wait()
            await asked.send(response, asked.answer(text("done")))
            return response
        await go.wait()
        return asked.result(text("done"))

    legacy.on["tools/call"] = waits
    upstream = connect(legacy)
    other = asyncio.create_task(called(upstream, arguments=b'{"call":"other"}'))
    await legacy.until(lambda: len(legacy.of("tools/call")) == 1)
    running = asyncio.create_task(called(upstream, arguments=b'{"call":"cancelled"}'))
    await legacy.until(lambda: len(legacy.of("tools/call")) == 2)
    running.cancel()
    await legacy.until(lambda: bool(legacy.of("notifications/cancelled")))
    (told,) = legacy.of("notifications/cancelled")
    (meant,) = [each for each in legacy.of("tools/call") if each.params["arguments"] == {"call": "cancelled"}]
    assert told.params["requestId"] == meant.message["id"]
    assert told.headers["mcp-session-id"] == meant.headers["mcp-session-id"]
    go.set()
    assert b"done" in (await other).content


async def test_10_a_call_that_ran_out_of_time_is_cancelled_too(legacy: Scripted, connect: Connect) -> None:
    async def never(asked: Asked) -> Reply:
        await asyncio.Event().wait()
        return asked.result({})

    legacy.on["tools/call"] = never
    upstream = connect(legacy)
    found = await upstream.call("echo", b"{}", CONTEXT, Limits(0.2, 1000), idempotent=True)
    assert isinstance(found, CallResult)
    assert found.failure is not None
    assert (found.failure.code, found.failure.retryable) == (ErrorCode.UPSTREAM_TIMEOUT, True)
    await legacy.until(lambda: bool(legacy.of("notifications/cancelled")))


async def test_11_centian_41_a_dead_server_holds_up_nobody_else(server: Scripted, unused_tcp_port: int) -> None:
    async def hole(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gone.wait()
        writer.close()

    gone = asyncio.Event()
    black = await asyncio.start_server(hole, "127.0.0.1", unused_tcp_port)
    settings = UpstreamsSettings(default=UpstreamSettings(list_timeout=0.5, handshake_timeout=0.4))
    upstreams = Upstreams(settings, clock=lambda: 0.0)
    dead = f"http://127.0.0.1:{unused_tcp_port}/mcp"
    hung = asyncio.create_task(upstreams.list_tools(dead))
    async with asyncio.timeout(5):
        first = await upstreams.list_tools(server.url)
        second = await upstreams.list_tools(f"{server.origin}/other")
        assert not hung.done()
        assert isinstance(first, Listing)
        assert isinstance(second, Listing)
        failure = await hung
    assert isinstance(failure, CallFailure)
    assert failure.code is ErrorCode.UPSTREAM_TIMEOUT
    gone.set()
    await upstreams.close()
    black.close()
    await black.wait_closed()


async def test_12_kuadrant_209_a_server_that_starts_later_is_found(unused_tcp_port: int, connect: Connect) -> None:
    upstream = connect(f"http://127.0.0.1:{unused_tcp_port}/mcp")
    for _ in range(2):  # and again after it went away
        assert isinstance(await upstream.list_tools(), CallFailure)
        async with Scripted("legacy").serving(unused_tcp_port):
            assert len((await listed(upstream)).tools) == 1


async def test_13_mcpjungle_252_no_credential_of_the_client_goes_on(server: Scripted, connect: Connect) -> None:
    meta = {"_meta": b'{"com.example/a":1}'}
    given = context(params=meta, param_headers=(("Authorization", "Bearer canary"), ("Cookie", "canary")))
    await connect(server).call("echo", b"{}", given, LIMITS, idempotent=False)
    for asked in server.asked:
        assert "canary" not in str(asked.headers)
        assert {"authorization", "cookie"}.isdisjoint(asked.headers)


async def test_13_cookies_of_a_server_are_not_kept(server: Scripted, connect: Connect) -> None:
    async def bakes(asked: Asked) -> Reply:
        return asked.result(text("x"), set_cookie="a=b")

    server.on["tools/call"] = bakes
    upstream = connect(server)
    await called(upstream)
    await called(upstream)
    assert "cookie" not in server.of("tools/call")[1].headers


async def test_15_typescript_sdk_2538_comments_keep_a_silent_stream_alive(server: Scripted, connect: Connect) -> None:
    async def silent(asked: Asked) -> Reply:
        response = await asked.stream()
        for _ in range(20):
            await asked.send(response, b": keep-alive\n\n")
        await asked.send(response, asked.answer(text("late")))
        return response

    server.on["tools/call"] = silent
    assert b"late" in (await called(connect(server))).content


async def test_16_agno_7658_meta_and_unknown_keys_of_blocks_are_kept(server: Scripted, connect: Connect) -> None:
    block = {"type": "text", "text": "x", "_meta": {"b": 1}, "com.x": True}

    async def rich(asked: Asked) -> Reply:
        return asked.result({"content": [block, {"type": "new/kind", "v": 1}], "_meta": {"com.x/y": 1}, "zzz": 0})

    server.on["tools/call"] = rich
    found = await called(connect(server))
    assert json.loads(found.content) == [block, {"type": "new/kind", "v": 1}]
    assert json.loads(b"{" + found.meta + b"}") == {"com.x/y": 1}
    assert json.loads(b"{" + found.extra[1:] + b"}") == {"zzz": 0}


async def test_17_python_sdk_3565_calls_do_not_list(server: Scripted, connect: Connect) -> None:
    upstream = connect(server)
    for _ in range(10):
        await called(upstream)
    await called(upstream, "never_listed")
    assert server.of("tools/list") == []


async def test_18_context_forge_5484_all_kinds_of_server_serve_callers_of_both_eras() -> None:
    stateful, stateless, modern = Scripted("legacy"), Scripted("legacy"), Scripted("modern")
    stateless.stateless = True
    upstreams = Upstreams(UpstreamsSettings(), clock=lambda: 0.0)
    async with stateful.serving(), stateless.serving(), modern.serving(), asyncio.timeout(10):
        for given in (context(), context(modern=True)):
            for each in (stateful, stateless, modern):
                backend = McpBackend(each.url, "echo")
                found = await upstreams.call(backend, b'{"a":1}', given, LIMITS, idempotent=False)
                assert isinstance(found, CallResult)
                assert not found.is_error
        assert [each.era for each in upstreams.status()] == ["legacy", "legacy", "modern"]
        await upstreams.close()


async def test_19_mcpsnoop_92_name_and_method_headers_are_the_servers_own(modern: Scripted, connect: Connect) -> None:
    modern.tools = [tool("original")]
    found = await called(connect(modern), "original")
    assert not found.is_error
    sent = modern.of("tools/call")[0].headers
    assert (sent["mcp-name"], sent["mcp-method"]) == ("original", "tools/call")
