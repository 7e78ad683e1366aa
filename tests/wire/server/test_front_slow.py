"""Clients that are slow, many or greedy, on real sockets: they are told so or cut off, and others are served."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from front_house import BOTH, House, house, tool

from arion_tds.server.http import ConnectionSettings, HttpListener
from arion_tds.server.limits import LimitSettings

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(PING) + PING


@contextlib.asynccontextmanager
async def listening(here: House, **limits: Any) -> AsyncIterator[HttpListener]:
    """A second listener of the house's front with these connection limits; the house's url is its."""
    listener = HttpListener(here.front, "127.0.0.1", 0, limits=ConnectionSettings(**limits))
    host, here.port = await listener.start()
    here.url = f"http://{host}:{here.port}/mcp"
    try:
        yield listener
    finally:
        await listener.stop(0.2)


class Raw:
    """One connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, here: House) -> Raw:
        return cls(*await asyncio.open_connection("127.0.0.1", here.port))

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> bytes:
        """Status line of the next answer; the rest of it is read away."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                await self.reader.readexactly(int(line.split(b":")[1]))
        return head.split(b"\r\n")[0]

    async def over(self) -> bytes:
        """Whatever comes until the other side has closed."""
        try:
            return await self.reader.read(-1)
        except ConnectionError:
            return b""

    def close(self) -> None:
        self.writer.close()


async def test_headers_that_do_not_end_are_waited_for_only_so_long() -> None:
    async with house() as here, listening(here, header_timeout=0.1):
        silent, dripping = await Raw.open(here), await Raw.open(here)
        dripping.send(HEAD)

        async def drip() -> None:
            with contextlib.suppress(ConnectionError):
                for number in range(1000):
                    dripping.send(b"X-%d: y\r\n" % number)
                    await asyncio.sleep(0.01)

        async with asyncio.TaskGroup() as group:
            task = group.create_task(drip())
            assert await dripping.over() == b""
            task.cancel()
        assert await silent.over() == b""
        assert here.doorkeeper.turned_away == ["slow headers", "slow headers"]
        silent.close()
        dripping.close()


async def test_a_kept_connection_may_be_idle_but_not_dawdle_over_its_next_request() -> None:
    async with house() as here, listening(here, header_timeout=0.05, idle_timeout=5.0):
        client = await Raw.open(here)
        for _ in range(2):
            client.send(WHOLE)
            assert await client.answer() == b"HTTP/1.1 200 OK"
        client.send(b"POST /mcp HT")
        assert await client.over() == b""
        assert here.doorkeeper.turned_away == ["slow headers"]
        client.close()


async def test_a_call_may_take_longer_than_headers_may() -> None:
    async with house(tool("slow")) as here, listening(here, header_timeout=0.05):

        async def slow(_arguments: Any, _context: Any) -> Any:
            await asyncio.sleep(0.2)
            return await here.backend.call(here.published.view, here.published.view.tools["shop.x"], {}, _context)

        here.put(tool("x"))
        here.backend.does["slow"] = slow
        status, body = await here.ask("tools/call", {"name": "shop.slow"})
        assert status == 200
        assert not body["result"].get("isError")
        assert here.doorkeeper.turned_away == []


async def test_an_idle_connection_is_closed() -> None:
    async with house() as here, listening(here, idle_timeout=0.05):
        client = await Raw.open(here)
        client.send(WHOLE)
        assert (await client.over()).startswith(b"HTTP/1.1 200 OK")
        client.close()


async def test_a_body_that_does_not_come_is_answered_408() -> None:
    async with house(body_timeout=0.1) as here:
        client = await Raw.open(here)
        client.send(HEAD + b"Content-Length: 1000\r\n\r\n{")
        assert await client.answer() == b"HTTP/1.1 408 Request Timeout"
        client.close()


async def test_a_client_that_takes_nothing_is_cut_off() -> None:
    big = tool("big", description="x" * 1_000_000)
    async with house(big) as here, listening(here, write_timeout=0.2) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port, limit=1024)
        asking = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
        request = HEAD + b"Content-Length: %d\r\n\r\n" % len(asking) + asking
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(request * 30)
        await here.doorkeeper.until_refused("slow reader")
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert len(await Raw(reader, writer).over()) < 30_000_000, "it was cut off"
        assert listener.connections == 0
        writer.close()


async def test_beyond_max_unsent_bytes_the_client_that_took_nothing_for_longest_is_cut_off() -> None:
    big = tool("big", description="x" * 20_000_000)
    list_all = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    asked = HEAD + b"Content-Length: %d\r\n\r\n" % len(list_all) + list_all
    async with house(big) as here, listening(here, max_unsent_bytes=25_000_000):
        first, second = await Raw.open(here), await Raw.open(here)
        for one in (first, second):
            one.writer.transport.pause_reading()
        first.send(asked)
        second.send(asked)
        await here.doorkeeper.until_refused("unsent")
        first.writer.transport.resume_reading()
        assert len(await first.over()) < 20_000_000
        async with here.http.post(here.url, data=PING, headers={"Content-Type": "application/json", **BOTH}) as good:
            assert good.status == 200
        first.close()
        second.writer.transport.abort()


async def test_when_all_connections_are_taken_the_longest_idle_one_makes_room() -> None:
    async with house() as here, listening(here, max_connections=3) as listener:
        first, second, third = [await Raw.open(here) for _ in range(3)]
        for client in (second, first, third):
            client.send(WHOLE)
            assert await client.answer() == b"HTTP/1.1 200 OK"
        fourth = await Raw.open(here)
        fourth.send(WHOLE)
        assert await fourth.answer() == b"HTTP/1.1 200 OK"
        assert await second.over() == b""
        first.send(WHOLE)
        assert await first.answer() == b"HTTP/1.1 200 OK"
        assert listener.connections == 3
        assert here.doorkeeper.turned_away == ["evicted"]
        for client in (first, second, third, fourth):
            client.close()


async def test_when_all_connections_are_busy_a_new_one_is_told_to_come_back() -> None:
    async with house(tool("slow")) as here, listening(here, max_connections=2):
        gate, running = asyncio.Event(), asyncio.Event()

        async def slow(_arguments: Any, _context: Any) -> Any:
            if len(here.backend.contexts) == 2:
                running.set()
            await gate.wait()
            raise RuntimeError

        here.backend.does["slow"] = slow
        async with asyncio.TaskGroup() as group, aiohttp.ClientSession() as other:
            tasks = [
                group.create_task(other.post(here.url, **here.modern("tools/call", {"name": "shop.slow"})))
                for _ in range(2)
            ]
            await running.wait()
            client = await Raw.open(here)
            answer = await client.over()
            assert answer.startswith(b"HTTP/1.1 503")
            assert b"Retry-After: 1" in answer
            client.close()
            gate.set()
            for task in tasks:
                (await task).close()
        assert here.doorkeeper.turned_away == ["full"]


async def test_requests_beyond_the_listener_s_share_are_503() -> None:
    async with house(tool("slow"), limits=LimitSettings(max_concurrent=1)) as here:
        gate, running = asyncio.Event(), asyncio.Event()

        async def slow(_arguments: Any, _context: Any) -> Any:
            if len(here.backend.contexts) == 1:
                running.set()
            await gate.wait()
            raise RuntimeError

        here.backend.does["slow"] = slow
        async with asyncio.TaskGroup() as group:
            task = group.create_task(here.ask("tools/call", {"name": "shop.slow"}))
            await running.wait()
            async with here.http.post(here.url, json={}, headers=BOTH) as response:
                assert response.status == 503
                assert response.headers["Retry-After"] == "1"
            gate.set()
            assert (await task)[0] == 200
        assert here.doorkeeper.turned_away == ["overload"]


async def test_streams_do_not_count_as_requests_under_way() -> None:
    async with house(limits=LimitSettings(max_concurrent=1, max_streams_per_caller=2)) as here:
        sessions = [await here.open() for _ in range(3)]
        async with contextlib.AsyncExitStack() as stack:
            for headers in sessions[:2]:
                found = await stack.enter_async_context(here.http.get(here.url, headers=headers))
                assert found.status == 200
            async with here.http.get(here.url, headers=sessions[2]) as found:
                assert found.status == 503
                assert "max_streams_per_caller" in await found.text()
                assert found.headers["Retry-After"]
            assert (await here.legacy("ping"))[0] == 200


async def test_one_caller_s_requests_beyond_its_rate_are_429() -> None:
    async with house(limits=LimitSettings(rate=0.01, burst=2)) as here:
        assert [(await here.legacy("ping"))[0] for _ in range(3)] == [200, 200, 429]
        async with here.http.post(here.url, data=PING, headers={"Content-Type": "application/json"}) as response:
            assert response.status == 429
            assert 1 <= int(response.headers["Retry-After"]) <= 100
        assert here.doorkeeper.turned_away == ["rate", "rate"]


@pytest.mark.parametrize("size", [0, 400_000], ids=["small", "large"])
@pytest.mark.parametrize("depth", [127, 129])
async def test_a_body_nested_too_deep_is_400(depth: int, size: int) -> None:
    async with house(tool("a")) as here:
        inner = depth - 3  # the message, its params, its arguments
        body = (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shop.a","arguments":{"x":'
            + b"[" * inner + b"]" * inner + b',"y":"' + b"y" * size + b'"}}}'
        )  # fmt: skip
        status, answer = await here.post(body)
        assert status == (200 if depth <= 128 else 400)
        assert ("max_json_depth" in str(answer)) == (depth > 128)


async def test_two_host_headers_are_400() -> None:
    async with house() as here:
        client = await Raw.open(here)
        client.send(HEAD + b"Host: evil.example\r\nContent-Length: 2\r\n\r\n{}")
        assert (await client.answer()).endswith(b" 400 Bad Request")
        client.close()
