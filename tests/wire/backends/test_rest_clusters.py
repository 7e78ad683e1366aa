"""Requests over real connections: what goes on the wire, what comes back, and every limit on the way."""

from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest
from aiohttp import web
from rest_upstreams import CONTEXT, LIMITS, Calls, Listen, Serve, read_head

from arion_tds.backends.clusters import Clusters
from arion_tds.model.cluster import Cluster
from arion_tds.model.context import CallContext, Limits
from arion_tds.model.http import HttpRequest, HttpResponse
from arion_tds.model.policy import DEFAULT_POLICY, HttpPolicy, RetryPolicy
from arion_tds.model.result import CallFailure, ErrorCode


async def hello(_request: web.BaseRequest) -> web.StreamResponse:
    return web.json_response({"hello": "world"}, headers={"X-Kind": "Greeting"})


async def test_an_answer_comes_back_whole_with_lower_case_header_names(calls: Calls, serve: Serve) -> None:
    upstream = await serve(hello)
    response = await (await calls.use(upstream.origin)).answered()
    assert response.status == 200
    assert response.body == b'{"hello": "world"}'
    assert response.header("x-kind") == "Greeting"


@pytest.mark.parametrize("status", [301, 404, 503])
async def test_any_status_is_an_answer(calls: Calls, serve: Serve, status: int) -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    upstream = await serve(handler)
    assert (await (await calls.use(upstream.origin)).answered()).status == status
    assert len(upstream.seen) == 1


async def test_the_target_is_sent_byte_for_byte(calls: Calls, serve: Serve) -> None:
    upstream = await serve(hello)
    target = "/a/..%2Fb/%2e%2e/c%3Bd//%C3%A9?x=%20+%3D&y=[1]&&z"
    await (await calls.use(upstream.origin)).answered(target=target)
    assert upstream.seen[0].raw_path == target


async def test_the_head_holds_our_headers_and_nothing_of_the_caller(calls: Calls, listen: Listen) -> None:
    heads: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await read_head(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    origin = await listen(talk)
    await calls.use(origin)
    context = CallContext(
        request_id="req-1",
        traceparent=CONTEXT.traceparent,
        params={"_meta": b'{"token":"secret"}'},
        param_headers=(("Mcp-Param-Key", "secret"),),
    )
    await calls.clusters.send("c", HttpRequest("GET", "/x"), DEFAULT_POLICY, LIMITS, context)
    request_line, *lines = heads[0].decode().rstrip().split("\r\n")
    assert request_line == "GET /x HTTP/1.1"
    headers = dict(line.lower().split(": ", 1) for line in lines)
    assert headers == {
        "host": origin.removeprefix("http://"),
        "accept": "application/json, */*;q=0.8",
        "accept-encoding": "gzip, deflate",
        "user-agent": "arion-tds",
        "x-request-id": "req-1",
        "traceparent": CONTEXT.traceparent,
    }


async def test_a_tools_own_accept_and_user_agent_replace_ours(calls: Calls, serve: Serve) -> None:
    upstream = await serve(hello)
    headers = (("Accept", "text/csv"), ("User-Agent", "theirs"), ("X-Api-Version", "2"))
    await (await calls.use(upstream.origin)).answered(headers=headers)
    seen = upstream.seen[0].headers
    assert (seen.getall("Accept"), seen.getall("User-Agent")) == (["text/csv"], ["theirs"])
    assert seen["X-Api-Version"] == "2"


async def test_the_authority_is_the_host_header(calls: Calls, serve: Serve) -> None:
    upstream = await serve(hello)
    await (await calls.use(upstream.origin)).answered(policy=HttpPolicy(authority="api.example"))
    assert upstream.seen[0].headers.getall("Host") == ["api.example"]


async def test_a_body_is_sent_with_its_length_and_type(calls: Calls, serve: Serve) -> None:
    upstream = await serve(hello)
    headers = (("content-type", "application/json"),)
    await (await calls.use(upstream.origin)).answered("POST", headers=headers, body=b'{"a":1}')
    assert upstream.bodies == [b'{"a":1}']
    seen = upstream.seen[0].headers
    assert (seen["Content-Type"], seen["Content-Length"]) == ("application/json", "7")


async def test_a_post_without_body_says_that_it_has_none(calls: Calls, serve: Serve) -> None:
    upstream = await serve(hello)
    await (await calls.use(upstream.origin)).answered("POST")
    assert upstream.seen[0].headers["Content-Length"] == "0"
    assert "Content-Type" not in upstream.seen[0].headers


async def test_a_body_of_megabytes_arrives_and_may_be_sent_twice(calls: Calls, listen: Listen) -> None:
    bodies: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await read_head(reader)
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        bodies.append(await reader.readexactly(length))
        status = b"503 Busy" if len(bodies) == 1 else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    await calls.use(await listen(talk))
    body = b"x" * (3 << 20)
    policy = HttpPolicy(retry=RetryPolicy(frozenset({"5xx"})))
    assert (await calls.answered("POST", body=body, policy=policy)).status == 200
    assert bodies == [body, body]


async def test_calls_in_a_row_share_one_connection(calls: Calls, serve: Serve) -> None:
    upstream = await serve(hello)
    await calls.use(upstream.origin)
    for _ in range(5):
        await calls.answered()
    assert len(upstream.connections) == 1


async def test_cookies_are_never_stored(calls: Calls, serve: Serve) -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        response = web.Response(text="ok")
        response.set_cookie("session", "of-another-caller")
        return response

    upstream = await serve(handler)
    await calls.use(upstream.origin)
    await calls.answered()
    await calls.answered()
    assert "Cookie" not in upstream.seen[1].headers


async def test_a_redirect_is_not_followed(calls: Calls, serve: Serve) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": f"http://{request.host}/secret"})

    upstream = await serve(handler)
    assert (await (await calls.use(upstream.origin)).answered()).status == 302
    assert len(upstream.seen) == 1


async def test_proxies_of_the_environment_are_not_asked(
    calls: Calls, serve: Serve, refusing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", refusing)
    monkeypatch.setenv("HTTP_PROXY", refusing)
    upstream = await serve(hello)
    assert (await (await calls.use(upstream.origin)).answered()).status == 200


async def test_a_head_answer_has_no_body_whatever_its_length_says(calls: Calls, listen: Listen) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\nContent-Encoding: br\r\n\r\n")

    response = await (await calls.use(await listen(talk))).answered("HEAD")
    assert (response.status, response.body) == (200, b"")


async def test_an_answer_without_body(calls: Calls, serve: Serve) -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=204)

    response = await (await calls.use((await serve(handler)).origin)).answered()
    assert (response.status, response.body) == (204, b"")


# Time


async def silent(_request: web.BaseRequest) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    ("policy", "cluster", "gateway"),
    [
        (HttpPolicy(timeout=0.05), 60.0, 60.0),
        (DEFAULT_POLICY, 0.05, 60.0),
        (DEFAULT_POLICY, None, 0.05),
    ],
    ids=["the policy's", "the cluster's", "the gateway's"],
)
async def test_the_nearest_timeout_ends_a_call_that_nobody_answers(
    calls: Calls, serve: Serve, policy: HttpPolicy, cluster: float | None, gateway: float
) -> None:
    upstream = await serve(silent)
    await calls.use(upstream.origin, timeout=cluster)
    failure = await calls.failed(policy=policy, limits=Limits(gateway, 1 << 20))
    assert failure.code is ErrorCode.UPSTREAM_TIMEOUT
    assert failure.message == 'cluster "c": no whole answer within 0.05 s'
    assert failure.retryable


async def test_a_timed_out_call_that_may_have_been_executed_is_not_retryable(calls: Calls, serve: Serve) -> None:
    upstream = await serve(silent)
    await calls.use(upstream.origin)
    failure = await calls.failed("POST", policy=HttpPolicy(timeout=0.05))
    assert (failure.code, failure.retryable) == (ErrorCode.UPSTREAM_TIMEOUT, False)


async def test_an_answer_that_drips_also_ends_in_time(calls: Calls, listen: Listen) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx")
        await reader.read()

    await calls.use(await listen(talk))
    failure = await calls.failed(policy=HttpPolicy(timeout=0.05))
    assert failure.code is ErrorCode.UPSTREAM_TIMEOUT


async def test_waiting_for_a_free_connection_counts_as_waiting(calls: Calls, serve: Serve) -> None:
    upstream = await serve(silent)
    await calls.use(upstream.origin, max_connections=1)
    first, second = await asyncio.gather(
        calls.failed(policy=HttpPolicy(timeout=0.1)), calls.failed(policy=HttpPolicy(timeout=0.05))
    )
    assert {first.code, second.code} == {ErrorCode.UPSTREAM_TIMEOUT}
    assert len(upstream.seen) == 1


async def test_a_timed_out_call_leaves_its_connection_to_nobody(calls: Calls, listen: Listen) -> None:
    count = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        await read_head(reader)
        if count == 1:
            await reader.read()
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await reader.read()

    await calls.use(await listen(talk))
    await calls.failed(policy=HttpPolicy(timeout=0.05))
    assert (await calls.answered()).body == b"ok"
    assert count == 2


async def test_a_cancelled_call_gives_its_place_back(calls: Calls, serve: Serve) -> None:
    arrived = asyncio.Event()

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError

    upstream = await serve(handler)
    await calls.use(upstream.origin)
    task = asyncio.create_task(calls.send())
    async with asyncio.timeout(5):
        await arrived.wait()
    assert calls.clusters.status()[0].active == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert calls.clusters.status()[0].active == 0


# Size


def in_chunks(pieces: int, size: int) -> object:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(pieces):
            await response.write(b"x" * size)
        return response

    return handler


async def test_an_answer_of_exactly_the_limit_is_whole(calls: Calls, serve: Serve) -> None:
    upstream = await serve(in_chunks(4, 256 << 10))
    assert len((await (await calls.use(upstream.origin)).answered()).body) == 1 << 20


async def test_twenty_megabytes_are_dropped_at_the_limit(calls: Calls, serve: Serve) -> None:
    upstream = await serve(in_chunks(20, 1 << 20))
    failure = await (await calls.use(upstream.origin)).failed()
    assert failure.code is ErrorCode.RESPONSE_TOO_LARGE
    assert failure.message == 'cluster "c": the answer is larger than 1048576 bytes (max_upstream_response_bytes)'
    assert not failure.retryable


async def test_a_length_beyond_the_limit_is_refused_before_reading(calls: Calls, listen: Listen) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n")
        assert await reader.read() == b""  # the client hangs up without waiting for the body

    failure = await (await calls.use(await listen(talk))).failed()
    assert failure.code is ErrorCode.RESPONSE_TOO_LARGE


async def test_the_connection_of_a_too_large_answer_is_not_used_again(calls: Calls, serve: Serve) -> None:
    upstream = await serve(in_chunks(3, 1 << 20))
    await calls.use(upstream.origin)
    await calls.failed()
    await calls.failed()
    assert len(upstream.connections) == 2


def packed(body: bytes, encoding: str) -> object:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body, headers={"Content-Encoding": encoding})

    return handler


@pytest.mark.parametrize(
    ("encoding", "body"), [("gzip", gzip.compress(b"hello", mtime=0)), ("deflate", zlib.compress(b"hello"))]
)
async def test_a_compressed_answer_is_unpacked(calls: Calls, serve: Serve, encoding: str, body: bytes) -> None:
    upstream = await serve(packed(body, encoding))
    assert (await (await calls.use(upstream.origin)).answered()).body == b"hello"


async def test_a_compressed_bomb_is_stopped_at_the_limit(calls: Calls, serve: Serve) -> None:
    upstream = await serve(packed(gzip.compress(bytes(100 << 20), 9), "gzip"))
    failure = await (await calls.use(upstream.origin)).failed()
    assert failure.code is ErrorCode.RESPONSE_TOO_LARGE


@pytest.mark.parametrize(
    ("encoding", "body"), [("gzip", b"not gzip"), ("gzip", gzip.compress(b"x" * 99, mtime=0)[:-3]), ("br", b"x")]
)
async def test_what_cannot_be_unpacked_is_an_upstream_error(
    calls: Calls, serve: Serve, encoding: str, body: bytes
) -> None:
    upstream = await serve(packed(body, encoding))
    failure = await (await calls.use(upstream.origin)).failed()
    assert failure.code is ErrorCode.UPSTREAM_ERROR
    assert encoding in failure.message


# Number


async def test_a_call_beyond_max_requests_is_an_overflow_at_once(calls: Calls, serve: Serve) -> None:
    arrived, go = asyncio.Event(), asyncio.Event()

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        arrived.set()
        await go.wait()
        return web.Response(text="ok")

    upstream = await serve(handler)
    await calls.use(upstream.origin, max_requests=1)
    first = asyncio.create_task(calls.send())
    async with asyncio.timeout(5):
        await arrived.wait()
    failure = await calls.failed()
    assert (failure.code, failure.retryable) == (ErrorCode.OVERFLOW, True)
    assert "max_requests" in failure.message
    go.set()
    assert isinstance(await first, HttpResponse)
    assert (await calls.answered()).status == 200
    assert calls.clusters.status()[0].overflows == 1


async def test_no_more_connections_than_allowed_are_opened(calls: Calls, serve: Serve) -> None:
    upstream = await serve(hello)
    await calls.use(upstream.origin, max_connections=2)
    await asyncio.gather(*(calls.answered() for _ in range(20)))
    assert len(upstream.connections) <= 2


# Settings


async def test_an_unknown_cluster_is_named_and_says_where_it_belongs() -> None:
    clusters = Clusters({})
    failure = await clusters.send("weather", HttpRequest("GET", "/"), DEFAULT_POLICY, LIMITS, CONTEXT)
    assert isinstance(failure, CallFailure)
    assert failure.code is ErrorCode.UPSTREAM_ERROR
    assert '"weather"' in failure.message
    assert "`clusters`" in failure.message


@pytest.mark.parametrize("endpoint", ["http://user:secret@h", "http://h/base", "ftp://h", "h:80", "http://"])
def test_an_endpoint_that_is_no_origin_stops_the_start(endpoint: str) -> None:
    with pytest.raises(ValueError, match=r'cluster "c": endpoints\[0\] is not an origin') as caught:
        Clusters({"c": Cluster(name="c", endpoints=(endpoint,))})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("endpoint", ["http://h", "http://h:80", "http://h:8080/", "https://[::1]:443", "http://H.x"])
def test_an_origin_is_accepted(endpoint: str) -> None:
    Clusters({"c": Cluster(name="c", endpoints=(endpoint,))})


async def test_a_cluster_without_endpoints_stops_the_start() -> None:
    with pytest.raises(ValueError, match="has no endpoints"):
        Clusters({"c": Cluster(name="c", endpoints=())})


async def test_new_settings_leave_the_connections_of_an_unchanged_cluster(calls: Calls, serve: Serve) -> None:
    upstream = await serve(hello)
    await calls.use(upstream.origin)
    await calls.answered()
    same = Cluster(name="c", endpoints=(upstream.origin,))
    await calls.clusters.replace({"c": same, "d": Cluster(name="d", endpoints=(upstream.origin,))})
    await calls.answered()
    assert len(upstream.connections) == 1
    assert [status.name for status in calls.clusters.status()] == ["c", "d"]


async def test_a_call_under_way_ends_on_the_settings_it_started_with(calls: Calls, serve: Serve) -> None:
    arrived, go = asyncio.Event(), asyncio.Event()

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        arrived.set()
        await go.wait()
        return web.Response(text="old")

    old, new = await serve(handler), await serve(hello)
    await calls.use(old.origin)
    under_way = asyncio.create_task(calls.answered())
    async with asyncio.timeout(5):
        await arrived.wait()
    await calls.clusters.replace({"c": Cluster(name="c", endpoints=(new.origin,))})
    assert (await calls.answered()).body == b'{"hello": "world"}'
    go.set()
    assert (await under_way).body == b"old"


async def test_bad_new_settings_change_nothing(calls: Calls, serve: Serve) -> None:
    upstream = await serve(hello)
    await calls.use(upstream.origin)
    with pytest.raises(ValueError, match="not an origin"):
        await calls.clusters.replace({"c": Cluster(name="c", endpoints=("nonsense",))})
    assert (await calls.answered()).status == 200


async def test_after_close_no_cluster_is_left(calls: Calls, serve: Serve) -> None:
    await calls.use((await serve(hello)).origin)
    await calls.answered()
    await calls.clusters.close()
    assert (await calls.failed()).code is ErrorCode.UPSTREAM_ERROR


async def test_closing_ends_calls_under_way_and_what_they_would_try_again(calls: Calls, serve: Serve) -> None:
    arrived = asyncio.Event()

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError

    upstream = await serve(handler)
    await calls.use(upstream.origin)
    policy = HttpPolicy(retry=RetryPolicy(frozenset({"reset"}), num_retries=3))
    under_way = asyncio.create_task(calls.failed(policy=policy))
    async with asyncio.timeout(5):
        await arrived.wait()
    await calls.clusters.close()
    failure = await under_way
    assert failure.code is ErrorCode.UPSTREAM_ERROR
    assert len(upstream.seen) == 1
