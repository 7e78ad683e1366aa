"""Connections are kept, handed on, closed and counted as their users would wish."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web
from rest_upstreams import Calls, Listen, Serve, read_head

from arion_tds.backends.connections import Closed, Connections
from arion_tds.backends.dialing import Dialer
from arion_tds.backends.h1 import Connection
from arion_tds.backends.reading import Headers, Loss

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class Ended:
    """A receiver that says when its answer is over."""

    def __init__(self) -> None:
        self.over: asyncio.Future[Loss | None] = asyncio.get_running_loop().create_future()

    def head(self, status: int, headers: Headers, *, bodiless: bool) -> None: ...

    def body(self, data: bytes) -> None: ...

    def end(self) -> None:
        self.over.set_result(None)

    def lost(self, loss: Loss, *, stale: bool) -> None:
        self.over.set_result(loss)


class House:
    """A pool, and servers whose connections are counted and can be seen to end."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = asyncio.Condition()
        self.ends = 0
        self.pool = Connections(self._dialer, most=2, idle_timeout=60.0)

    def with_pool(self, *, most: int | None, idle_timeout: float = 60.0) -> House:
        self.pool = Connections(self._dialer, most=most, idle_timeout=idle_timeout)
        return self

    @staticmethod
    def _dialer(origin: str) -> Dialer:
        return Dialer(origin, tls=None, timeout=5.0)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers every request until the other side goes."""
        self.opened += 1
        try:
            while True:
                await read_head(reader)
                writer.write(OK)
        finally:
            async with self.closed:
                self.ends += 1
                self.closed.notify_all()

    async def until_ended(self, count: int) -> None:
        async with asyncio.timeout(10), self.closed:
            await self.closed.wait_for(lambda: self.ends >= count)

    async def get(self, origin: str) -> Connection:
        async with asyncio.timeout(10):
            return self.pool.take(origin) or await self.pool.open(origin)

    @staticmethod
    async def use(connection: Connection) -> Loss | None:
        """One request and its answer, after which the pool has it back."""
        receiver = Ended()
        connection.send(REQUEST, None, receiver, bare=False)
        async with asyncio.timeout(10):
            return await receiver.over


async def until(done: Callable[[], bool]) -> None:
    """Let the loop turn until it is so."""
    async with asyncio.timeout(10):
        while not done():  # noqa: ASYNC110  (the state of a loop: nothing tells of it)
            await asyncio.sleep(0)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    made = House()
    yield made
    await made.pool.close()


async def test_the_one_used_last_is_used_next(house: House, listen: Listen) -> None:
    origin = await listen(house.talk)
    one, other = await house.get(origin), await house.get(origin)
    await house.use(one)
    await house.use(other)
    assert await house.get(origin) is other
    assert await house.get(origin) is one
    assert (one.reused, other.reused, house.opened) == (True, True, 2)


async def test_whoever_waits_is_served_in_turn(house: House, listen: Listen) -> None:
    origin = await listen(house.with_pool(most=1).talk)
    only = await house.get(origin)
    order: list[int] = []

    async def waiting(number: int) -> None:
        connection = await house.get(origin)
        order.append(number)
        await house.use(connection)

    tasks = [asyncio.create_task(waiting(number)) for number in range(4)]
    await asyncio.sleep(0)
    await house.use(only)
    await asyncio.gather(*tasks)
    assert (order, house.opened) == ([0, 1, 2, 3], 1)


async def test_a_connection_that_came_for_somebody_who_left_goes_to_the_next(house: House, listen: Listen) -> None:
    origin = await listen(house.with_pool(most=1).talk)
    only = await house.get(origin)
    first, second = (asyncio.create_task(house.get(origin)) for _ in range(2))
    await asyncio.sleep(0)

    class Leaving(Ended):
        def end(self) -> None:
            first.cancel()  # the connection is its own already, but it has not run yet
            super().end()

    only.send(REQUEST, None, Leaving(), bare=False)
    assert await second is only


async def test_whoever_left_the_line_is_passed_over(house: House, listen: Listen) -> None:
    origin = await listen(house.with_pool(most=1).talk)
    only = await house.get(origin)
    first, second = (asyncio.create_task(house.get(origin)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    await house.use(only)
    assert await second is only


async def test_a_lost_connection_makes_room_for_a_new_one(house: House, listen: Listen) -> None:
    origin = await listen(house.with_pool(most=1).talk)
    only = await house.get(origin)
    waiting = asyncio.create_task(house.get(origin))
    await asyncio.sleep(0)
    only.abort()
    assert await house.use(await waiting) is None
    assert house.opened == 2


async def test_a_dial_that_fails_makes_room(house: House, listen: Listen, refusing: str) -> None:
    house.with_pool(most=1)
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            await house.get(refusing)
    origin = await listen(house.talk)
    assert await house.use(await house.get(origin)) is None


async def test_an_idle_connection_to_elsewhere_gives_way(house: House, listen: Listen) -> None:
    here, there = await listen(house.with_pool(most=1).talk), await listen(house.talk)
    await house.use(await house.get(here))
    await house.use(await house.get(there))
    await house.until_ended(1)
    assert house.opened == 2


async def test_whoever_waits_for_another_origin_gets_the_room_of_what_comes_back(house: House, listen: Listen) -> None:
    here, there = await listen(house.with_pool(most=1).talk), await listen(house.talk)
    connection = await house.get(here)
    waiting = asyncio.create_task(house.get(there))
    await asyncio.sleep(0)
    await house.use(connection)
    assert await house.use(await waiting) is None
    await house.until_ended(1)


async def test_what_is_not_used_is_closed_and_forgotten(house: House, listen: Listen) -> None:
    origin = await listen(house.with_pool(most=4, idle_timeout=0.05).talk)
    one, other = await house.get(origin), await house.get(origin)
    await house.use(one)
    await house.use(other)
    await house.until_ended(2)
    assert house.pool.take(origin) is None
    await until(lambda: not house.pool._places)


async def test_the_end_of_a_kept_connection_is_seen_at_once(house: House, listen: Listen) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(OK)

    origin = await listen(once)
    connection = await house.get(origin)
    await house.use(connection)
    await until(lambda: not connection.place.idle)
    assert house.pool.take(origin) is None


async def test_bytes_that_nobody_asked_for_end_a_connection(house: House, listen: Listen) -> None:
    chatty = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(OK)
        await chatty.wait()
        writer.write(OK)
        await reader.read()

    origin = await listen(talk)
    connection = await house.get(origin)
    await house.use(connection)
    chatty.set()
    await until(lambda: not connection.usable)
    assert house.pool.take(origin) is None


async def test_an_answer_before_the_request_was_read_is_heard_and_the_connection_not_used_again(
    calls: Calls, listen: Listen
) -> None:
    count = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        await read_head(reader)
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await reader.read()

    await calls.use(await listen(talk))
    response = await calls.answered("POST", body=b"x" * (8 << 20))
    assert (response.status, response.body) == (413, b"no")
    await calls.answered("POST", body=b"x" * (8 << 20))
    assert count == 2


async def test_closing_ends_those_in_use_and_whoever_waits(house: House, listen: Listen) -> None:
    origin = await listen(house.with_pool(most=1).talk)
    receiver = Ended()
    (await house.get(origin)).send(b"GET / HTTP/1.1\r\n", None, receiver, bare=False)
    waiting = asyncio.create_task(house.get(origin))
    await asyncio.sleep(0)
    await house.pool.close()
    assert await receiver.over is Loss.UNANSWERED
    with pytest.raises(Closed):
        await waiting
    with pytest.raises(Closed):
        await house.get(origin)


@pytest.mark.parametrize("bad", ["/a b", "/a\r\nx: y", "/\x00", "/é", ""])
async def test_a_target_that_would_be_more_than_one_is_not_sent(calls: Calls, serve: Serve, bad: str) -> None:
    async def never(_request: object) -> object:
        raise AssertionError

    upstream = await serve(never)
    await calls.use(upstream.origin)
    failure = await calls.failed("GET", bad)
    assert "cannot be written as HTTP/1.1" in failure.message
    assert not upstream.seen


async def test_addresses_of_a_name_take_turns(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    port = int((await listen(talk)).rpartition(":")[2])
    loop = asyncio.get_running_loop()
    resolve, asked = loop.getaddrinfo, 0

    async def two(host: str, *args: object, **more: object) -> object:
        nonlocal asked
        if host != "twins.example":
            return await resolve(host, *args, **more)  # type: ignore[arg-type]
        asked += 1
        return [(2, 1, 6, "", ("127.0.0.1", port)), (2, 1, 6, "", ("127.0.0.2", port))]

    monkeypatch.setattr(loop, "getaddrinfo", two)
    tried: list[str] = []
    dialer = Dialer(
        f"http://twins.example:{port}",
        tls=None,
        timeout=5.0,
        problem=lambda one: tried.append(one) or None,  # type: ignore[func-returns-value]
    )
    for _ in range(2):
        transport_of: list[asyncio.BaseTransport] = []

        class Keep(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                transport_of.append(transport)  # noqa: B023

        await dialer.dial(Keep)
        transport_of[0].close()
    assert tried == ["127.0.0.1", "127.0.0.2", "127.0.0.2", "127.0.0.1"]
    assert asked == 1


async def test_how_large_headers_may_be_is_a_setting_that_the_failure_names(calls: Calls, listen: Listen) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2000 + b"\r\nContent-Length: 2\r\n\r\nok")
        await reader.read()

    origin = await listen(talk)
    await calls.use(origin, max_response_header_bytes=1024)
    failure = await calls.failed()
    assert failure.message == 'cluster "c": the answer\'s headers are larger than allowed (max_response_header_bytes)'
    await calls.use(origin)
    assert (await calls.answered()).body == b"ok"


@pytest.mark.parametrize("size", [0, 1, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, (64 << 10) + 2, 1 << 20])
async def test_a_body_of_any_size_arrives_as_it_is(calls: Calls, serve: Serve, size: int) -> None:
    async def thanks(_request: object) -> web.Response:
        return web.Response(status=204)

    upstream = await serve(thanks)
    await calls.use(upstream.origin)
    body = bytes(number % 251 for number in range(size))
    assert (await calls.answered("POST", body=body)).status == 204
    assert upstream.bodies == [body]


async def test_a_server_that_answers_early_and_reads_no_more_holds_no_connection(calls: Calls, listen: Listen) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await asyncio.Event().wait()

    await calls.use(await listen(talk), max_connections=1)
    for _ in range(2):
        assert (await calls.answered("POST", body=b"x" * (8 << 20))).status == 413


async def test_who_needs_the_addresses_of_a_name_meanwhile_hears_the_same_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, asked, answer = asyncio.get_running_loop(), 0, asyncio.Event()

    async def fails(*_args: object, **_more: object) -> object:
        nonlocal asked
        asked += 1
        await answer.wait()
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(loop, "getaddrinfo", fails)
    dialer = Dialer("http://nowhere.example:1", tls=None, timeout=5.0)
    dials = [asyncio.create_task(dialer.dial(asyncio.Protocol)) for _ in range(5)]
    await until(lambda: asked > 0)
    dials[0].cancel()  # the others still hear
    await asyncio.sleep(0)
    answer.set()
    heard = await asyncio.gather(*dials, return_exceptions=True)
    assert [type(one) for one in heard] == [asyncio.CancelledError, *[socket.gaierror] * 4]
    assert asked == 1
    with pytest.raises(socket.gaierror):
        await dialer.dial(asyncio.Protocol)
    assert asked == 2
