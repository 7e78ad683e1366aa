"""Calls of both eras over real sockets: what is sent, what comes back, what happens while they run."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from mcp_scripted import CONTEXT, LIMITS, Asked, Reply, Scripted, context, reply, text, tool

from arion_tds.backends.mcp.connection import Upstream
from arion_tds.model.context import CallContext, Limits
from arion_tds.model.result import CallResult, ErrorCode, RpcError

Connect = Callable[..., Upstream]
META = "io.modelcontextprotocol/"


async def call(
    upstream: Upstream,
    name: str = "echo",
    arguments: bytes = b"{}",
    given: CallContext = CONTEXT,
    limits: Limits = LIMITS,
    *,
    idempotent: bool = False,
) -> CallResult | RpcError:
    async with asyncio.timeout(10):
        return await upstream.call(name, arguments, given, limits, idempotent=idempotent)


async def answered(*args: Any, **kwargs: Any) -> CallResult:
    outcome = await call(*args, **kwargs)
    assert isinstance(outcome, CallResult), outcome
    assert outcome.failure is None, outcome.failure
    return outcome


async def failed(*args: Any, **kwargs: Any) -> tuple[ErrorCode, str, bool]:
    outcome = await call(*args, **kwargs)
    assert isinstance(outcome, CallResult), outcome
    assert outcome.is_error
    assert outcome.failure is not None
    assert json.loads(outcome.structured or b"")["error"]["code"] == outcome.failure.code
    return outcome.failure.code, outcome.failure.message, outcome.failure.retryable


async def test_a_call_goes_out_and_its_result_comes_back(server: Scripted, connect: Connect) -> None:
    upstream = connect(server)
    assert json.loads((await answered(upstream, arguments=b'{"n":1.0}')).content) == [
        {"type": "text", "text": '{"n": 1.0}'}
    ]
    (sent,) = server.of("tools/call")
    assert sent.params["name"] == "echo"
    assert sent.headers["x-request-id"] == "req-1"
    assert sent.headers["traceparent"] == CONTEXT.traceparent
    assert sent.headers["user-agent"].startswith("arion-tds/")
    assert upstream.status().era == server.era
    assert upstream.status().server == "scripted"


async def test_an_older_server_gets_one_handshake_for_all_calls(legacy: Scripted, connect: Connect) -> None:
    upstream = connect(legacy)
    await asyncio.gather(*(answered(upstream) for _ in range(20)))
    assert legacy.methods()[:3] == ["server/discover", "initialize", "notifications/initialized"]
    assert len(legacy.of("initialize")) == 1
    assert {each.headers["mcp-session-id"] for each in legacy.of("tools/call")} == {"session-1"}
    assert {each.headers["mcp-protocol-version"] for each in legacy.of("tools/call")} == {"2025-11-25"}
    assert len({each.message["id"] for each in legacy.of("tools/call")}) == 20
    assert legacy.of("initialize")[0].params["capabilities"] == {}


async def test_a_modern_server_is_asked_without_a_handshake_and_with_mirrored_headers(
    modern: Scripted, connect: Connect
) -> None:
    modern.tools = [tool("größe")]
    modern.on["tools/call"] = lambda asked: answer(asked, text(asked.headers["mcp-name"]))
    upstream = connect(modern)
    found = await answered(upstream, "größe")
    assert "=?base64?" in found.content.decode()
    assert modern.methods() == ["server/discover", "tools/call"]
    meta = modern.of("tools/call")[0].params["_meta"]
    assert meta[META + "protocolVersion"] == "2026-07-28"
    assert meta[META + "clientCapabilities"] == {}


async def answer(asked: Asked, value: object) -> Reply:
    return asked.result(value)


async def test_closing_ends_the_session_of_an_older_server(legacy: Scripted, connect: Connect) -> None:
    upstream = connect(legacy)
    await answered(upstream)
    await upstream.close()
    assert legacy.of("DELETE")[0].headers["mcp-session-id"] == "session-1"
    assert legacy.sessions == set()
    code, why, _ = await failed(upstream)
    assert (code, "closed" in why) == (ErrorCode.UPSTREAM_ERROR, True)


async def test_a_server_that_never_answers_the_probe_is_initialized(legacy: Scripted, connect: Connect) -> None:
    async def never(asked: Asked) -> Reply:
        await asyncio.Event().wait()
        return asked.result({})

    legacy.on["server/discover"] = never
    await answered(connect(legacy, handshake_timeout=0.4))


async def test_a_modern_server_that_names_its_version_is_not_taken_for_an_old_one(
    modern: Scripted, connect: Connect
) -> None:
    async def other(asked: Asked) -> Reply:
        return asked.error(-32022, "Unsupported", {"supported": ["2031-01-01"], "requested": "2026-07-28"}, status=400)

    modern.on["server/discover"] = other
    code, why, retryable = await failed(connect(modern))
    assert code is ErrorCode.UPSTREAM_ERROR
    assert "2031-01-01" in why
    assert not retryable
    assert modern.methods() == ["server/discover"]


@pytest.mark.parametrize("refusals", [1, 2])
async def test_a_server_that_refuses_the_version_that_it_speaks_is_asked_once_more(
    modern: Scripted, connect: Connect, refusals: int
) -> None:
    async def refuse(asked: Asked) -> Reply:
        if len(modern.asked) >= refusals:
            del modern.on["server/discover"]
        version = asked.headers["mcp-protocol-version"]
        return asked.error(-32022, "Unsupported", {"supported": [version], "requested": version}, status=400)

    modern.on["server/discover"] = refuse
    result = await connect(modern).call("echo", b"{}", CONTEXT, LIMITS, idempotent=False)
    assert isinstance(result, CallResult)
    assert result.is_error is (refusals == 2)
    if result.is_error:
        assert b"which it says that it speaks" in result.content


async def test_a_modern_server_without_discover_is_still_modern(modern: Scripted, connect: Connect) -> None:
    async def unknown(asked: Asked) -> Reply:
        return asked.error(-32601, "Method not found", status=404)

    modern.on["server/discover"] = unknown
    upstream = connect(modern)
    await answered(upstream)
    assert upstream.status().era == "modern"


async def test_a_server_that_only_looked_modern_is_initialized_after_all(legacy: Scripted, connect: Connect) -> None:
    async def unknown(asked: Asked) -> Reply:
        return asked.error(-32601, "Method not found", status=404)

    legacy.on["server/discover"] = unknown
    upstream = connect(legacy)
    await answered(upstream)
    assert upstream.status().era == "legacy"
    assert len(legacy.of("server/discover")) == 1


async def test_a_server_that_changes_its_era_is_followed_in_both_directions(legacy: Scripted, connect: Connect) -> None:
    upstream = connect(legacy)
    await answered(upstream)
    legacy.era = "modern"
    await answered(upstream)
    assert upstream.status().era == "modern"
    legacy.era = "legacy"
    await answered(upstream)
    assert upstream.status().era == "legacy"
    assert upstream.status().handshakes == 3


async def test_a_stateless_older_server_works_without_a_session(legacy: Scripted, connect: Connect) -> None:
    legacy.stateless = True
    upstream = connect(legacy)
    await answered(upstream)
    await upstream.close()
    assert "mcp-session-id" not in legacy.of("tools/call")[0].headers
    assert legacy.of("DELETE") == []


async def test_a_json_rpc_error_keeps_code_message_and_data(server: Scripted, connect: Connect) -> None:
    async def refuse(asked: Asked) -> Reply:
        return asked.error(-32042, "go there", {"url": "https://x", "n": 1.0})

    server.on["tools/call"] = refuse
    assert await call(connect(server)) == RpcError(-32042, "go there", b'{"url": "https://x", "n": 1.0}')


async def test_invalid_params_with_http_400_are_the_servers_word_not_a_lost_session(
    server: Scripted, connect: Connect
) -> None:
    async def refuse(asked: Asked) -> Reply:
        return asked.error(-32602, "Unknown tool", status=400)

    server.on["tools/call"] = refuse
    assert await call(connect(server)) == RpcError(-32602, "Unknown tool")
    assert len(server.of("tools/call")) == 1


@pytest.mark.parametrize(
    "body",
    [
        b": ping\n\nid: 0_1\ndata:\n\nevent: message\ndata: %b\n\n",
        b"data: %b",
        b"\xef\xbb\xbfdata: %b\r\n\r\n",
        b"%b",
        b"\n %b",
        b"[%b]",
    ],
)
async def test_an_answer_is_understood_in_every_shape(server: Scripted, connect: Connect, body: bytes) -> None:
    async def shaped(asked: Asked) -> Reply:
        data = body.replace(b"%b", json.dumps(asked.answer(text("hi"))).encode())
        return web.Response(body=data, content_type="text/event-stream")

    server.on["tools/call"] = shaped
    assert b"hi" in (await answered(connect(server))).content


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "application/octet-stream"])
async def test_a_wrong_content_type_does_not_hide_the_answer(server: Scripted, connect: Connect, kind: str) -> None:
    async def shaped(asked: Asked) -> Reply:
        return web.Response(body=b"data: " + json.dumps(asked.answer(text("hi"))).encode() + b"\n\n", content_type=kind)

    server.on["tools/call"] = shaped
    assert b"hi" in (await answered(connect(server))).content


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (lambda asked: web.Response(body=b"<html>", content_type="text/html"), "text/html"),
        (lambda asked: web.Response(body=b"{", content_type="application/json"), "not JSON"),
        (lambda asked: web.Response(body=b"", content_type="application/json"), "not the JSON-RPC answer"),
        (lambda asked: web.Response(status=202), "202"),
        (lambda asked: reply({"jsonrpc": "2.0", "id": asked.message["id"]}), "neither result nor error"),
        (lambda asked: web.Response(body=b": bye\n\n", content_type="text/event-stream"), "ended without"),
        (lambda asked: reply({"jsonrpc": "2.0", "id": 999999, "result": {}}), "another request"),
        (lambda asked: asked.result([]), "not a tool result"),
        (lambda asked: web.Response(status=302, headers={"location": "http://169.254.169.254/"}), "redirect"),
        (lambda asked: web.Response(status=401), "401"),
        (lambda asked: web.Response(status=500, body=b"<html>", content_type="text/html"), "500"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_that_says_so(
    server: Scripted, connect: Connect, made: Callable[[Asked], Reply], word: str
) -> None:
    async def bad(asked: Asked) -> Reply:
        return made(asked)

    server.on["tools/call"] = bad
    code, why, _ = await failed(connect(server))
    assert code is ErrorCode.UPSTREAM_ERROR
    assert word in why
    assert len(server.of("tools/call")) == 1


@pytest.mark.parametrize(
    ("status", "idempotent", "retryable", "sent"),
    [
        (503, False, True, 1),
        (502, False, False, 1),
        (429, False, True, 1),
        (502, True, True, 2),
        (500, True, True, 2),
        (404, True, False, 2),  # refused, not executed: sent again once the era was asked for anew
    ],
)
async def test_a_status_is_retryable_only_where_a_second_call_does_no_harm(
    modern: Scripted, connect: Connect, status: int, idempotent: bool, retryable: bool, sent: int
) -> None:
    async def busy(_: Asked) -> Reply:
        return web.Response(status=status)

    modern.on["tools/call"] = busy
    modern.on["initialize"] = busy
    _, _, found = await failed(connect(modern), idempotent=idempotent)
    assert found is retryable
    assert len(modern.of("tools/call")) == sent


async def test_a_response_that_is_too_large_is_stopped_while_reading(server: Scripted, connect: Connect) -> None:
    stopped = asyncio.Event()

    async def endless(asked: Asked) -> Reply:
        kind = asked.headers["x-kind"]
        response = web.StreamResponse(headers={"content-type": kind})
        await response.prepare(asked.http)
        try:
            await response.write(b'{"jsonrpc":"2.0","result":{"content":"')
            while True:
                await response.write(b"x" * 65536)
        except (ConnectionError, asyncio.CancelledError):
            stopped.set()
            raise
        return response

    server.on["tools/call"] = endless
    for kind in ("application/json", "text/event-stream"):
        upstream = connect(server, headers=(("x-kind", kind),))
        code, why, retryable = await failed(upstream, limits=Limits(5.0, 200_000))
        assert code is ErrorCode.RESPONSE_TOO_LARGE
        assert "200000" in why
        assert "max_upstream_response_bytes" in why
        assert not retryable
        async with asyncio.timeout(5):
            await stopped.wait()
        stopped.clear()


async def test_an_event_that_is_too_large_is_stopped_too(server: Scripted, connect: Connect) -> None:
    async def long(asked: Asked) -> Reply:
        return web.Response(body=b"data: " + b"x" * 3000, content_type="text/event-stream")

    server.on["tools/call"] = long
    code, why, _ = await failed(connect(server, max_response_bytes=1000))
    assert code is ErrorCode.RESPONSE_TOO_LARGE
    assert "max_response_bytes" in why


async def test_a_compressed_bomb_counts_as_what_it_unpacks_to(server: Scripted, connect: Connect) -> None:
    async def bomb(asked: Asked) -> Reply:
        packed = gzip.compress(json.dumps(asked.answer(text("x" * 5_000_000))).encode())
        return web.Response(body=packed, content_type="application/json", headers={"content-encoding": "gzip"})

    server.on["tools/call"] = bomb
    code, _, _ = await failed(connect(server))
    assert code is ErrorCode.RESPONSE_TOO_LARGE


async def test_a_bare_body_in_pieces_below_the_limit_passes(server: Scripted, connect: Connect) -> None:
    async def pieces(asked: Asked) -> Reply:
        data = json.dumps(asked.answer(text("x" * 150_000))).encode()
        response = web.StreamResponse(headers={"content-type": "text/event-stream", "content-length": str(len(data))})
        await response.prepare(asked.http)
        await response.write(data[:100_000])
        await response.write(data[100_000:])
        return response

    server.on["tools/call"] = pieces
    assert len((await answered(connect(server), limits=Limits(5.0, 200_000))).content) > 150_000


async def test_progress_reaches_the_caller_with_its_own_token_and_extends_the_time(
    server: Scripted, connect: Connect
) -> None:
    heard: list[dict[str, Any]] = []

    async def slowly(asked: Asked) -> Reply:
        token = asked.params["_meta"]["progressToken"]
        assert token != "mine"
        response = await asked.stream()
        for step in range(6):
            await asyncio.sleep(0.1)  # time is what this is about
            await asked.send(
                response, {"method": "notifications/progress", "params": {"progressToken": token, "progress": step}}
            )
        await asked.send(
            response, {"method": "notifications/progress", "params": {"progressToken": 12345, "progress": 9}}
        )
        await asked.send(response, asked.answer(text("done")))
        return response

    server.on["tools/call"] = slowly
    given = context(notify=lambda frame: heard.append(json.loads(frame)), progress_token=b'"mine"')
    found = await answered(connect(server), given=given, limits=Limits(0.35, 1 << 20))
    assert b"done" in found.content
    assert [each["params"] for each in heard] == [{"progressToken": "mine", "progress": step} for step in range(6)]


async def test_progress_extends_the_time_only_up_to_a_hard_end(server: Scripted, connect: Connect) -> None:
    async def forever(asked: Asked) -> Reply:
        token = asked.params["_meta"]["progressToken"]
        response = await asked.stream()
        while True:
            await asyncio.sleep(0.03)
            await asked.send(
                response, {"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}
            )

    server.on["tools/call"] = forever
    given = context(progress_token=b"1")
    code, _, _ = await failed(connect(server, max_call_time=0.4), given=given, limits=Limits(0.2, 1 << 20))
    assert code is ErrorCode.UPSTREAM_TIMEOUT


@pytest.mark.parametrize(
    ("modern_caller", "meta", "relayed"),
    [(False, b"{}", True), (True, b"{}", False), (True, b'{"io.modelcontextprotocol/logLevel":"info"}', True)],
)
async def test_logs_reach_callers_that_may_hear_them(
    server: Scripted, connect: Connect, modern_caller: bool, meta: bytes, relayed: bool
) -> None:
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": {"n": 1}}}
    heard: list[dict[str, Any]] = []

    async def chatty(asked: Asked) -> Reply:
        return await asked.stream(log, {"method": "notifications/other"}, asked.answer(text("done")))

    server.on["tools/call"] = chatty
    given = context(modern=modern_caller, params={"_meta": meta}, notify=lambda frame: heard.append(json.loads(frame)))
    await answered(connect(server), given=given)
    assert heard == ([log] if relayed else [])


async def test_a_ping_is_answered_and_other_requests_are_refused_in_words(legacy: Scripted, connect: Connect) -> None:
    async def asks(asked: Asked) -> Reply:
        response = await asked.stream({"jsonrpc": "2.0", "id": "p", "method": "ping"})
        await legacy.until(lambda: any(each.message.get("id") == "p" for each in legacy.asked))
        await asked.send(
            response, {"jsonrpc": "2.0", "id": 77, "method": "elicitation/create", "params": {"message": "?"}}
        )
        await legacy.until(lambda: any(each.message.get("id") == 77 for each in legacy.asked))
        await asked.send(response, asked.answer(text("no answer from the user") | {"isError": True}))
        return response

    legacy.on["tools/call"] = asks
    found = await answered(connect(legacy))
    sent = {
        str(each.message["id"]): each.message for each in legacy.asked if "method" not in each.message and each.message
    }
    assert sent["p"]["result"] == {}
    assert sent["77"]["error"]["code"] == -32601
    assert found.is_error
    said = json.loads(found.content)
    assert said[0]["text"] == "no answer from the user"
    assert "elicitation/create" in said[1]["text"]


async def test_a_result_without_error_is_untouched_although_something_was_refused(
    legacy: Scripted, connect: Connect
) -> None:
    async def asks(asked: Asked) -> Reply:
        return await asked.stream({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}, asked.answer(text("fine")))

    legacy.on["tools/call"] = asks
    assert (await answered(connect(legacy))).content == b'[{"type": "text", "text": "fine"}]'


async def test_an_error_after_a_refused_request_says_both(legacy: Scripted, connect: Connect) -> None:
    async def asks(asked: Asked) -> Reply:
        error = {"jsonrpc": "2.0", "id": asked.message["id"], "error": {"code": -32601, "message": "no sampling"}}
        return await asked.stream({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage"}, error)

    legacy.on["tools/call"] = asks
    _, why, _ = await failed(connect(legacy))
    assert "sampling/createMessage" in why
    assert "no sampling" in why


async def test_a_server_that_asks_without_end_is_left(legacy: Scripted, connect: Connect) -> None:
    async def asks(asked: Asked) -> Reply:
        response = await asked.stream()
        for number in range(1000):
            await asked.send(response, {"jsonrpc": "2.0", "id": number, "method": "roots/list"})
        return response

    legacy.on["tools/call"] = asks
    _, why, _ = await failed(connect(legacy))
    assert "requests of its own" in why


async def test_an_interrupted_stream_is_resumed_where_it_stopped(legacy: Scripted, connect: Connect) -> None:
    waiting: dict[str, Any] = {}

    async def begins(asked: Asked) -> Reply:
        waiting.update(asked.answer(text("later")))
        return await asked.stream(b"id: ev-1\nretry: 10\ndata:\n\n")

    async def resumes(asked: Asked) -> Reply:
        if asked.headers.get("last-event-id") == "ev-1":
            return await asked.stream(b"id: ev-2\ndata:\n\n")
        assert asked.headers["last-event-id"] == "ev-2"
        return await asked.stream(waiting)

    legacy.on["tools/call"] = begins
    legacy.on["GET"] = resumes
    assert b"later" in (await answered(connect(legacy))).content
    assert len(legacy.of("tools/call")) == 1


async def test_too_many_calls_at_once_are_refused_and_do_not_reach_the_server(
    server: Scripted, connect: Connect
) -> None:
    go = asyncio.Event()

    async def waits(asked: Asked) -> Reply:
        await go.wait()
        return asked.result(text("x"))

    server.on["tools/call"] = waits
    upstream = connect(server, max_concurrent_calls=2)
    first = [asyncio.create_task(call(upstream)) for _ in range(2)]
    await server.until(lambda: len(server.of("tools/call")) == 2)
    code, why, retryable = await failed(upstream)
    assert code is ErrorCode.OVERFLOW
    assert retryable
    assert "max_concurrent_calls" in why
    assert upstream.status().calls_in_flight == 2
    go.set()
    await asyncio.gather(*first)
    await answered(upstream)


async def test_a_call_that_dies_takes_no_other_with_it(server: Scripted, connect: Connect) -> None:
    go = asyncio.Event()

    async def some_die(asked: Asked) -> Reply:
        if asked.params["arguments"].get("die"):
            transport = asked.http.transport
            assert transport is not None
            transport.abort()
            await asyncio.sleep(0)
            return web.Response()
        await go.wait()
        return asked.result(text("alive"))

    server.on["tools/call"] = some_die
    upstream = connect(server)
    living = [asyncio.create_task(answered(upstream)) for _ in range(3)]
    await server.until(lambda: len(server.of("tools/call")) == 3)
    code, why, retryable = await failed(upstream, arguments=b'{"die":1}')
    assert (code, retryable) == (ErrorCode.UPSTREAM_ERROR, False)
    assert "closed the connection" in why
    go.set()
    assert all(b"alive" in each.content for each in await asyncio.gather(*living))


async def test_a_broken_call_is_sent_again_only_if_it_is_idempotent(server: Scripted, connect: Connect) -> None:
    async def first_dies(asked: Asked) -> Reply:
        if len(server.of("tools/call")) == 1:
            assert asked.http.transport is not None
            asked.http.transport.abort()
            return web.Response()
        return asked.result(text("second"))

    server.on["tools/call"] = first_dies
    assert b"second" in (await answered(connect(server), idempotent=True)).content
    assert len(server.of("tools/call")) == 2


async def test_a_server_that_is_not_there_is_a_retryable_error(unused_tcp_port: int, connect: Connect) -> None:
    upstream = connect(f"http://127.0.0.1:{unused_tcp_port}/mcp")
    code, why, retryable = await failed(upstream)
    assert (code, retryable) == (ErrorCode.UPSTREAM_ERROR, True)
    assert f"127.0.0.1:{unused_tcp_port}" in why
    assert upstream.status().last_error == why
    assert upstream.status().last_error_at == 100.0


async def test_a_cancelled_caller_does_not_end_the_handshake_of_others(legacy: Scripted, connect: Connect) -> None:
    go = asyncio.Event()

    async def slow(asked: Asked) -> Reply:
        await go.wait()
        return asked.error(-32601, "no")

    legacy.on["server/discover"] = slow
    upstream = connect(legacy)
    first, second = (asyncio.create_task(call(upstream)) for _ in range(2))
    await legacy.until(lambda: bool(legacy.asked))
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    go.set()
    assert isinstance(await second, CallResult)
    assert len(legacy.of("initialize")) == 1


async def test_closing_during_a_handshake_ends_the_calls_that_wait_for_it(legacy: Scripted, connect: Connect) -> None:
    async def never(asked: Asked) -> Reply:
        await asyncio.Event().wait()
        return asked.result({})

    legacy.on["server/discover"] = never
    upstream = connect(legacy)
    waiting = asyncio.create_task(failed(upstream))
    await legacy.until(lambda: bool(legacy.asked))
    await upstream.close()
    _, why, _ = await waiting
    assert "closed" in why


async def test_annotated_arguments_are_mirrored_and_unknown_parameter_headers_go_on(
    modern: Scripted, connect: Connect
) -> None:
    modern.tools = [
        tool(
            "r", inputSchema={"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
        )
    ]
    upstream = connect(modern)
    await upstream.list_tools()
    given = context(
        modern=True, param_headers=(("Mcp-Param-Region", "forged"), ("Mcp-Param-Other", "o"), ("Cookie", "c"))
    )
    await answered(upstream, "r", b'{"region":"eu"}', given)
    sent = modern.of("tools/call")[0].headers
    assert sent["mcp-param-region"] == "eu"
    assert sent["mcp-param-other"] == "o"
    assert "cookie" not in sent


async def test_a_tool_that_was_never_listed_learns_its_headers_from_the_refusal(
    modern: Scripted, connect: Connect
) -> None:
    modern.tools = [
        tool(
            "r", inputSchema={"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
        )
    ]

    async def checks(asked: Asked) -> Reply:
        if asked.headers.get("mcp-param-region") != asked.params["arguments"]["region"]:
            return asked.error(-32020, "Mcp-Param-Region is missing", status=400)
        return asked.result(text("ok"))

    modern.on["tools/call"] = checks
    upstream = connect(modern)
    await answered(upstream, "r", b'{"region":"eu"}')
    await answered(upstream, "r", b'{"region":"us"}')
    assert modern.methods() == ["server/discover", "tools/call", "tools/list", "tools/call", "tools/call"]


async def test_a_server_that_always_misses_a_header_is_not_listed_for_every_call(
    modern: Scripted, connect: Connect
) -> None:
    async def refuses(asked: Asked) -> Reply:
        return asked.error(-32020, "no", status=400)

    modern.on["tools/call"] = refuses
    upstream = connect(modern)
    for _ in range(5):
        assert await call(upstream) == RpcError(-32020, "no")
    assert len(modern.of("tools/list")) == 1


async def test_input_required_and_its_answer_pass_between_modern_ends(modern: Scripted, connect: Connect) -> None:
    async def asks(asked: Asked) -> Reply:
        if "inputResponses" in asked.params:
            return asked.result({"resultType": "complete", **text(asked.params["requestState"])})
        wanted = {"a": {"method": "elicitation/create"}}
        return asked.result({"resultType": "input_required", "inputRequests": wanted, "requestState": "state"})

    modern.on["tools/call"] = asks
    upstream = connect(modern)
    capable = b'{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}'
    first = await answered(upstream, given=context(modern=True, params={"_meta": capable}))
    assert first.result_type == "input_required"
    assert json.loads(b"{" + first.extra[1:] + b"}")["requestState"] == "state"
    params = {"_meta": capable, "inputResponses": b'{"a":{}}', "requestState": b'"state"'}
    second = await answered(upstream, given=context(modern=True, params=params))
    assert b"state" in second.content
    assert modern.of("tools/call")[0].params["_meta"][META + "clientCapabilities"] == {"elicitation": {}}
    _, why, _ = await failed(upstream)
    assert "input" in why
    assert modern.of("tools/call")[-1].params["_meta"][META + "clientCapabilities"] == {}


async def test_a_capability_that_an_older_client_cannot_have_is_named_in_a_result(
    modern: Scripted, connect: Connect
) -> None:
    async def needs(asked: Asked) -> Reply:
        return asked.error(-32021, "Missing", {"requiredCapabilities": {"sampling": {}}}, status=400)

    modern.on["tools/call"] = needs
    upstream = connect(modern)
    _, why, _ = await failed(upstream)
    assert "sampling" in why
    given = context(modern=True)
    assert await call(upstream, given=given) == RpcError(
        -32021, "Missing", b'{"requiredCapabilities": {"sampling": {}}}'
    )


async def test_connections_are_reused_after_json_and_after_streams(server: Scripted, connect: Connect) -> None:
    ports: set[object] = set()

    async def seen(asked: Asked) -> Reply:
        assert asked.http.transport is not None
        ports.add(asked.http.transport.get_extra_info("peername"))
        if asked.params["arguments"].get("sse"):
            return await asked.stream(asked.answer(text("x")))
        return asked.result(text("x"))

    server.on["tools/call"] = seen
    upstream = connect(server)
    for _ in range(3):
        await answered(upstream)
        await answered(upstream, arguments=b'{"sse":1}')
        await asyncio.gather(*upstream.line.channel._draining)  # the end of a stream arrives on its own
    assert len(ports) == 1


async def test_configured_headers_are_sent_and_never_shown(server: Scripted, connect: Connect) -> None:
    upstream = connect(server, headers=(("authorization", "Bearer s3cret"),))
    await answered(upstream)
    assert {each.headers.get("authorization") for each in server.asked} == {"Bearer s3cret"}
    assert "s3cret" not in repr(upstream.settings)
    assert "s3cret" not in repr(upstream.status())
