"""What an answer looks like on the wire: one write, framed so that the next one can follow."""

from __future__ import annotations

import asyncio
from unittest import mock

import pytest
from front_house import House, house

from arion_tds.server.reply import Reply

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
NOTE = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def request(line: bytes, body: bytes = b"", *more: bytes) -> bytes:
    lines = [line, b"Host: 127.0.0.1", b"Content-Type: application/json", b"Content-Length: %d" % len(body), *more]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def heard(here: House, *requests: bytes) -> list[bytes]:
    """The heads and bodies that come back to requests in a row, until the gateway closes or has answered the last."""
    reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
    try:
        found = []
        for one in requests:
            writer.write(one)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0)
            bare = one.startswith(b"HEAD")
            found.append(head + (b"" if bare else await reader.readexactly(length)))
        return found
    finally:
        writer.close()


async def closes(here: House, one: bytes) -> bytes:
    """All that comes back until the gateway closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
    try:
        writer.write(one)
        return await reader.read()
    finally:
        writer.close()


async def test_answers_follow_each_other_on_one_connection() -> None:
    async with house() as here:
        post = b"POST /mcp HTTP/1.1"
        answers = await heard(
            here,
            request(post, PING, b"Accept: application/json"),
            request(b"HEAD /mcp HTTP/1.1"),
            request(post, NOTE),
            request(post, PING, b"Accept: text/event-stream"),
        )
    one, head, empty, event = [answer.partition(b"\r\n\r\n") for answer in answers]
    assert one[0].startswith(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nServer: arion-tds\r\nDate: ")
    assert one[2] == b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert head[0].startswith(b"HTTP/1.1 405 ")
    assert b"\r\nAllow: POST, GET, DELETE" in head[0]
    assert int(head[0].rpartition(b"Content-Length: ")[2]) > 0
    assert empty[0].startswith(b"HTTP/1.1 202 Accepted\r\nServer: arion-tds\r\n")
    assert empty[0].endswith(b"\r\nContent-Length: 0")
    assert b"Content-Type: text/event-stream\r\n" in event[0]
    assert b"\r\nCache-Control: no-cache, no-transform\r\n" in event[0]
    assert event[2] == b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'


@pytest.mark.parametrize(
    ("line", "connection", "said"),
    [
        (b"POST /mcp HTTP/1.1", b"close", b"\r\nConnection: close\r\n"),
        (b"POST /mcp HTTP/1.0", b"close", b"\r\nDate: "),
    ],
)
async def test_whoever_wants_the_connection_closed_has_it_closed(line: bytes, connection: bytes, said: bytes) -> None:
    async with house() as here:
        answer = await closes(here, request(line, PING, b"Connection: " + connection))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert said in answer
    assert answer.endswith(b"{}}")


async def test_an_old_client_that_keeps_its_connection_is_told_so() -> None:
    async with house() as here:
        one = request(b"POST /mcp HTTP/1.0", PING, b"Connection: keep-alive")
        answers = await heard(here, one, one)
    assert all(b"\r\nConnection: keep-alive\r\n" in answer for answer in answers)


async def test_what_is_no_http_is_answered_and_the_connection_closed() -> None:
    async with house() as here:
        answer = await closes(here, b"what is this\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\nConnection: close\r\n" in answer


async def test_a_large_answer_is_written_so_that_every_loop_holds_it_back() -> None:
    """The `writelines` of asyncio does not before 3.12.9 and 3.13.2: what nobody takes would have no bound."""
    written: list[bytes] = []

    class Transport(asyncio.Transport):
        def write(self, data: bytes) -> None:  # type: ignore[override]
            written.append(data)

        def is_closing(self) -> bool:
            return False

    request = mock.Mock(transport=Transport(), keep_alive=True, version=(1, 1), method="POST")
    await Reply(200, (b"x" * 65536, b"y")).prepare(request)
    head, _, body = b"".join(written).partition(b"\r\n\r\n")
    assert head.endswith(b"Content-Length: 65537")
    assert body == b"x" * 65536 + b"y"
    assert len(written) > 1


async def test_no_header_holds_another() -> None:
    reply = Reply(200, b"{}")
    reply.add("X", "a\r\nY: b")
    async with house() as here:

        async def bad(_request: object) -> Reply:
            return reply

        here.front.handler = bad  # type: ignore[method-assign, assignment]
        answer = await closes(here, request(b"POST /mcp HTTP/1.1", PING, b"Connection: close"))
    assert b"\r\nY: b" not in answer
