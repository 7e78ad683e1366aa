"""How an answer of a server is read, put away and left, whatever state its connection is in."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from mcp_scripted import CONTEXT, LIMITS, Asked, Reply, Scripted
from multidict import CIMultiDict

from arion_tds.backends.mcp.address import DEFAULT_ADDRESSES
from arion_tds.backends.mcp.connection import Upstream
from arion_tds.backends.mcp.http import Channel
from arion_tds.backends.mcp.line import Broken
from arion_tds.backends.mcp.settings import UpstreamSettings
from arion_tds.model.result import CallResult

Connect = Callable[..., Upstream]
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
NONE: CIMultiDict[str] = CIMultiDict()


class Raw:
    """A server that says `said` to each request, and a channel to it."""

    def __init__(self) -> None:
        self.said = b""
        self.connections = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(self.said)
        except asyncio.IncompleteReadError:
            writer.close()


@pytest.fixture
def raw() -> Raw:
    return Raw()


@pytest.fixture
async def channel(raw: Raw) -> AsyncIterator[Channel]:
    async with await asyncio.start_server(raw.talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        made = Channel(f"http://127.0.0.1:{port}/mcp", UpstreamSettings(), DEFAULT_ADDRESSES, None)
        yield made
        await made.close()


async def test_what_is_left_of_an_answer_that_has_come_whole_is_put_away_at_once(raw: Raw, channel: Channel) -> None:
    raw.said = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    async with asyncio.timeout(5):
        for _ in range(3):
            response = await channel.send("GET", NONE)
            while not response._ended:  # noqa: ASYNC110  (the state of a loop: nothing tells of it)
                await asyncio.sleep(0)
            channel.finish(response)
            assert not channel._draining
    assert raw.connections == 1


async def test_what_is_left_of_an_answer_that_broke_off_is_put_away_at_once(raw: Raw, channel: Channel) -> None:
    raw.said = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"
    async with asyncio.timeout(5):
        response = await channel.send("GET", NONE)
        response._connection.abort()
        while response._loss is None:  # noqa: ASYNC110  (the state of a loop: nothing tells of it)
            await asyncio.sleep(0)
        channel.finish(response)
        assert not channel._draining


async def test_a_status_of_nothing_is_no_answer(raw: Raw, channel: Channel) -> None:
    raw.said = b"HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n"
    async with asyncio.timeout(5):
        with pytest.raises(Broken, match="does not speak HTTP"):
            await channel.send("GET", NONE)


async def test_a_closed_channel_opens_nothing_any_more(raw: Raw, channel: Channel) -> None:
    await channel.close()
    async with asyncio.timeout(5):
        with pytest.raises(Broken, match="the gateway is ending its connections to it"):
            await channel.send("GET", NONE)
    assert raw.connections == 0


async def test_a_stream_that_closing_cut_is_not_resumed(legacy: Scripted, connect: Connect) -> None:
    async def begins(asked: Asked) -> Reply:
        response = await asked.stream(b"id: ev-1\nretry: 0\ndata:\n\n")
        await asyncio.Event().wait()
        return response

    legacy.on["tools/call"] = begins
    upstream = connect(legacy)
    calling = asyncio.create_task(upstream.call("echo", b"{}", CONTEXT, LIMITS, idempotent=False))
    await legacy.until(lambda: bool(legacy.of("tools/call")))
    await asyncio.sleep(0)
    await upstream.close()
    async with asyncio.timeout(5):
        result = await calling
    assert isinstance(result, CallResult)
    assert result.is_error
    assert not legacy.of("GET")


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"wiki" * 100_000) + gzip.compress(b"pedia") + b"\0" * 9),
        ("deflate", zlib.compress(b"wiki" * 100_000 + b"pedia")),
        ("identity", b"wiki" * 100_000 + b"pedia"),
    ],
    ids=["gzip", "deflate", "as it is"],
)
async def test_a_compressed_answer_that_nobody_asked_for_is_read_whole(
    raw: Raw, channel: Channel, encoding: str, body: bytes
) -> None:
    raw.said = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (encoding.encode(), len(body))
    raw.said += body
    async with asyncio.timeout(5):
        response = await channel.send("GET", NONE)
        assert await channel.read(response, 1 << 20, "a limit") == b"wiki" * 100_000 + b"pedia"
        assert response.at_eof
