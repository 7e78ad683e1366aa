"""What never gets as far as a method: wrong place, wrong host, wrong size, not JSON."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib

import pytest
from front_house import BOTH, house, tool

from arion_tds import inflate
from arion_tds.model.caller import Denial

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


async def raw(port: int, request: bytes) -> bytes:
    """Bytes in, everything that comes back until the server closes or is silent after a whole head."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return head


async def test_other_paths_are_not_served() -> None:
    async with house() as here:
        async with here.http.post(here.url + "/other", data=b"{}") as response:
            assert response.status == 404
            assert "/mcp" in (await response.json())["error"]["message"]
        async with here.http.post(
            here.url + "?a=1", data=PING, headers={"Content-Type": "application/json"}
        ) as response:
            assert response.status == 200


async def test_other_methods_are_refused() -> None:
    async with house() as here:
        for method in ("PUT", "OPTIONS", "HEAD"):
            async with here.http.request(method, here.url) as response:
                assert response.status == 405
                assert "POST" in response.headers["Allow"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.com"}, 421),
        ({"Host": "evil.com", "Origin": "http://evil.com"}, 421),
        ({"Origin": "http://evil.com"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:5173"}, 200),
        ({"Host": "gw.test", "Origin": "https://app.test"}, 200),
    ],
)
async def test_host_and_origin(headers: dict[str, str], status: int) -> None:
    async with house(allowed_hosts=("gw.test",), allowed_origins=("https://app.test",)) as here:
        found, _ = await here.post(PING, headers)
        assert found == status


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
async def test_the_content_type_must_be_json(kind: str) -> None:
    async with house() as here:
        status, _ = await here.post(PING, {"Content-Type": kind})
        assert status == 415


async def test_what_is_not_json_is_a_parse_error() -> None:
    async with house() as here:
        status, found = await here.post(b"{nope")
        assert (status, found["id"], found["error"]["code"]) == (400, None, -32700)
        status, found = await here.post(b"")
        assert (status, found["error"]["code"]) == (400, -32700)


async def test_a_body_over_the_limit_is_refused_by_its_length() -> None:
    async with house(max_body_bytes=100) as here:
        head = await raw(
            here.port,
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 101\r\n\r\n",
        )
        assert head.startswith(b"HTTP/1.1 413")


async def test_a_body_over_the_limit_is_refused_while_it_comes_in() -> None:
    async with house(max_body_bytes=100) as here:
        chunk = b"3c\r\n" + b"x" * 60 + b"\r\n"
        head = await raw(
            here.port,
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n" + 2 * chunk,
        )
        assert head.startswith(b"HTTP/1.1 413")


async def test_a_compressed_body_is_measured_unpacked() -> None:
    async with house(max_body_bytes=1000) as here:
        headers = {"Content-Encoding": "gzip"}
        assert (await here.post(gzip.compress(PING), headers))[0] == 200
        status, found = await here.post(gzip.compress(b" " * 100_000 + PING), headers)
        assert status == 413
        assert "max_body_bytes" in found["error"]["message"]


async def test_a_bomb_is_unpacked_up_to_the_limit_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked = 0

    class Counting(inflate.Body):
        def _keep(self, data: bytes) -> None:
            nonlocal unpacked
            unpacked += len(data)
            super()._keep(data)

    monkeypatch.setattr(inflate, "Body", Counting)
    async with house(max_body_bytes=100_000) as here:
        status, _ = await here.post(gzip.compress(b" " * 50_000_000), {"Content-Encoding": "gzip"})
        assert status == 413
        assert (await here.post(PING))[0] == 200
    assert unpacked == 100_001


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        ("deflate", zlib.compress(PING), 200),
        ("identity", PING, 200),
        ("gzip", PING, 400),
        ("gzip", gzip.compress(PING)[:-9], 400),
        ("zstd", PING, 415),
        ("gzip, gzip", PING, 415),
    ],
    ids=["deflate", "as it is", "no gzip", "half a gzip", "zstd", "twice"],  # not of bytes that hold the time
)
async def test_a_compressed_body_is_what_it_says_or_refused(encoding: str, body: bytes, status: int) -> None:
    async with house() as here:
        sent = {"Content-Type": "application/json", "Content-Encoding": encoding, **BOTH}
        async with here.http.post(here.url, data=body, headers=sent) as response:
            assert response.status == status
            assert response.headers.get("Accept-Encoding") == ("gzip, deflate" if status == 415 else None)


async def test_a_body_of_exactly_the_limit_is_read() -> None:
    async with house(max_body_bytes=len(PING)) as here:
        assert (await here.post(PING))[0] == 200
        assert (await here.post(PING + b" "))[0] == 413


async def test_a_body_that_does_not_arrive_is_given_up() -> None:
    async with house(body_timeout=0.01) as here:
        head = await raw(
            here.port,
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
        )
        assert head.startswith(b"HTTP/1.1 408")


async def test_whoever_is_not_admitted_is_told_how_to_be() -> None:
    class Closed:
        async def admit(self, _headers: object) -> Denial:
            return Denial(401, "a token is needed", {"WWW-Authenticate": "Bearer"})

    async with house(access=Closed()) as here:
        async with here.http.post(here.url, data=PING) as response:
            assert response.status == 401
            assert response.headers["WWW-Authenticate"] == "Bearer"
        async with here.http.post(here.url + "/search", data=b"{}") as response:
            assert response.status == 401


async def test_the_observer_hears_of_every_post() -> None:
    class Ear:
        def __init__(self) -> None:
            self.heard: list[tuple[str, int, bool]] = []

        def answered(self, method: str, status: int, _seconds: float, *, modern: bool) -> None:
            self.heard.append((method, status, modern))

        def streams(self, count: int) -> None: ...

        def dropped(self, what: str) -> None: ...

        def refused(self, what: str) -> None: ...

    ear = Ear()
    async with house(tool("a"), observer=ear) as here:
        await here.ask("tools/call", {"name": "shop.a"})
        await here.ask("x" * 50)
        await here.post(b"{")
        await here.post(PING)
    assert ear.heard == [("tools/call", 200, True), ("other", 404, True), ("other", 400, False), ("ping", 200, False)]


async def test_ids_and_numbers_of_any_size_come_through() -> None:
    async with house(tool("a")) as here:
        params = {"name": "shop.a", "arguments": {"n": 2**80}}
        status, found = await here.post({"jsonrpc": "2.0", "id": 2**70, "method": "tools/call", "params": params})
        assert (status, found["id"]) == (200, 2**70)
        assert json.loads(found["result"]["content"][0]["text"]) == {"n": 2**80}
