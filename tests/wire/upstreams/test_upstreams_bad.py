"""Every way in which an MCP server can misbehave, through the whole gateway: what its callers and operators see."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from gateway_house import House, listener
from mcp_scripted import Asked, Reply, Scripted, text, tool
from upstream_house import Caller, announced, discovered, failure_of, gateway, server, text_of, until_served

SCRIPT = Path(os.environ.get("ARION_TDS_BAD_UPSTREAM", "/nowhere"))
HASTY = listener(gateway={"upstream_timeout": "0.3s", "max_upstream_response_bytes": 65536})
RICH = {
    "title": "My Title",
    "annotations": {"readOnlyHint": True, "idempotentHint": True},
    "outputSchema": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
    "_meta": {"com.example/k": "v"},
    "icons": [{"src": "data:image/png;base64,AA==", "mimeType": "image/png"}],
}


@pytest.fixture(params=["legacy", "modern"])
def up(request: pytest.FixtureRequest) -> Scripted:
    return Scripted(request.param)


async def call(here: House, name: str = "up.echo", **arguments: object) -> dict[str, object]:
    return await (await Caller.of(here, "modern")).call(name, **arguments)


def on_call(up: Scripted, handler: Callable[[Asked], Awaitable[Reply]]) -> None:
    up.on["tools/call"] = handler


def complete(up: Scripted, result: dict[str, object]) -> dict[str, object]:
    return ({"resultType": "complete"} if up.era == "modern" else {}) | result


async def test_page_all_120_tools_are_served(up: Scripted) -> None:
    async def page(asked: Asked) -> Reply:
        at = int(asked.params.get("cursor") or 0)
        more = {"nextCursor": str(at + 50)} if at + 50 < 120 else {}
        return asked.result(complete(up, {"tools": [tool(f"t{n:03}") for n in range(at, min(at + 50, 120))], **more}))

    up.on["tools/list"] = page
    async with discovered(up) as here:
        assert await here.a.listed() == [f"up.t{n:03}" for n in range(120)]
        assert text_of(await call(here, "up.t119", a=1)) == '{"a": 1}'


async def test_loop_the_walk_ends_with_its_two_tools_and_is_reported(up: Scripted) -> None:
    async def page(asked: Asked) -> Reply:
        return asked.result(complete(up, {"tools": [tool("a"), tool("b")], "nextCursor": "same"}))

    up.on["tools/list"] = page
    async with discovered(up) as here:
        assert await here.a.listed() == ["up.a", "up.b"]
        (problem,) = await here.problems()
        assert problem["state"] == "partly served"
        assert "repeated a cursor" in problem["reason"]


@pytest.mark.parametrize("shape", ["sse_empty", "bare_json"])
async def test_odd_event_streams_are_understood(up: Scripted, shape: str) -> None:
    async def odd(asked: Asked) -> Reply:
        value = {"tools": up.tools} if asked.method == "tools/list" else text("understood")
        body = json.dumps(asked.answer(complete(up, value))).encode()
        if shape == "sse_empty":
            body = b": ping\n\nid: 0_1\ndata:\n\nevent: message\ndata: " + body + b"\n\n"
        return web.Response(body=body, content_type="text/event-stream")

    up.on["tools/list"] = up.on["tools/call"] = odd
    async with discovered(up) as here:
        assert text_of(await call(here)) == "understood"


async def test_expire_a_forgotten_session_is_made_once_more_and_the_call_succeeds() -> None:
    up = Scripted("legacy")
    async with discovered(up) as here:
        up.sessions.clear()
        up.asked.clear()
        assert text_of(await call(here, a=1)) == '{"a": 1}'
        assert up.methods().count("initialize") == 1


async def test_badschema_noschema_and_dup_cost_only_themselves_and_are_reported_one_by_one(up: Scripted) -> None:
    up.tools = [
        tool("good"),
        {"name": "bad", "inputSchema": {"type": "object", "properties": {"n": {"type": "int"}}}},
        {"name": "worse", "inputSchema": {"type": "string"}},
        {"name": "none"},
        tool("good", title="second"),
    ]
    async with discovered(up) as here:
        assert await here.a.listed() == ["up.good"]
        assert "title" not in (await here.a.tools())[0]
        reasons = sorted(problem["reason"] for problem in await here.problems())
        said = (
            "up.bad: inputSchema",
            "up.good: the server lists this name",
            "up.none: it has no",
            "up.worse: its input",
        )
        assert len(reasons) == len(said)
        assert all(map(str.startswith, reasons, said))
        assert text_of(await call(here, "up.good")) == "{}"


async def test_drop_is_an_error_in_bounded_time_and_not_sent_twice(up: Scripted) -> None:
    async def drop(asked: Asked) -> Reply:
        assert asked.http.transport is not None
        asked.http.transport.close()
        return web.Response()

    on_call(up, drop)
    async with discovered(up) as here:
        failure = failure_of(await call(here))
        assert failure["code"] == "upstream_error"
        assert failure["retryable"] is False  # it may have been executed
        assert len(up.of("tools/call")) == 1


async def test_drop_of_an_idempotent_tool_is_sent_once_more_and_retryable(up: Scripted) -> None:
    async def drop(asked: Asked) -> Reply:
        assert asked.http.transport is not None
        asked.http.transport.close()
        return web.Response()

    on_call(up, drop)
    up.tools = [tool("echo", annotations={"readOnlyHint": True})]
    async with discovered(up) as here:
        assert failure_of(await call(here))["retryable"] is True
        assert len(up.of("tools/call")) == 2


async def test_slow_is_a_timeout_that_names_the_setting(up: Scripted) -> None:
    async def never(asked: Asked) -> Reply:
        await asyncio.Event().wait()
        return web.Response()

    on_call(up, never)
    async with discovered(up, HASTY) as here, asyncio.timeout(3):
        failure = failure_of(await call(here))
        assert failure["code"] == "upstream_timeout"
        assert "upstream_timeout" in failure["message"]
        assert len(up.of("tools/call")) == 1


async def test_html500_is_an_error_with_its_status(up: Scripted) -> None:
    async def html(asked: Asked) -> Reply:
        return web.Response(status=500, text="<html><body>Internal error</body></html>", content_type="text/html")

    on_call(up, html)
    async with discovered(up) as here:
        failure = failure_of(await call(here))
        assert (failure["code"], failure["status"], failure["retryable"]) == ("upstream_error", 500, False)
        assert len(up.of("tools/call")) == 1


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_structured_everything_of_tool_and_result_is_kept(up: Scripted, era: str) -> None:
    up.tools = [tool("st", **RICH)]
    result = {"content": [], "structuredContent": {"x": 1}, "_meta": {"com.example/r": "v"}}

    async def structured(asked: Asked) -> Reply:
        return asked.result(complete(up, result))

    on_call(up, structured)
    async with discovered(up) as here:
        caller = await Caller.of(here, era)
        (listed,) = await caller.tools()
        assert {key: listed[key] for key in RICH} == RICH
        got = await caller.call("up.st")
        assert got["structuredContent"] == {"x": 1}
        assert got["_meta"]["com.example/r"] == "v"


async def test_iserr_is_passed_on_as_it_is(up: Scripted) -> None:
    async def boom(asked: Asked) -> Reply:
        return asked.result(complete(up, {**text("boom"), "isError": True}))

    on_call(up, boom)
    async with discovered(up) as here:
        got = await call(here)
        assert (got["content"], got["isError"]) == (text("boom")["content"], True)
        assert "structuredContent" not in got


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_json_rpc_error_keeps_code_message_and_data(up: Scripted, era: str) -> None:
    async def refuse(asked: Asked) -> Reply:
        return asked.error(-32042, "Sign in first", {"url": "https://x.example/"})

    on_call(up, refuse)
    async with discovered(up) as here:
        error = await (await Caller.of(here, era)).call("up.echo")
        assert error == {"code": -32042, "message": "Sign in first", "data": {"url": "https://x.example/"}}


async def test_big_is_stopped_at_the_limit_while_reading(up: Scripted) -> None:
    written = 0

    async def big(asked: Asked) -> Reply:
        nonlocal written
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(asked.http)
        await response.write(b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"')
        for _ in range(2000):
            await response.write(b"x" * 10_000)
            written += 10_000
        return response

    on_call(up, big)
    async with discovered(up, HASTY) as here:
        failure = failure_of(await call(here))
        assert failure["code"] == "response_too_large"
        assert "max_upstream_response_bytes" in failure["message"]
        assert written < 20_000_000


async def test_a_list_that_grows_is_seen_at_the_next_refresh(up: Scripted) -> None:
    async with up.serving(), gateway() as here:
        await here.put("McpDynamicServer", "a/main/up", server("up", up, cache_duration="0.05s"))
        up.tools.append(tool("more"))
        await until_served(here, "up.echo", "up.more")


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_list_that_grows_is_seen_when_it_is_announced(era: str) -> None:
    up = Scripted("modern")
    opened = asyncio.Queue[tuple[Asked, web.StreamResponse]]()

    async def listen(asked: Asked) -> Reply:
        response = await asked.stream(acknowledged(asked))
        opened.put_nowait((asked, response))
        await asyncio.Event().wait()
        return response

    up.on["subscriptions/listen"] = listen
    async with discovered(up) as here, (caller := await Caller.of(here, era)).listening() as said:
        async with asyncio.timeout(5):
            asked, response = await opened.get()
        up.tools.append(tool("more"))
        await asked.send(response, {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        await announced(said)
        assert await caller.listed() == ["up.echo", "up.more"]


def acknowledged(asked: Asked) -> dict[str, object]:
    meta = {"io.modelcontextprotocol/subscriptionId": asked.message["id"]}
    params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    return {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}


async def test_nulls_where_the_schema_allows_absence_are_understood(up: Scripted) -> None:
    nulls = dict.fromkeys(("title", "description", "annotations", "icons", "_meta", "outputSchema"))
    schema = {"type": "object", "properties": None, "required": None}

    async def listing(asked: Asked) -> Reply:
        tools = [{"name": "echo", "inputSchema": schema, **nulls}]
        return asked.result(complete(up, {"tools": tools, "nextCursor": None, "_meta": None}))

    async def answer(asked: Asked) -> Reply:
        return asked.result(complete(up, {**text("fine"), "structuredContent": None, "isError": None, "_meta": None}))

    up.on["tools/list"] = listing
    on_call(up, answer)
    async with discovered(up) as here:
        (listed,) = await here.a.tools()
        assert listed["inputSchema"] == {"type": "object"}
        assert nulls.keys() & listed.keys() <= {"description"}
        got = await call(here)
        assert text_of(got) == "fine"
        assert not got.get("isError")


@pytest.mark.skipif(not SCRIPT.exists(), reason="ARION_TDS_BAD_UPSTREAM names no script")
async def test_every_mode_of_the_misbehaving_upstream_beside_the_project(unused_tcp_port: int) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), str(unused_tcp_port), stdout=asyncio.subprocess.PIPE
    )
    origin = f"http://127.0.0.1:{unused_tcp_port}"
    try:
        assert process.stdout is not None
        async with asyncio.timeout(20):
            await process.stdout.readline()
        async with asyncio.timeout(30), gateway(HASTY) as here:
            for mode in MODES:
                await here.put("McpDynamicServer", f"a/main/{mode}", server(mode, f"{origin}/m/{mode}"))
            listed = await here.a.listed()
            for mode, (tools, _) in MODES.items():
                assert [name for name in listed if name.startswith(f"{mode}.")] == [f"{mode}.{one}" for one in tools]
            async with here.http.post(f"{origin}/_expire") as response:
                assert response.status == 200
            caller = await Caller.of(here, "modern")
            for mode, (tools, outcome) in MODES.items():
                got = await caller.call(f"{mode}.{tools[0]}", message="hi")
                assert outcome in json.dumps(got), (mode, got)
            reported = {one["name"] for one in await here.problems()}
            assert reported == {f"a/main/{mode}" for mode in ("loop", "badschema", "noschema", "dup")}
            async with here.http.get(f"{origin}/_hits") as response:
                hits = await response.json(content_type=None)
            assert {hits[f"{mode} tools/call"] for mode in ("drop", "slow", "html500")} == {1}
    finally:
        process.terminate()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]


MODES: dict[str, tuple[list[str], str]] = {
    "ok": (["echo"], '"hi"'),
    "page": (sorted(f"t{n}" for n in range(120)), '"hi"'),
    "loop": (["a", "b"], '"hi"'),
    "sse_empty": (["echo"], '"hi"'),
    "expire": (["echo"], '"hi"'),
    "badschema": (["good"], '"hi"'),
    "noschema": (["good"], '"hi"'),
    "dup": (["same"], '"hi"'),
    "drop": (["echo"], "upstream_error"),
    "slow": (["echo"], "upstream_timeout"),
    "big": (["echo"], "response_too_large"),
    "structured": (["st"], '"structuredContent": {"x": 1}'),
    "iserr": (["echo"], '"boom"'),
    "html500": (["echo"], '"status": 500'),
}
"""Each mode's tools, and what stands in the result of calling the first."""
