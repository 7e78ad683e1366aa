"""Listening for a server's announcements that its tool list changed, for as long as somebody wants to know.

In: an `Upstream`. Out: calls of `changed()`. Run in a task by pool, one per server; ends when cancelled.

Before 2026-07-28 announcements come on the stream of a GET (405: there is none), since then on that of
`subscriptions/listen`. A server that offers neither is asked again now and then, silently. After a stream was lost
`changed()` is called once it stands again: nobody says what was announced in between. The same goes for a first stream
that stands later than somebody would wait for it, and for a server that announces nothing and is agreed with anew.
"""

from __future__ import annotations

import asyncio
import enum
import random
from collections.abc import Callable
from typing import Final

import msgspec

from arion_tds.backends.mcp import era, requests, wire
from arion_tds.backends.mcp.connection import Upstream
from arion_tds.backends.mcp.era import Era, Peer
from arion_tds.backends.mcp.line import Broken
from arion_tds.backends.mcp.response import Lost, Response
from arion_tds.backends.mcp.sse import SseParser
from arion_tds.backends.mcp.streamable import HttpLine

_MAX_FRAME: Final = 1 << 20
_OPEN_SECONDS: Final = 15.0
_LASTED: Final = 30.0
"""Seconds that a stream must have stood for the next attempt to come without a longer pause."""

_LISTEN: Final = "subscriptions/listen"
_WANTED: Final = b'"notifications":{"toolsListChanged":true}'
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


class _End(enum.Enum):
    LOST = "lost"
    UNSUPPORTED = "unsupported"
    STALE = "stale"


class _Filter(msgspec.Struct, rename="camel"):
    tools_list_changed: bool | None = None


class _Acknowledged(msgspec.Struct):
    notifications: _Filter = msgspec.field(default_factory=_Filter)


def _honoured(message: wire.Message) -> bool:
    """Whether the server says that it will announce changes of its tool list."""
    try:
        return msgspec.json.decode(message.params, type=_Acknowledged).notifications.tools_list_changed is True
    except wire.BAD_JSON:
        return False


class Watch:
    """One server's announcements."""

    def __init__(self, upstream: Upstream, changed: Callable[[], None], rng: random.Random) -> None:
        """`changed` is called in the event loop, and must not block. `rng` spreads reconnects."""
        self._upstream = upstream
        self._line = upstream.line if isinstance(upstream.line, HttpLine) else None
        self._changed = changed
        self._rng = rng
        self._missed = False
        self._tried = asyncio.Event()
        self._stale: tuple[Peer, era.Stale] | None = None
        self._remade = 0
        self._response: Response | None = None
        self.listening = False

    async def run(self) -> None:
        """Listen until cancelled."""
        settings = self._upstream.settings
        pause = settings.watch_backoff
        loop = asyncio.get_running_loop()
        self._upstream.changed = self._changed
        self._upstream.replaced = self._replaced
        try:
            while self._line is None:  # a local process announces on the one stream that there is
                self._tried.set()
                await asyncio.Event().wait()
            while True:
                begun = loop.time()
                end = await self._once(self._line)
                self.listening = False
                self._missed = True
                self._tried.set()
                if end is _End.UNSUPPORTED:
                    await asyncio.sleep(settings.watch_recheck)
                    continue
                if loop.time() - begun >= _LASTED:
                    pause = settings.watch_backoff
                await asyncio.sleep(pause * self._rng.uniform(0.5, 1.0))
                pause = min(pause * 2, settings.watch_backoff_max)
        finally:
            self.listening = False
            self._upstream.changed = self._upstream.replaced = None

    async def tried(self, seconds: float) -> None:
        """Until the first stream stands, or there is none to be had; no longer than this."""
        try:
            async with asyncio.timeout(seconds):
                await self._tried.wait()
        except TimeoutError:
            self._missed = True

    def missed(self) -> None:
        """Somebody has a list from before this watch: the first stream that stands counts as a change."""
        self._missed = True

    async def _once(self, line: HttpLine) -> _End:
        """One stream from opening to end."""
        number = line.number()
        stale, self._stale = self._stale, None
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                if stale is None:
                    peer = await self._upstream.agreed()
                else:
                    peer = await self._upstream.agreed(stale[0], session_only=stale[1] is era.Stale.SESSION)
                    self._remade = peer.number
                response = await _open(line, peer, number)
        except (Broken, TimeoutError):
            return _End.LOST
        self._response = response
        try:
            if response.status != 200:
                return await self._not_opened(line, peer, response, number)
            if response.headers.get("content-type", "").partition(";")[0].strip().lower() != "text/event-stream":
                return _End.UNSUPPORTED
            if peer.era is Era.LEGACY:
                self._stands()
            return await self._read(peer, response, number)
        finally:
            self._response = None
            response.close()

    def _replaced(self) -> None:
        """Another peer was agreed on: the server has restarted, perhaps, with other tools.

        What still comes on the stream of the old one is not to be relied on: a new stream will tell. Where there is
        none, this is the only sign.
        """
        if self._response is not None:
            self._response.close()
        else:
            self._changed()

    async def _not_opened(self, line: HttpLine, peer: Peer, response: Response, number: int) -> _End:
        status = response.status
        if status == 405 or status in {401, 403, 406, 501}:
            return _End.UNSUPPORTED
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                answer = await line.receive(response, number, (_MAX_FRAME, "a watch's limit"), None)
        except (Broken, TimeoutError):
            return _End.LOST
        stale = era.stale(peer, status, answer.message)
        # Refused again right after a new session: this server says 404 where it means that it has no stream.
        fresh = peer.number == self._remade
        if not fresh and (stale is era.Stale.SESSION or (stale is era.Stale.ERA and answer.message is not None)):
            self._stale = (peer, stale)
            return _End.LOST
        return _End.UNSUPPORTED if 400 <= status < 500 and status != 429 else _End.LOST

    async def _read(self, peer: Peer, response: Response, number: int) -> _End:
        parser = SseParser(_MAX_FRAME)
        try:
            while chunk := await response.readany():
                for data in parser.feed(chunk):
                    end = await self._frame(peer, data, number)
                    if end is not None:
                        return end
                if parser.too_long:
                    return _End.LOST
        except Lost:
            return _End.LOST
        return _End.LOST

    async def _frame(self, peer: Peer, data: bytes, number: int) -> _End | None:
        messages = wire.parse(data)
        if isinstance(messages, str):
            return None
        for message in messages:
            if message.is_response:
                # The end of a subscription: an error says that there is none to be had.
                if peer.era is Era.MODERN and bytes(message.id) == b"%d" % number:
                    return _End.UNSUPPORTED if message.error else _End.LOST
            elif message.method == _ACKNOWLEDGED:
                if not _honoured(message):
                    return _End.UNSUPPORTED
                self._stands()
            else:
                await self._upstream.hear(message, data)
        return None

    def _stands(self) -> None:
        """The stream is open. Unless it was waited for, something may have been missed."""
        self.listening = True
        missed, self._missed = self._missed, False
        self._tried.set()
        if missed:
            self._changed()


async def _open(line: HttpLine, peer: Peer, number: int) -> Response:
    if peer.era is Era.MODERN:
        body = wire.request(number, _LISTEN, requests.plain_params(peer, _WANTED))
        return await line.channel.send("POST", requests.for_peer(line.base, peer, _LISTEN), body)
    sent = requests.for_peer(line.base, peer, "")
    del sent["content-type"]
    sent["accept"] = "text/event-stream"
    return await line.channel.send("GET", sent)
