"""How a tools/call is answered while it runs: as JSON if it is quick and quiet, else as an event stream.

In: notifications of the upstream (bytes) and the final answer. Out: the response. Used by calling, one `Answering` per
call whose client takes event streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
from aiohttp import web

from arion_tds.server.settings import FrontSettings
from arion_tds.server.sse import HEADERS, EventStream

_QUEUE_BYTES: Final = 1 << 20
"""Notifications of one call that may wait for a slow client; further ones are dropped, the result never is."""

_PROGRESS: Final = "notifications/progress"
_LOG: Final = "notifications/message"


class _Method(msgspec.Struct):
    method: str


_decode_method = msgspec.json.Decoder(_Method).decode


def may_relay(message: bytes, *, progress: bool, log: bool) -> bool:
    """Whether an upstream's notification may go to this caller: only what the call asked for (tokens, a log level)."""
    try:
        method = _decode_method(message).method
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return (progress and method == _PROGRESS) or (log and method == _LOG)


class Silences:
    """The calls of one front that have said nothing yet, and one timer for all: each turns to an event stream in time.

    A timer for each would cost more than any other part of a call that is answered at once.
    """

    __slots__ = ("_due", "_loop", "_seconds", "_timer")

    def __init__(self, seconds: float) -> None:
        """`seconds` of silence that a client is left without a byte."""
        self._seconds = seconds
        self._due: dict[Answering, float] = {}  # in order, as all wait as long
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, call: Answering) -> None:
        """It is silent from now on."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        self._due[call] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._ring, loop)

    def end(self, call: Answering) -> None:
        """It has said something, or is over."""
        self._due.pop(call, None)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for call in [call for call, due in self._due.items() if due <= now]:
            call.start()
        first = next(iter(self._due.values()), None)
        if first is not None:
            self._timer = loop.call_at(first, self._ring, loop)


class Answering:
    """The response of one running call. The task that serves the request owns it, and the writer that it starts."""

    __slots__ = ("_dropped", "_request", "_settings", "_silences", "_started", "_wants")

    def __init__(
        self,
        request: web.BaseRequest,
        settings: FrontSettings,
        wants: tuple[bool, bool],
        dropped: Callable[[str], None],
        silences: Silences,
    ) -> None:
        """`wants`: progress, log messages."""
        self._request = request
        self._settings = settings
        self._wants = wants
        self._dropped = dropped
        self._started: tuple[EventStream, asyncio.Task[web.StreamResponse]] | None = None
        self._silences = silences
        silences.begin(self)

    def notify(self, message: bytes) -> None:
        """Pass an upstream's notification on. Callable until the call has returned; afterwards it does nothing."""
        progress, log = self._wants
        if not may_relay(message, progress=progress, log=log):
            return
        stream, _ = self.start()
        if not stream.push(message):
            self._dropped("call notification")

    def start(self) -> tuple[EventStream, asyncio.Task[web.StreamResponse]]:
        """Answer with an event stream, if that is not done already."""
        if self._started is None:
            self._silences.end(self)
            stream = EventStream(_QUEUE_BYTES)
            settings = self._settings
            response = web.StreamResponse(headers=HEADERS)
            times = {"keepalive": settings.keepalive, "write_timeout": settings.write_timeout}
            self._started = stream, asyncio.create_task(stream.run(self._request, response, **times))
        return self._started

    @property
    def started(self) -> bool:
        """Whether the answer has become an event stream."""
        return self._started is not None

    async def finish(self, answer: bytes) -> web.StreamResponse:
        """End the event stream with the answer."""
        stream, writer = self.start()
        stream.end(answer)
        return await writer

    async def close(self) -> None:
        """Nothing more comes from this call. If it was not finished, the client is gone: nothing more is written."""
        self._silences.end(self)
        self._wants = (False, False)
        if self._started is None:
            return
        _, writer = self._started
        writer.cancel()
        await asyncio.wait([writer])
        if not writer.cancelled():
            writer.exception()  # seen: `finish` has raised it, or nobody is there to tell
