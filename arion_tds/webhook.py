"""CloudEvents to a webhook, in batches: bounded, tried again, and never in the way of what they tell of.

In: events, from the event loop. Out: POSTs of `application/cloudevents-batch+json` (CloudEvents 1.0, HTTP binding and
JSON batch format). Made by app; filled by events. `running` owns the one task that sends.

What cannot be sent goes: the oldest when too many wait, a batch when its tries are used up or the receiver says that it
will never take it. Both are counted. Events are numbered (`sequence`): the receiver sees where some are missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import logging
import random
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Final

import aiohttp
import msgspec

_log = logging.getLogger("arion_tds.webhook")

CONTENT_TYPE: Final = "application/cloudevents-batch+json; charset=utf-8"
OUTCOMES: Final = ("sent", "overflow", "failed")
"""What can become of an event: sent, dropped because too many waited, dropped because it could not be sent."""

_LAST: Final = 2.0
"""Seconds for what still waits when the gateway stops; `Settings.timeout` if that is less."""

_PASSING: Final = frozenset({408, 425, 429})
"""Statuses below 500 after which the same batch may be taken later."""

_encode = msgspec.json.Encoder().encode


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Seconds and counts. `retries` after the first try, with pauses from `backoff` doubling up to `backoff_max`."""

    url: str
    source: str
    headers: tuple[tuple[str, str], ...] = ()
    tls: ssl.SSLContext | None = None
    batch_interval: float = 3.0
    max_batch: int = 100
    max_batch_bytes: int = 1 << 20
    max_queue: int = 10_000
    timeout: float = 10.0
    retries: int = 8
    backoff: float = 0.5
    backoff_max: float = 30.0


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """`subject`: what it is about. `at`: seconds since the epoch. `data`: a JSON object, or what makes one in a thread.

    `key`: of events with the same one only the newest waits.
    """

    type: str
    subject: str
    at: float
    data: Mapping[str, object] | Callable[[], Mapping[str, object]]
    key: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class _Body:
    content: bytes
    events: int


class Webhook:
    """One receiver. All state is the event loop's."""

    def __init__(self, settings: Settings, count: Callable[[str, int], None], life: str, rng: random.Random) -> None:
        """`count` hears of outcomes. `life` is unique to this process: event ids begin with it."""
        self._settings = settings
        self._count = count
        self._life = life
        self._rng = rng
        self._queue: OrderedDict[object, Event] = OrderedDict()
        self._last = 0
        self._taken = 0  # out of the queue, outcome not known yet
        self._some = asyncio.Event()
        self._full = asyncio.Event()
        self._trouble = ""

    def __len__(self) -> int:
        """Events that wait."""
        return len(self._queue)

    def put(self, event: Event) -> None:
        """Send it with the next batch. Never waits, never fails."""
        queue, key = self._queue, event.key or object()
        queue.pop(key, None)
        queue[key] = event
        if len(queue) > self._settings.max_queue:
            queue.popitem(last=False)
            self._last += 1
            self._count("overflow", 1)
        self._some.set()
        if len(queue) >= self._settings.max_batch:
            self._full.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send while the block runs; at its end what still waits is tried once."""
        settings = self._settings
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=settings.timeout),
            connector=aiohttp.TCPConnector(limit=1, ssl=True if settings.tls is None else settings.tls),
            headers={"user-agent": "arion-tds", **dict(settings.headers), "content-type": CONTENT_TYPE},
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        ) as http:
            task = asyncio.get_running_loop().create_task(self._run(http))
            try:
                yield
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                await self._finish(http)

    async def _run(self, http: aiohttp.ClientSession) -> None:
        try:
            while True:
                await self._gather()
                bodies = self._bodies(self._take())
                while (body := await asyncio.to_thread(next, bodies, None)) is not None:
                    await self._deliver(http, body)
        except Exception:  # noqa: BLE001 - top of a task: events are no reason to end a gateway
            _log.exception("events are not sent any more")

    async def _gather(self) -> None:
        """Until a batch is full, or its first event has waited for the interval."""
        while not self._queue:
            self._some.clear()
            await self._some.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.batch_interval):
                while len(self._queue) < self._settings.max_batch:
                    self._full.clear()
                    await self._full.wait()

    def _take(self) -> list[tuple[int, Event]]:
        """The next batch, numbered."""
        queue = self._queue
        count, first = min(len(queue), self._settings.max_batch), self._last + 1
        self._last += count
        self._taken += count
        return [(number, queue.popitem(last=False)[1]) for number in range(first, first + count)]

    def _bodies(self, batch: Sequence[tuple[int, Event]]) -> Iterator[_Body]:
        """The batch as one body, or as several where it would be too large; a larger event goes alone."""
        parts: list[bytes] = []
        size = 2
        for number, event in batch:
            part = self._written(number, event)
            if parts and size + len(part) > self._settings.max_batch_bytes:
                yield _Body(b"[" + b",".join(parts) + b"]", len(parts))
                parts, size = [], 2
            parts.append(part)
            size += len(part) + 1
        yield _Body(b"[" + b",".join(parts) + b"]", len(parts))

    def _written(self, number: int, event: Event) -> bytes:
        data = event.data
        return _encode(
            {
                "specversion": "1.0",
                "id": f"{self._life}-{number}",
                "source": self._settings.source,
                "type": event.type,
                "subject": event.subject,
                "time": rfc3339(event.at),
                "sequence": str(number),
                "datacontenttype": "application/json",
                "data": data() if callable(data) else data,
            }
        )

    async def _deliver(self, http: aiohttp.ClientSession, body: _Body) -> None:
        """Send it, again and again up to the limit."""
        settings = self._settings
        pause = settings.backoff
        sent = False
        try:
            for tried in range(settings.retries + 1):
                if tried:
                    await asyncio.sleep(pause * (1 + self._rng.random()) / 2)
                    pause = min(2 * pause, settings.backoff_max)
                refused, final = await self._send(http, body)
                sent = refused is None
                self._say(refused)
                if sent or final:
                    return
        finally:  # also when the gateway stops in the midst of it
            self._account(body, sent=sent)

    async def _send(self, http: aiohttp.ClientSession, body: _Body) -> tuple[str | None, bool]:
        """Why it was not taken (None: it was), and whether it never will be."""
        try:
            async with http.post(self._settings.url, data=body.content, allow_redirects=False) as response:
                status = response.status
        except TimeoutError:
            return f"no answer within {self._settings.timeout:g} s (events.timeout)", False
        except aiohttp.ClientError as error:
            return f"{type(error).__name__}: {error}", False
        if status // 100 == 2:
            return None, False
        return f"answered with HTTP status {status}", status < 500 and status not in _PASSING

    async def _finish(self, http: aiohttp.ClientSession) -> None:
        """Send what still waits, once, until something is not taken."""
        refused: str | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(_LAST, self._settings.timeout)):
                while self._queue and refused is None:
                    bodies = self._bodies(self._take())
                    while (body := await asyncio.to_thread(next, bodies, None)) is not None:
                        refused, _ = await self._send(http, body)
                        self._account(body, sent=refused is None)
        left = len(self._queue) + self._taken
        if left:
            self._count("failed", left)
            _log.warning("%d events were not sent before the gateway stopped", left)
            self._queue.clear()

    def _account(self, body: _Body, *, sent: bool) -> None:
        self._taken -= body.events
        self._count("sent" if sent else "failed", body.events)

    def _say(self, refused: str | None) -> None:
        """Once per reason, and once when it is over."""
        if refused is not None and refused != self._trouble:
            _log.warning("events: the webhook did not take a batch: %s", refused)
        elif refused is None and self._trouble:
            _log.info("events: the webhook takes batches again")
        self._trouble = refused or ""


def rfc3339(at: float) -> str:
    """Seconds since the epoch as CloudEvents wants them."""
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
