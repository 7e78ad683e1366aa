"""Malformed HTTP: nothing is smuggled, nothing hangs, and the next client is served."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from hostile_wire import Target, call, request, target

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Target]:
    async with target() as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def here(shared: Target) -> AsyncIterator[Target]:
    shared.asked.clear()
    yield shared
    await shared.works()


INNER = request(call())
CHUNKED = b"Transfer-Encoding: chunked"

SMUGGLED: dict[str, bytes] = {
    "length-and-chunked": request(b"0\r\n\r\n" + INNER, CHUNKED, b"Content-Length: 5", length=False),
    "chunked-and-length": request(b"0\r\n\r\n" + INNER, b"Content-Length: 5", CHUNKED, length=False),
    "two-lengths": request(INNER, b"Content-Length: 0"),
    "two-equal-lengths": request(INNER, b"Content-Length: %d" % len(INNER)),
    "list-of-lengths": request(INNER, b"Content-Length: 0, %d" % len(INNER), length=False),
    "length-plus": request(INNER, b"Content-Length: +0", length=False),
    "length-minus": request(INNER, b"Content-Length: -1", length=False),
    "length-hex": request(INNER, b"Content-Length: 0x0", length=False),
    "length-underscore": request(INNER, b"Content-Length: 0_0", length=False),
    "length-words": request(INNER, b"Content-Length: 0 0", length=False),
    "length-empty": request(INNER, b"Content-Length: ", length=False),
    "length-huge": request(INNER, b"Content-Length: 999999999999999999999999999999", length=False),
    "length-unicode": request(INNER, "Content-Length: ０".encode(), length=False),
    "chunked-blank-before-colon": request(b"0\r\n\r\n" + INNER, b"Transfer-Encoding : chunked"),
    "chunked-tab": request(b"0\r\n\r\n" + INNER, b"Transfer-Encoding:\x0bchunked"),
    "chunked-misspelt": request(b"0\r\n\r\n" + INNER, b"Transfer-Encoding: xchunked"),
    "chunked-twice": request(b"0\r\n\r\n" + INNER, CHUNKED, b"Transfer-Encoding: identity", length=False),
    "chunked-not-last": request(b"0\r\n\r\n" + INNER, b"Transfer-Encoding: chunked, gzip", length=False),
    "chunked-after-bare-lf": request(b"0\r\n\r\n" + INNER, b"X: y\nTransfer-Encoding: chunked"),
    "chunked-after-bare-cr": request(b"0\r\n\r\n" + INNER, b"X: y\rTransfer-Encoding: chunked"),
    "folded-header": request(b"0\r\n\r\n" + INNER, b"Transfer-Encoding:\r\n chunked"),
    "chunked-in-1.0": request(b"0\r\n\r\n" + INNER, CHUNKED, line=b"POST /mcp HTTP/1.0"),
    "chunk-size-no-hex": request(b"zz\r\n" + INNER, CHUNKED, length=False),
    "chunk-size-minus": request(b"-1\r\n" + INNER, CHUNKED, length=False),
    "chunk-size-plus": request(b"+0\r\n\r\n" + INNER, CHUNKED, length=False),
    "chunk-size-0x": request(b"0x0\r\n\r\n" + INNER, CHUNKED, length=False),
    "chunk-size-huge": request(b"FFFFFFFFFFFFFFFFFF\r\n" + INNER, CHUNKED, length=False),
    "chunk-size-blank": request(b"0 \r\n\r\n" + INNER, CHUNKED, length=False),
    "chunk-too-long": request(b"1\r\nab\r\n0\r\n\r\n" + INNER, CHUNKED, length=False),
    "chunk-ends-with-lf": request(b"1\r\na\n0\r\n\r\n" + INNER, CHUNKED, length=False),
    "chunk-extension-with-lf": request(b"1;x\ny\r\na\r\n0\r\n\r\n" + INNER, CHUNKED, length=False),
}


@pytest.mark.parametrize("name", SMUGGLED)
async def test_no_request_hides_in_another_s_body(here: Target, name: str) -> None:
    answer = await here.throw(SMUGGLED[name])
    assert here.asked == [], "the hidden call was made"
    assert answer.count(b"HTTP/1.") <= 1
    assert b" 200 " not in answer.split(b"\r\n")[0]


BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "blank-lines": b"\r\n" * 1000,
    "noise": bytes(range(256)) * 16,
    "zeros": b"\0" * 4096,
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "http-2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(64),
    "http-0.9": b"GET /mcp\r\n\r\n",
    "http-9": request(call(), line=b"POST /mcp HTTP/9.9"),
    "no-version": request(call(), line=b"POST /mcp"),
    "no-method": request(call(), line=b" /mcp HTTP/1.1"),
    "lower-case-method": request(call(), line=b"post /mcp HTTP/1.1"),
    "unknown-method": request(call(), line=b"BREW /mcp HTTP/1.1"),
    "connect": request(b"", line=b"CONNECT 169.254.169.254:80 HTTP/1.1"),
    "absolute": request(call(), line=b"POST http://169.254.169.254/mcp HTTP/1.1"),
    "asterisk": request(b"", line=b"OPTIONS * HTTP/1.1"),
    "path-with-nul": request(call(), line=b"POST /mcp\0 HTTP/1.1"),
    "path-with-blank": request(call(), line=b"POST /mcp /x HTTP/1.1"),
    "path-endless": request(call(), line=b"POST /" + b"a" * 20000 + b" HTTP/1.1"),
    "header-endless": request(call(), b"X: " + b"a" * 20000),
    "header-name-endless": request(call(), b"a" * 20000 + b": x"),
    "headers-many": request(call(), *[b"X-%d: y" % number for number in range(2000)]),
    "header-no-colon": request(call(), b"nonsense"),
    "header-no-name": request(call(), b": x"),
    "header-nul": request(call(), b"X: a\0b"),
    "header-name-blank": request(call(), b"X Y: z"),
    "header-name-8bit": request(call(), b"X\xff: z"),
    "two-hosts": request(call(), b"Host: 169.254.169.254"),
    "no-host": b"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    "upgrade-websocket": request(b"", b"Upgrade: websocket", b"Connection: Upgrade", line=b"GET /mcp HTTP/1.1"),
    "body-missing": request(b"", b"Content-Length: 100", length=False),
    "body-not-gzip": request(b"not gzip", b"Content-Encoding: gzip"),
    "body-cut-gzip": request(gzip.compress(call())[:40], b"Content-Encoding: gzip"),
    "trailer-smuggles-host": request(b"0\r\nHost: evil\r\n\r\n", CHUNKED, length=False),
    "trailers-endless": request(b"0\r\n" + b"X: y\r\n" * 5000 + b"\r\n", CHUNKED, length=False),
    "session-endless": request(call(), b"Mcp-Session-Id: " + b"a" * 5000),
    "session-twice": request(call(), b"Mcp-Session-Id: a", b"Mcp-Session-Id: b"),
    "version-nonsense": request(call(), b"MCP-Protocol-Version: \xf0\x9f\xa6\x84"),
    "origin-null": request(call(), b"Origin: null"),
    "origin-evil": request(call(), b"Origin: https://evil.example"),
    "host-evil": request(call()).replace(b"127.0.0.1", b"evil.example"),
    "dot-segments": request(call(), line=b"POST /x/../mcp HTTP/1.1"),
    "encoded-path": request(call(), line=b"POST /%6dcp HTTP/1.1"),
    "double-slash": request(call(), line=b"POST //mcp HTTP/1.1"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
async def test_what_is_no_request_of_ours_is_refused_or_cut_off(here: Target, name: str) -> None:
    answer = await here.throw(BROKEN[name])
    assert here.asked == []
    assert b" 500 " not in answer.split(b"\r\n")[0]
    assert b"Traceback" not in answer
    assert b"aiohttp" not in answer.lower()


@pytest.mark.parametrize(
    "header",
    [b"Upgrade: h2c", b"Upgrade: websocket", b"Expect: 100-continue", b"Expect: the-spanish-inquisition", b"TE: gzip"],
)
async def test_what_is_offered_is_not_taken(here: Target, header: bytes) -> None:
    answer = await here.throw(request(call(), header, b"Connection: Upgrade"))
    assert b" 101 " not in answer
    assert len(here.asked) <= 1


async def test_gzip_and_deflate_bombs_stop_at_the_body_limit(here: Target) -> None:
    bomb = b'{"a":"' + b" " * (64 << 20) + b'"}'
    for coding, packed in (("gzip", gzip.compress(bomb, 1)), ("deflate", zlib.compress(bomb, 1))):
        assert len(packed) < 1 << 20
        answer = await here.throw(request(packed, b"Content-Encoding: " + coding.encode()))
        assert answer.startswith(b"HTTP/1.1 413"), answer[:200]


async def test_byte_by_byte_is_as_good_as_at_once(here: Target) -> None:
    answer = await here.throw(request(call()), slowly=True)
    assert answer.startswith(b"HTTP/1.1 200")
    assert here.asked == ["/a/marker"]


async def test_a_flood_of_pipelined_requests_is_served_in_order_and_ends(here: Target) -> None:
    answer = await here.throw(request(call()) * 200)
    assert answer.count(b"HTTP/1.1 200") == len(here.asked) == 200


async def test_a_thousand_connections_that_say_nothing_harm_nobody(here: Target) -> None:
    streams = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", here.port) for _ in range(300)))
    await here.works()
    for _, writer in streams:
        writer.close()
