"""Announcements of a changed tool list, heard in both eras."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable

from aiohttp import web
from mcp_scripted import CONTEXT, LIMITS, Asked, Reply, Scripted, context, text

from arion_tds.backends.mcp.connection import Upstream
from arion_tds.backends.mcp.watch import Watch
from arion_tds.model.result import CallResult

Connect = Callable[..., Upstream]
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


class Ear:
    """Counts what a watch reports."""

    def __init__(self) -> None:
        self.count = 0
        self._more = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        self._more.set()

    async def hears(self, count: int) -> None:
        async with asyncio.timeout(5):
            while self.count < count:
                self._more.clear()
                await self._more.wait()


@contextlib.asynccontextmanager
async def watching(upstream: Upstream) -> AsyncIterator[tuple[Watch, Ear]]:
    ear = Ear()
    watch = Watch(upstream, ear, random.Random(1))
    task = asyncio.create_task(watch.run())
    try:
        yield watch, ear
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not watch.listening
        assert not upstream.busy


class Stream:
    """The announcing stream of a server: `say` sends on the newest one, `end` ends it."""

    def __init__(self, server: Scripted, *, honour: bool = True) -> None:
        self.opened = 0
        self.asked: list[Asked] = []
        self._server = server
        self._open: tuple[Asked, web.StreamResponse] | None = None
        self._end = asyncio.Event()
        self._honour = honour
        server.on["GET" if server.era == "legacy" else "subscriptions/listen"] = self._handle

    async def _handle(self, asked: Asked) -> Reply:
        first: object = b": open\n\n"
        if asked.message:
            meta = {"io.modelcontextprotocol/subscriptionId": asked.message["id"]}
            params = {"_meta": meta, "notifications": {"toolsListChanged": self._honour}}
            first = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}
        response = await asked.stream(first)
        self._end = asyncio.Event()
        self._open = (asked, response)
        self.asked.append(asked)
        self.opened += 1
        async with self._server.heard:
            self._server.heard.notify_all()
        await self._end.wait()
        return response

    async def is_opened(self, times: int) -> None:
        await self._server.until(lambda: self.opened == times)

    async def say(self, *frames: object) -> None:
        assert self._open is not None
        asked, response = self._open
        await asked.send(response, *frames)

    def end(self) -> None:
        self._end.set()


async def test_an_announcement_is_heard(server: Scripted, connect: Connect) -> None:
    stream = Stream(server)
    async with watching(connect(server)) as (watch, ear):
        await stream.is_opened(1)
        await stream.say(b": keep-alive\n\n", {"method": "notifications/resources/list_changed"}, CHANGED)
        await ear.hears(1)
        assert watch.listening
        await stream.say(CHANGED, CHANGED)
        await ear.hears(3)
        stream.end()
    if server.era == "modern":
        assert stream.asked[0].params["notifications"] == {"toolsListChanged": True}
    else:
        assert stream.asked[0].headers["mcp-session-id"] == "session-1"


async def test_a_lost_stream_is_opened_again_and_what_was_missed_counts_as_a_change(
    server: Scripted, connect: Connect
) -> None:
    stream = Stream(server)
    async with watching(connect(server, watch_backoff=0.01)) as (_, ear):
        await stream.is_opened(1)
        assert ear.count == 0
        stream.end()
        await ear.hears(1)
        assert stream.opened == 2
        stream.end()


async def test_a_server_without_announcements_is_left_in_peace(server: Scripted, connect: Connect) -> None:
    asked = "GET" if server.era == "legacy" else "subscriptions/listen"
    async with watching(connect(server, watch_backoff=0.001, watch_recheck=0.05)) as (_, ear):
        await server.until(lambda: len(server.of(asked)) == 2)
        assert ear.count == 0


async def test_a_subscription_that_is_not_honoured_is_none(modern: Scripted, connect: Connect) -> None:
    stream = Stream(modern, honour=False)
    async with watching(connect(modern, watch_backoff=0.001)) as (watch, _):
        await modern.until(lambda: stream.opened == 1)
        await asyncio.sleep(0)
        assert not watch.listening
        stream.end()


async def test_a_watch_makes_a_new_session_when_the_server_has_forgotten_it(legacy: Scripted, connect: Connect) -> None:
    stream = Stream(legacy)
    handle = legacy.on["GET"]

    async def checks(asked: Asked) -> Reply:
        if asked.headers["mcp-session-id"] not in legacy.sessions:
            return asked.error(-32001, "Session not found", status=404)
        return await handle(asked)

    legacy.on["GET"] = checks
    async with watching(connect(legacy, watch_backoff=0.01)) as (_, ear):
        await stream.is_opened(1)
        legacy.sessions.clear()
        stream.end()
        await stream.is_opened(2)
        await ear.hears(1)
        assert len(legacy.of("initialize")) == 2
        stream.end()


async def test_a_server_that_says_404_for_no_stream_keeps_its_session(legacy: Scripted, connect: Connect) -> None:
    async def none(_: Asked) -> Reply:
        return web.Response(status=404)

    legacy.on["GET"] = none
    async with watching(connect(legacy, watch_backoff=0.001, watch_recheck=0.02)):
        await legacy.until(lambda: len(legacy.of("GET")) == 5)
        assert len(legacy.of("initialize")) == 2


async def test_a_new_session_of_a_call_moves_the_watch_to_it(legacy: Scripted, connect: Connect) -> None:
    stream = Stream(legacy)
    upstream = connect(legacy, watch_backoff=0.01)
    async with watching(upstream) as (_, ear):
        await stream.is_opened(1)
        legacy.sessions.clear()
        found = await upstream.call("echo", b"{}", CONTEXT, LIMITS, idempotent=False)
        assert isinstance(found, CallResult)
        await stream.is_opened(2)
        assert stream.asked[1].headers["mcp-session-id"] == "session-2"
        await ear.hears(1)
        stream.end()


async def test_a_ping_on_the_stream_is_answered(legacy: Scripted, connect: Connect) -> None:
    stream = Stream(legacy)
    async with watching(connect(legacy)):
        await stream.is_opened(1)
        await stream.say({"jsonrpc": "2.0", "id": "p", "method": "ping"})
        await legacy.until(lambda: any(each.message.get("id") == "p" for each in legacy.asked))
        assert legacy.asked[-1].message["result"] == {}
        stream.end()


async def test_progress_on_the_stream_finds_its_call(legacy: Scripted, connect: Connect) -> None:
    stream = Stream(legacy)
    heard: list[bytes] = []

    async def reports_elsewhere(asked: Asked) -> Reply:
        token = asked.params["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": 1}
        await stream.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        async with asyncio.timeout(5):
            await told.wait()
        return asked.result(text("done"))

    def notify(frame: bytes) -> None:
        heard.append(frame)
        told.set()

    told = asyncio.Event()
    legacy.on["tools/call"] = reports_elsewhere
    upstream = connect(legacy)
    async with watching(upstream):
        await stream.is_opened(1)
        given = context(notify=notify, progress_token=b'"mine"')
        await upstream.call("echo", b"{}", given, LIMITS, idempotent=False)
        assert b'"progressToken":"mine"' in heard[0]
        stream.end()


async def test_an_announcement_on_a_calls_own_stream_is_heard(legacy: Scripted, connect: Connect) -> None:
    async def announces(asked: Asked) -> Reply:
        return await asked.stream(CHANGED, asked.answer(text("done")))

    legacy.on["tools/call"] = announces
    upstream = connect(legacy)
    async with watching(upstream) as (_, ear):
        await legacy.until(lambda: bool(legacy.of("GET")))
        await upstream.call("echo", b"{}", CONTEXT, LIMITS, idempotent=False)
        await ear.hears(1)
