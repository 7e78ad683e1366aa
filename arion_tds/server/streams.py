"""Streams that stay open to tell clients that the list changed: legacy GET, and subscriptions/listen.

In: requests that front has judged. Out: the served stream. What is kept, each bounded by `max_streams`: the open
streams with the message that ends each in order, and the one GET stream of each session. Owned by front.
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from arion_tds.model.caller import Caller
from arion_tds.server import eras, jsonrpc
from arion_tds.server.notify import METHOD, ChangeNotifier, Subscriber
from arion_tds.server.sessions import Session
from arion_tds.server.settings import FrontSettings, Observer
from arion_tds.server.sse import EventStream
from arion_tds.view import Published

_QUEUE_BYTES: Final = 1 << 16
_CHANGED: Final = jsonrpc.notification(METHOD)
_KEY: Final = b'"' + eras.SUBSCRIPTION_KEY.encode() + b'":'


Whose = tuple[Caller, str]
"""A caller, and the key under which its streams are counted."""


class Streams:
    """The open notification streams of one listener."""

    def __init__(self, published: Published, settings: FrontSettings, observer: Observer, identity: bytes) -> None:
        """`identity`: our `_meta` member."""
        self._settings = settings
        self._observer = observer
        self._identity = identity
        self._notifier = ChangeNotifier(published, interval=settings.notify_interval)
        self._open: dict[EventStream, bytes | None] = {}
        self._by_session: dict[str, EventStream] = {}
        self._subscribers: dict[EventStream, Subscriber] = {}
        self._by_caller: dict[str, int] = {}
        self._closing = False

    def __len__(self) -> int:
        return len(self._open)

    def no_room(self, who: str) -> str | None:
        """Why no further stream of this caller (a key) is taken, or None."""
        if self._closing:
            return "no further streams are taken: the gateway is stopping"
        limit = self._settings.max_streams
        if len(self._open) >= limit:
            return f"no further streams are taken: {len(self._open)} of {limit} (max_streams) are open"
        share = self._settings.limits.max_streams_per_caller
        if self._by_caller.get(who, 0) >= share:
            return f"no further streams of yours are taken: {share} (limits.max_streams_per_caller) are open"
        return None

    async def get(self, request: web.BaseRequest, session: Session, whose: Whose) -> web.StreamResponse:
        """Serve a GET stream until its session ends. A second one of the session takes the first one's place."""
        stream = EventStream(_QUEUE_BYTES)
        self.end_session(session.id)
        self._by_session[session.id] = stream
        timer = asyncio.get_running_loop().call_later(session.remaining, stream.end)
        try:
            return await self._serve(request, stream, whose, (_CHANGED, None))
        finally:
            timer.cancel()
            if self._by_session.get(session.id) is stream:
                del self._by_session[session.id]

    async def listen(
        self, request: web.BaseRequest, identity: bytes, whose: Whose, *, tools: bool
    ) -> web.StreamResponse:
        """Serve subscriptions/listen: acknowledge first, end with a result. `tools`: toolsListChanged was asked for."""
        subscription = _KEY + identity
        honoured = b'{"toolsListChanged":true}' if tools else b"{}"
        stream = EventStream(_QUEUE_BYTES)
        stream.push(
            jsonrpc.notification(
                "notifications/subscriptions/acknowledged",
                b'{"notifications":' + honoured + b',"_meta":{' + subscription + b"}}",
            )
        )
        changed = jsonrpc.notification(METHOD, b'{"_meta":{' + subscription + b"}}") if tools else None
        ended = b'{"resultType":"complete","_meta":{' + subscription + b"," + self._identity + b"}}"
        return await self._serve(request, stream, whose, (changed, jsonrpc.result(identity, ended)))

    async def _serve(
        self, request: web.BaseRequest, stream: EventStream, whose: Whose, sent: tuple[bytes | None, bytes | None]
    ) -> web.StreamResponse:
        """`sent`: on every change of the caller's list (None: nothing), and at the end."""
        settings = self._settings
        changed, last = sent
        caller, who = whose
        timer = None
        if caller.lasts is not None:  # the stream ends with the token that opened it
            timer = asyncio.get_running_loop().call_later(max(0.0, caller.lasts), stream.end, last)
        self._by_caller[who] = self._by_caller.get(who, 0) + 1
        self._open[stream] = last
        if changed is not None:
            self._subscribers[stream] = self._notifier.add(stream, changed, caller)
        self._observer.streams(len(self._open))
        try:
            return await stream.run(request, keepalive=settings.keepalive, write_timeout=settings.write_timeout)
        finally:
            if timer is not None:
                timer.cancel()
            subscriber = self._subscribers.pop(stream, None)
            if subscriber is not None:
                self._notifier.discard(subscriber)
            del self._open[stream]
            self._by_caller[who] -= 1
            if not self._by_caller[who]:
                del self._by_caller[who]
            self._observer.streams(len(self._open))

    def tell_session(self, identity: str) -> None:
        """The list changed for this session alone: say so on its GET stream, if one is open."""
        stream = self._by_session.get(identity)
        subscriber = None if stream is None else self._subscribers.get(stream)
        if subscriber is not None:
            self._notifier.tell(subscriber)

    def end_session(self, identity: str) -> None:
        """End the GET stream of the session, if one is open."""
        stream = self._by_session.pop(identity, None)
        if stream is not None:
            stream.end()

    def close(self) -> None:
        """Tell every stream to end, with its result where the protocol has one; take no further ones."""
        self._closing = True
        self._notifier.close()
        for stream, last in self._open.items():
            stream.end(last)
