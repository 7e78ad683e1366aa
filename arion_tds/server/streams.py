"""Streams that stay open to tell clients that the list changed: legacy GET, and subscriptions/listen.

In: requests that front has judged. Out: streams to be opened, and then served. What is kept, each bounded by
`max_streams`: the open streams, and the one GET stream of each session. Owned by front.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Final

from aiohttp import web

from arion_tds.model.caller import Caller
from arion_tds.server import eras, jsonrpc
from arion_tds.server.notify import AT_ONCE, METHOD, ChangeNotifier, Subscriber
from arion_tds.server.sessions import Session
from arion_tds.server.settings import FrontSettings, Observer
from arion_tds.server.sse import HEADERS, EventStream
from arion_tds.view import Published

_QUEUE_BYTES: Final = 1 << 16
_CHANGED: Final = jsonrpc.notification(METHOD)
_KEY: Final = b'"' + eras.SUBSCRIPTION_KEY.encode() + b'":'


Whose = tuple[Caller, str]
"""A caller, and the key under which its streams are counted."""


class Opening(web.StreamResponse):
    """A stream that is to be served, as the response that it will be: see `Streams.serve`.

    Of the request there is nothing in it: a stream may last for days.
    """

    def __init__(
        self,
        whose: Whose,
        lasts: float | None,
        *,
        changed: bytes | None,
        last: bytes | None = None,
        session: str | None = None,
    ) -> None:
        """`lasts`: seconds at most. `changed`: what is sent on every change of the list; `last`: at the end."""
        super().__init__(headers=HEADERS)
        self.stream = EventStream(_QUEUE_BYTES)
        self.whose = whose
        self.lasts = lasts
        self.changed = changed
        self.last = last
        self.session = session
        self.subscriber: Subscriber | None = None


class Streams:
    """The open notification streams of one listener."""

    def __init__(self, published: Published, settings: FrontSettings, observer: Observer, identity: bytes) -> None:
        """`identity`: our `_meta` member."""
        self._settings = settings
        self._observer = observer
        self._identity = identity
        self._notifier = ChangeNotifier(published, interval=settings.notify_interval)
        self._open: dict[Opening, None] = {}
        self._by_session: dict[str, Opening] = {}
        self._by_caller: dict[str, int] = {}
        self._closing = False
        self._comments: asyncio.Handle | None = None

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

    def get(self, session: Session, whose: Whose) -> Opening:
        """A GET stream that lasts until its session ends. A second one of the session takes the first one's place."""
        lasts = session.remaining if whose[0].lasts is None else min(session.remaining, whose[0].lasts)
        return Opening(whose, lasts, changed=_CHANGED, session=session.id)

    def listen(self, identity: bytes, whose: Whose, *, tools: bool) -> Opening:
        """What subscriptions/listen opens: acknowledged first, ended with a result. `tools`: as toolsListChanged."""
        subscription = _KEY + identity
        honoured = b'{"toolsListChanged":true}' if tools else b"{}"
        opening = Opening(
            whose,
            whose[0].lasts,
            changed=jsonrpc.notification(METHOD, b'{"_meta":{' + subscription + b"}}") if tools else None,
            last=jsonrpc.result(
                identity, b'{"resultType":"complete","_meta":{' + subscription + b"," + self._identity + b"}}"
            ),
        )
        opening.stream.push(
            jsonrpc.notification(
                "notifications/subscriptions/acknowledged",
                b'{"notifications":' + honoured + b',"_meta":{' + subscription + b"}}",
            )
        )
        return opening

    async def serve(self, request: web.BaseRequest, opening: Opening) -> web.StreamResponse:
        """Serve the stream until it ends. What is alive meanwhile is all that a stream costs: keep it little."""
        stream, who, session, timer = opening.stream, opening.whose[1], opening.session, None
        if session is not None:
            self.end_session(session)
            self._by_session[session] = opening
        if opening.lasts is not None:  # until the session ends, or the token that opened it
            timer = asyncio.get_running_loop().call_later(max(0.0, opening.lasts), stream.end, opening.last)
        self._by_caller[who] = self._by_caller.get(who, 0) + 1
        self._open[opening] = None
        if opening.changed is not None:
            opening.subscriber = self._notifier.add(stream, opening.changed, opening.whose[0])
        self._observer.streams(len(self._open))
        self._keep_alive()
        try:
            return await stream.run(request, opening, keepalive=None, write_timeout=self._settings.write_timeout)
        finally:
            if timer is not None:
                timer.cancel()
            if session is not None and self._by_session.get(session) is opening:
                del self._by_session[session]
            if opening.subscriber is not None:
                self._notifier.discard(opening.subscriber)
            del self._open[opening]
            self._by_caller[who] -= 1
            if not self._by_caller[who]:
                del self._by_caller[who]
            self._observer.streams(len(self._open))

    def _keep_alive(self) -> None:
        """Have a round of comments, one timer for all streams, as long as there are any."""
        if self._comments is None and self._open and not self._closing:
            self._comments = asyncio.get_running_loop().call_later(self._settings.keepalive, self._comment, None)

    def _comment(self, round_: Iterator[Opening] | None) -> None:
        """The next few comments of a round; in one go they would hold up every call."""
        found = iter(tuple(self._open)) if round_ is None else round_
        some = list(itertools.islice(found, AT_ONCE))
        for opening in some:
            opening.stream.comment()
        if len(some) == AT_ONCE:
            self._comments = asyncio.get_running_loop().call_soon(self._comment, found)
        else:
            self._comments = None
            self._keep_alive()

    def tell_session(self, identity: str) -> None:
        """The list changed for this session alone: say so on its GET stream, if one is open."""
        opening = self._by_session.get(identity)
        if opening is not None and opening.subscriber is not None:
            self._notifier.tell(opening.subscriber)

    def end_session(self, identity: str) -> None:
        """End the GET stream of the session, if one is open."""
        opening = self._by_session.pop(identity, None)
        if opening is not None:
            opening.stream.end()

    def close(self) -> None:
        """Tell every stream to end, with its result where the protocol has one; take no further ones."""
        self._closing = True
        self._notifier.close()
        if self._comments is not None:
            self._comments.cancel()
        for opening in self._open:
            opening.stream.end(opening.last)
