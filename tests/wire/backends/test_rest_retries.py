"""What is tried again, how often, where and after how long. Every try is counted at the upstream."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest
from aiohttp import web
from rest_upstreams import Calls, Listen, Serve, read_head

from arion_tds.model.policy import HttpPolicy, RetryPolicy
from arion_tds.model.result import ErrorCode

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def retry(*conditions: str, times: int = 1, timeout: float | None = None, **settings: object) -> HttpPolicy:
    made = RetryPolicy(frozenset(conditions), num_retries=times, **settings)  # type: ignore[arg-type]
    return HttpPolicy(timeout=timeout, retry=made)


class Answers:
    """A handler that gives the statuses in turn, then 200."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)

    async def __call__(self, _request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)


class Lines:
    """A raw server that counts its connections and answers nothing to the first `dead` requests, then `ok`."""

    def __init__(self, dead: int = 10**9, *, abort: bool = False) -> None:
        self.dead = dead
        self.abort = abort
        self.requests = 0
        self.connections = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while True:
            await read_head(reader)
            self.requests += 1
            if self.requests <= self.dead:
                if self.abort:  # linger of zero: the close is a reset
                    sock: socket.socket = writer.get_extra_info("socket")
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            writer.write(OK)


@pytest.mark.parametrize(
    ("condition", "status"), [("5xx", 500), ("gateway-error", 503), ("retriable-4xx", 409), ("5xx", 501)]
)
async def test_a_status_that_the_policy_names_is_tried_again(
    calls: Calls, serve: Serve, condition: str, status: int
) -> None:
    upstream = await serve(Answers(status, status))
    await calls.use(upstream.origin)
    assert (await calls.answered("POST", policy=retry(condition, times=2))).status == 200
    assert len(upstream.seen) == 3
    assert calls.clusters.status()[0].retries == 2


async def test_codes_of_the_policy_are_tried_again(calls: Calls, serve: Serve) -> None:
    upstream = await serve(Answers(404))
    policy = retry("retriable-status-codes", retriable_status_codes=frozenset({404}))
    assert (await (await calls.use(upstream.origin)).answered(policy=policy)).status == 200


@pytest.mark.parametrize(("condition", "status"), [("gateway-error", 500), ("5xx", 404), ("connect-failure", 503)])
async def test_a_status_that_the_policy_does_not_name_is_the_answer(
    calls: Calls, serve: Serve, condition: str, status: int
) -> None:
    upstream = await serve(Answers(status))
    assert (await (await calls.use(upstream.origin)).answered(policy=retry(condition))).status == status
    assert len(upstream.seen) == 1


async def test_the_last_answer_stands_when_the_retries_are_used_up(calls: Calls, serve: Serve) -> None:
    upstream = await serve(Answers(503, 502, 500, 503))
    response = await (await calls.use(upstream.origin)).answered(policy=retry("5xx", times=2))
    assert response.status == 500
    assert len(upstream.seen) == 3


async def test_without_a_policy_a_failing_status_is_asked_for_once(calls: Calls, serve: Serve) -> None:
    upstream = await serve(Answers(503))
    assert (await (await calls.use(upstream.origin)).answered()).status == 503
    assert len(upstream.seen) == 1


async def test_waits_between_tries_grow_and_stay_below_their_maximum(calls: Calls, serve: Serve) -> None:
    upstream = await serve(Answers(*[503] * 9))
    policy = retry("5xx", times=4, base_interval=0.1, max_interval=0.3)
    await (await calls.use(upstream.origin)).answered(policy=policy)
    assert calls.waits == [0.05, 0.1, 0.15, 0.15]


async def test_a_wait_that_would_outlast_the_call_is_not_begun(calls: Calls, serve: Serve) -> None:
    upstream = await serve(Answers(503))
    policy = retry("5xx", timeout=5.0, base_interval=60.0, max_interval=60.0)
    assert (await (await calls.use(upstream.origin)).answered(policy=policy)).status == 503
    assert calls.waits == []


@pytest.mark.parametrize("abort", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_lost_connection_is_an_error_after_one_try(
    calls: Calls, listen: Listen, method: str, abort: bool
) -> None:
    lines = Lines(abort=abort)
    failure = await (await calls.use(await listen(lines))).failed(method)
    assert failure.code is ErrorCode.UPSTREAM_ERROR
    assert failure.message == 'cluster "c": the connection was lost before an answer came'
    assert failure.retryable is (method == "GET")
    assert lines.requests == 1


@pytest.mark.parametrize("abort", [False, True], ids=["closed", "reset"])
async def test_a_lost_connection_is_tried_again_when_the_policy_says_so(
    calls: Calls, listen: Listen, abort: bool
) -> None:
    lines = Lines(2, abort=abort)
    await calls.use(await listen(lines))
    assert (await calls.answered("POST", policy=retry("reset", times=2))).body == b"ok"
    assert lines.requests == 3


async def test_an_answer_that_breaks_off_is_an_error(calls: Calls, listen: Listen) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")

    failure = await (await calls.use(await listen(talk))).failed()
    assert failure.code is ErrorCode.UPSTREAM_ERROR
    assert "broke off" in failure.message


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
    ],
    ids=["another protocol", "bad length", "long header", "two lengths", "bad chunk", "many headers"],
)
async def test_what_is_not_http_is_an_upstream_error(calls: Calls, listen: Listen, answer: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(answer)
        await writer.drain()

    failure = await (await calls.use(await listen(talk))).failed()
    assert failure.code is ErrorCode.UPSTREAM_ERROR
    assert failure.message.startswith('cluster "c": ')


async def stale(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers the first request of a connection and closes it at the second, as idle timeouts do in a race."""
    await read_head(reader)
    writer.write(OK)
    await read_head(reader)


async def test_an_idempotent_request_on_a_connection_that_was_kept_too_long_is_sent_once_more(
    calls: Calls, listen: Listen
) -> None:
    await calls.use(await listen(stale))
    await calls.answered()
    assert (await calls.answered()).body == b"ok"
    assert calls.clusters.status()[0].retries == 0


async def test_another_request_is_not_for_it_may_have_been_executed(calls: Calls, listen: Listen) -> None:
    await calls.use(await listen(stale))
    await calls.answered("POST")
    failure = await calls.failed("POST")
    assert (failure.code, failure.retryable) == (ErrorCode.UPSTREAM_ERROR, False)


async def test_a_request_that_kills_every_connection_is_not_sent_for_ever(calls: Calls, listen: Listen) -> None:
    sent = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while b"/poison" not in await read_head(reader):
            writer.write(OK)
        sent += 1

    await calls.use(await listen(talk))
    await asyncio.gather(*(calls.answered() for _ in range(4)))
    await calls.failed(target="/poison")
    assert sent == 2


async def test_a_try_that_takes_too_long_is_given_up_for_the_next(calls: Calls, serve: Serve) -> None:
    tries = 0

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        nonlocal tries
        tries += 1
        if tries == 1:
            await asyncio.Event().wait()
        return web.Response(text="ok")

    await calls.use((await serve(handler)).origin)
    assert (await calls.answered(policy=retry("5xx", per_try_timeout=0.2))).body == b"ok"
    assert tries == 2


async def test_when_every_try_takes_too_long_the_failure_names_the_setting(calls: Calls, listen: Listen) -> None:
    async def talk(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    await calls.use(await listen(talk))
    failure = await calls.failed(policy=retry("5xx", per_try_timeout=0.03))
    assert failure.code is ErrorCode.UPSTREAM_TIMEOUT
    assert "per_try_timeout" in failure.message


async def test_the_timeout_of_the_call_spans_all_tries(calls: Calls, listen: Listen) -> None:
    lines = 0

    async def talk(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        nonlocal lines
        lines += 1
        await reader.read()

    await calls.use(await listen(talk))
    failure = await calls.failed(policy=retry("5xx", times=99, timeout=0.4, per_try_timeout=0.03))
    assert failure.code is ErrorCode.UPSTREAM_TIMEOUT
    assert 1 < lines < 20


# Endpoints


async def named(name: str, serve: Serve) -> str:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=name)

    return (await serve(handler)).origin


async def test_endpoints_take_turns(calls: Calls, serve: Serve) -> None:
    await calls.use(await named("a", serve), await named("b", serve), await named("c", serve))
    assert [(await calls.answered()).body for _ in range(6)] == [b"a", b"b", b"c"] * 2


async def test_a_refused_connection_goes_to_the_next_endpoint_at_once(
    calls: Calls, serve: Serve, refusing: str
) -> None:
    await calls.use(refusing, await named("b", serve))
    assert (await calls.answered("POST")).body == b"b"
    assert calls.waits == []


async def test_an_endpoint_that_refused_is_passed_over_for_a_while(calls: Calls, serve: Serve, refusing: str) -> None:
    await calls.use(refusing, await named("b", serve))
    for _ in range(4):
        assert (await calls.answered()).body == b"b"
    down, up = calls.clusters.status()[0].endpoints
    assert (down.down, down.last_error) == (True, "no connection: Connection refused")
    assert (up.down, up.last_error) == (False, None)


async def test_an_endpoint_that_goes_and_comes_back_is_logged_once_each(
    calls: Calls, serve: Serve, refusing: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "arion_tds.clusters")
    await calls.use(refusing)
    await calls.failed()
    await calls.failed()
    assert caplog.messages == [f'cluster "c": {refusing}: no connection: Connection refused']
    port = int(refusing.rpartition(":")[2])
    server = await asyncio.start_server(Lines(0), "127.0.0.1", port)
    await calls.answered()
    await calls.answered()
    server.close()
    assert caplog.messages[1:] == [f'cluster "c": {refusing} answers again']


async def test_when_every_endpoint_refuses_the_failure_says_so(calls: Calls, refusing: str) -> None:
    failure = await (await calls.use(refusing, refusing)).failed("POST")
    assert failure.code is ErrorCode.UPSTREAM_ERROR
    assert failure.message == 'cluster "c": no connection: Connection refused'
    assert failure.retryable


async def test_a_refused_connection_is_tried_again_as_the_policy_says(calls: Calls, refusing: str) -> None:
    await (await calls.use(refusing)).failed(policy=retry("connect-failure", times=3))
    assert len(calls.waits) == 3


async def test_a_tried_again_call_goes_to_the_next_endpoint(calls: Calls, serve: Serve) -> None:
    failing = await serve(Answers(*[503] * 5))
    await calls.use(failing.origin, await named("b", serve))
    assert (await calls.answered(policy=retry("5xx"))).body == b"b"


async def test_a_name_that_does_not_resolve_is_told_without_the_name(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_args: object, **_kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    failure = await (await calls.use("http://no-such-host.example")).failed()
    assert failure.code is ErrorCode.UPSTREAM_ERROR
    assert failure.message == 'cluster "c": the endpoint\'s name does not resolve'


async def test_a_connection_that_nobody_accepts_ends_after_connect_timeout(calls: Calls) -> None:
    with socket.socket() as server:  # a full backlog: later connections hang in the handshake
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        host, port = server.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex((host, port))
            failure = await (await calls.use(f"http://{host}:{port}", connect_timeout=0.05)).failed("POST")
        finally:
            for filler in fillers:
                filler.close()
    assert failure.code is ErrorCode.UPSTREAM_TIMEOUT
    assert "connect_timeout" in failure.message
    assert failure.retryable
