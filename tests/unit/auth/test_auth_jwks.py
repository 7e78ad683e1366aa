"""An issuer's keys: had once, kept while it is down, renewed when they age or do not fit."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from auth_issuer import EC, RSA, jwks

from arion_tds.auth.jwks import JwksHttp, LocalKeys, RemoteKeys, RemoteSettings
from arion_tds.auth.jwt import Keys, parse_keys


class Issuer:
    """Answers fetches with what a test says, and lets it see each one."""

    def __init__(self, *answers: bytes | str) -> None:
        self.answers = list(answers)
        self.count = 0
        self.now = 1000.0
        self.heard: list[bool] = []
        self._asked = asyncio.Event()

    async def __call__(self) -> bytes | str:
        self.count += 1
        self._asked.set()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def asked(self, count: int) -> None:
        """Return after so many fetches."""
        while self.count < count:
            self._asked.clear()
            await self._asked.wait()


@contextlib.asynccontextmanager
async def source(issuer: Issuer, **settings: Any) -> AsyncIterator[RemoteKeys]:
    remote = RemoteSettings(**{"uri": "http://issuer/jwks", "timeout": 1.0, "cooldown": 30.0, **settings})
    found = RemoteKeys("main", remote, issuer, clock=lambda: issuer.now, heard=issuer.heard.append)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(found.run())
        try:
            yield found
        finally:
            task.cancel()


async def test_keys_are_fetched_at_once_and_then_kept() -> None:
    issuer = Issuer(jwks(EC))
    async with source(issuer) as keys:
        assert keys.age is None
        first = await keys.keys()
        assert first is not None
        assert len(first) == 1
        assert await keys.keys() is first
        assert issuer.count == 1
        issuer.now += 12
        assert keys.age == 12


async def test_aged_keys_are_renewed_and_the_same_document_is_the_same_keys() -> None:
    issuer = Issuer(jwks(EC), jwks(EC), jwks(RSA))
    async with source(issuer, cache_duration=0.01) as keys:
        first = await keys.keys()
        await issuer.asked(2)
        assert await keys.keys() is first
        await issuer.asked(4)
        second = await keys.keys()
        assert second is not first
        assert second is not None
        assert second.fitting("rsa")


async def test_keys_stay_in_use_while_the_issuer_is_down(caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer(jwks(EC), "answers with status 503")
    with caplog.at_level(logging.WARNING, "arion_tds.auth"):
        async with source(issuer, cache_duration=0.01, cooldown=0.01) as keys:
            first = await keys.keys()
            await issuer.asked(2)
            issuer.now += 4000
            await issuer.asked(5)
            assert await keys.keys() is first
            assert keys.age == 4000
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == 1, "the same failure is said once"
    assert "status 503; keys that are 0 s old stay in use" in warned[0]
    assert issuer.heard[:3] == [True, False, False]


async def test_an_unknown_key_causes_one_fetch_and_then_none_until_the_cool_down_has_passed() -> None:
    issuer = Issuer(jwks(EC), jwks(EC, RSA))
    async with source(issuer) as keys:
        first = await keys.keys()
        assert isinstance(first, Keys)
        assert await keys.renewed(first) is None, "the keys are fresh: no fetch"
        assert issuer.count == 1
        issuer.now += 30
        found = await asyncio.gather(*(keys.renewed(first) for _ in range(20)))
        assert issuer.count == 2, "twenty tokens, one fetch"
        assert all(one is not None and one.fitting("rsa") for one in found)
        assert await keys.renewed(first) is found[0], "another's fetch serves everybody"
        assert issuer.count == 2


async def test_nobody_waits_for_an_issuer_that_has_just_failed() -> None:
    issuer = Issuer("cannot be had")
    async with source(issuer) as keys:
        assert await keys.keys() is None
        assert [await keys.keys() for _ in range(10)] == [None] * 10
        assert issuer.count == 1
        issuer.answers = [jwks(EC)]
        issuer.now += 30
        assert await keys.keys() is not None


async def test_a_broken_document_leaves_the_keys_alone() -> None:
    issuer = Issuer(jwks(EC), b'{"keys":[]}')
    async with source(issuer, cache_duration=0.01) as keys:
        first = await keys.keys()
        await issuer.asked(3)
        assert await keys.keys() is first


async def test_local_keys_are_replaced_by_whoever_watches_the_file() -> None:
    old, new = parse_keys(jwks(EC)), parse_keys(jwks(RSA))
    assert isinstance(old, Keys)
    assert isinstance(new, Keys)
    local = LocalKeys(old)
    assert await local.renewed(old) is None
    local.replace(new)
    assert await local.keys() is new
    assert await local.renewed(old) is new
    assert local.age == 0.0


@contextlib.asynccontextmanager
async def served(handler: Any) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(handler, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/jwks"
    finally:
        await runner.cleanup()


async def fetch(handler: Any, **settings: Any) -> bytes | str:
    async with asyncio.timeout(5), served(handler) as uri:
        return await JwksHttp(RemoteSettings(uri=uri, **settings))()


async def test_a_document_is_fetched_over_http() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        assert request.method == "GET"
        return web.Response(body=jwks(EC))

    assert await fetch(answer) == jwks(EC)


async def test_a_redirect_is_not_followed() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        assert request.path == "/jwks"
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    assert await fetch(answer) == "answers with status 302"


async def test_a_document_that_does_not_end_is_cut_off() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b" " * 65536)
        return response

    assert await fetch(answer, max_bytes=100_000) == "is larger than 100000 bytes"


async def test_a_compressed_bomb_is_cut_off_at_its_decompressed_size() -> None:
    async def answer(_request: web.BaseRequest) -> web.Response:
        response = web.Response(body=b" " * (32 << 20))
        response.enable_compression(web.ContentCoding.gzip)
        return response

    assert await fetch(answer, max_bytes=100_000) == "is larger than 100000 bytes"


async def test_an_issuer_that_says_nothing_is_given_up() -> None:
    async def answer(_request: web.BaseRequest) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    assert await fetch(answer, timeout=0.05) == "does not answer within 0.05 s (timeout)"


async def test_an_address_where_nobody_listens_is_said_to_be_one() -> None:
    found = await JwksHttp(RemoteSettings(uri="http://127.0.0.1:9/jwks", timeout=1.0))()
    assert isinstance(found, str)
    assert found.startswith("cannot be had")
