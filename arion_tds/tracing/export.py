"""Spans to a collector, in batches over OTLP/HTTP: bounded, tried again, never in the way of what they tell of.

In: finished spans, from the event loop. Out: POSTs. Made by traced, owned by app. `running` owns the task that
sends.

A span that finds the queue full is dropped, and so is a batch whose tries are used up or that the collector will never
take; both are counted. While a collector does not answer, it is asked ever less often.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import io
import logging
import random
from collections.abc import AsyncIterator, Callable
from typing import Final

import aiohttp

from arion_tds.tracing import otlp
from arion_tds.tracing.settings import Settings
from arion_tds.tracing.spans import Span

_log = logging.getLogger("arion_tds.tracing")

OUTCOMES: Final = ("exported", "overflow", "failed")
"""What can become of a span: taken, dropped because too many waited, dropped because it could not be sent."""

_TRIES: Final = 5
"""Of one batch."""

_LAST: Final = 2.0
"""Seconds for what still waits when the gateway stops; `Settings.timeout` if that is less."""

_PASSING: Final = frozenset({408, 429, 502, 503, 504})
"""Statuses after which the same batch may be taken later (OTLP/HTTP, "Failures")."""

_DIRECT: Final = 1 << 20
"""Bytes of a body that aiohttp takes in one write; larger ones it wants as a stream."""

_MAX_ANSWER: Final = 64 << 10


class Exporter:
    """One collector. All state is the event loop's."""

    def __init__(
        self, settings: Settings, request: otlp.Request, count: Callable[[str, int], None], rng: random.Random
    ) -> None:
        """`count` hears of outcomes; `rng` is for jitter."""
        self._settings = settings
        self._request = request
        self._count = count
        self._rng = rng
        self._queue: collections.deque[Span] = collections.deque()
        self._batch: list[Span] = []  # out of the queue, outcome not known yet
        self._some = asyncio.Event()
        self._full = asyncio.Event()
        self._trouble = ""
        self._pause = settings.backoff

    def __len__(self) -> int:
        """Spans that wait."""
        return len(self._queue)

    def put(self, span: Span) -> None:
        """Send it with the next batch. Never waits, never fails."""
        waiting = len(self._queue)
        if waiting >= self._settings.max_queue:
            self._count("overflow", 1)
            return
        self._queue.append(span)
        if not waiting:
            self._some.set()
        if waiting + 1 == self._settings.max_batch:
            self._full.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send while the block runs; at its end what still waits is tried once, for two seconds at most."""
        settings = self._settings
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=settings.timeout),
            connector=aiohttp.TCPConnector(limit=1, ssl=True if settings.tls is None else settings.tls),
            headers={"user-agent": "arion-tds", **dict(settings.headers), "content-type": otlp.CONTENT_TYPE},
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
        while True:
            await self._gather()
            try:
                await self._deliver(http, self._take())
            except Exception:  # noqa: BLE001 - top of a task: spans are no reason to end a gateway
                _log.exception("tracing: a batch was not sent")
                self._account("failed")

    async def _gather(self) -> None:
        """Until a batch is full, or its first span has waited for the interval."""
        while not self._queue:
            self._some.clear()
            await self._some.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.batch_interval):
                while len(self._queue) < self._settings.max_batch:
                    self._full.clear()
                    await self._full.wait()

    def _take(self) -> list[Span]:
        queue = self._queue
        self._batch = [queue.popleft() for _ in range(min(len(queue), self._settings.max_batch))]
        return self._batch

    async def _deliver(self, http: aiohttp.ClientSession, batch: list[Span]) -> None:
        """Send it, again and again up to the limit. Pauses grow until something is taken."""
        settings = self._settings
        body = self._request.body(batch)
        for tried in range(1, _TRIES + 1):
            refused, final = await self._send(http, body)
            self._say(refused)
            if refused is None:
                self._pause = settings.backoff
                return
            lost = final or tried == _TRIES
            if lost:
                self._account("failed")
            await asyncio.sleep(self._pause * (1 + self._rng.random()) / 2)
            self._pause = min(2 * self._pause, settings.backoff_max)
            if lost:
                return

    async def _send(self, http: aiohttp.ClientSession, body: bytes) -> tuple[str | None, bool]:
        """Why it was not taken (None: it was, and is accounted for), and whether it never will be."""
        data = body if len(body) <= _DIRECT else io.BytesIO(body)
        try:
            async with http.post(self._settings.url, data=data, allow_redirects=False) as response:
                status = response.status
                if status // 100 == 2:
                    self._exported(await response.content.read(_MAX_ANSWER))
                    return None, False
        except TimeoutError:
            return f"no answer within {self._settings.timeout:g} s (tracing.timeout)", False
        except aiohttp.ClientError as error:
            return f"{type(error).__name__}: {error}", False
        return f"answered with HTTP status {status}", status not in _PASSING

    def _exported(self, answer: bytes) -> None:
        count, why = otlp.refused(answer)
        count = min(count, len(self._batch))
        if count:
            del self._batch[:count]  # which ones they are is not said
            self._count("failed", count)
            _log.warning("tracing: the collector does not want %d spans: %s", count, why[:200])
        self._account("exported")

    def _account(self, outcome: str) -> None:
        if self._batch:
            self._count(outcome, len(self._batch))
            self._batch = []

    async def _finish(self, http: aiohttp.ClientSession) -> None:
        """Send what still waits, once, until something is not taken. What was under way may arrive twice."""
        self._queue.extendleft(reversed(self._batch))
        self._batch = []
        refused: str | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(_LAST, self._settings.timeout)):
                while self._queue and refused is None:
                    refused, _ = await self._send(http, self._request.body(self._take()))
        left = len(self._queue) + len(self._batch)
        if left:
            _log.warning("tracing: %d spans were not sent before the gateway stopped", left)
            self._count("failed", left)
            self._queue.clear()
            self._batch = []

    def _say(self, refused: str | None) -> None:
        """Once per reason, and once when it is over."""
        if refused is not None and refused != self._trouble:
            _log.warning("tracing: the collector did not take a batch: %s", refused)
        elif refused is None and self._trouble:
            _log.info("tracing: the collector takes batches again")
        self._trouble = refused or ""
