"""Tools and queries by meaning: vectors from the catalog or from a remote endpoint, fetched behind the scenes.

In: publications of one scope, queries. Out: the tools nearest to a query, or why that cannot be said right now. Built
and run by app for a gateway with `search.embeddings`; asked by finding.

A tool is found by its words at once; its vector comes when it comes. Nothing waits for an endpoint but a search, for a
short time, and after a failure no search does for a while: it is answered by words. No update is refused for a vector.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import itertools
import logging
import random
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from arion_tds.backends.clusters import Clusters
from arion_tds.metrics import Metrics
from arion_tds.model.context import CallContext, Limits
from arion_tds.model.gateway import Embeddings
from arion_tds.model.http import HttpRequest
from arion_tds.model.policy import HttpPolicy
from arion_tds.model.result import CallFailure
from arion_tds.search import remote
from arion_tds.server import trace
from arion_tds.view import Entry, Published, View

if TYPE_CHECKING:
    from arion_tds.search.vectors import Vector

_log = logging.getLogger("arion_tds.embedding")

MAX_NUMBERS: Final = 200_000
"""Numbers of one batch's answer: reading them holds the event loop for about 15 ms."""

CACHED_QUERIES: Final = 512
"""Vectors of queries that are kept; the least recently used goes first."""

Near = Callable[[int, Callable[[str], bool] | None, Iterable[str] | None], list[tuple[str, float]]]
"""`Vectors.nearest` for one query: limit, which keys are allowed, among which keys to look (None: all)."""

_HEADERS: Final = (("content-type", "application/json"),)
_NOT_FOR_REPEATING: Final = frozenset((400, 413, 422))
"""What an endpoint says about a request that it will never take."""


@dataclasses.dataclass(frozen=True, slots=True)
class Waits:
    """Seconds: of a search for its query's vector, without asking after a failure, between tries (doubled each)."""

    query: float = 1.0
    rest: float = 5.0
    backoff: float = 0.5
    backoff_max: float = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """`code` for metrics and answers, `why` for the log. `final`: the same request will never be answered."""

    code: str
    why: str
    final: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """What differs between a process and a test: seconds that never go back, randomness, and how long to wait."""

    clock: Callable[[], float]
    rng: random.Random
    random_bytes: Callable[[int], bytes]
    waits: Waits = dataclasses.field(default_factory=Waits)


class Embedder:
    """The vectors of one scope. All state is the event loop's; `run` owns the fetching."""

    def __init__(
        self, published: Published, settings: Embeddings, clusters: Clusters, metrics: Metrics, sources: Sources
    ) -> None:
        """Follows `published` from now on; nothing is fetched before `run`."""
        self._settings = settings
        self._clusters = clusters
        self._sources = sources
        self._scope = published.scope
        self._counter = metrics.embeddings
        self._gauge = metrics.vectors.labels(published.scope)
        from arion_tds.search import vectors  # here, not above: with it comes numpy

        self.vectors = vectors.Vectors(settings.dimensions)
        self._unit = vectors.unit
        self._waiting: dict[str, str] = {}  # qualified name: text; never more than the catalog holds
        self._changed = asyncio.Event()
        self._queries: OrderedDict[str, Vector] = OrderedDict()
        self._most = max(1, min(settings.max_batch_size, MAX_NUMBERS // settings.dimensions))
        self._says_length: bool | None = None  # whether requests name the dimensions; None: not known to work yet
        self._works = False  # whether the endpoint has ever answered
        self._rests_until = float("-inf")
        self._last: Failure | None = None
        self._given_up = 0
        published.listen(self._published_anew)

    def status(self) -> dict[str, object]:
        """`vectors`, `pending` and `given_up` are counts of tools; `last_failure` is None once a request succeeded."""
        return {
            "vectors": len(self.vectors),
            "pending": len(self._waiting),
            "given_up": self._given_up,
            "last_failure": None if self._last is None else self._last.why,
        }

    def measure(self) -> None:
        """Bring the gauge up to date."""
        self._gauge.set(len(self.vectors))

    async def near(self, asked: str) -> Near | str | None:
        """What gives the tools nearest to the query; why none can be told; or None where no tool has a vector."""
        if not len(self.vectors):
            pending = "pending" if self._waiting else None
            return pending if self._last is None else self._last.code
        vector = await self._of_query(remote.query(asked))
        return vector.code if isinstance(vector, Failure) else functools.partial(self.vectors.nearest, vector)

    async def _of_query(self, text: str) -> Vector | Failure:
        known = self._queries.get(text)
        if known is not None:
            self._queries.move_to_end(text)
            return known
        if self._last is not None and self._sources.clock() < self._rests_until:
            self._count("query", "resting")
            return self._last
        waits = min(self._sources.waits.query, self._settings.timeout)
        found = await self._ask("query", [text], waits)
        if isinstance(found, Failure):
            return found
        self._queries[text] = found[0]
        if len(self._queries) > CACHED_QUERIES:
            self._queries.popitem(last=False)
        return found[0]

    async def run(self) -> None:
        """Give every tool its vector, until cancelled."""
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                await self._fetch()
        except Exception:  # noqa: BLE001 - top of a task: vectors are no reason to end a gateway
            _log.exception("vectors of tools are not kept up any more: search goes by words where they are missing")

    async def _fetch(self) -> None:
        """Fetch what waits, in batches, however long the endpoint takes to answer."""
        size, waits = self._most, self._sources.waits
        delay = waits.backoff
        while self._waiting:
            keys = list(itertools.islice(self._waiting, size))
            texts = [self._waiting[key] for key in keys]
            found = await self._ask("tools", texts, self._settings.timeout)
            if not isinstance(found, Failure):
                for key, text, vector in zip(keys, texts, found, strict=True):
                    if self._waiting.get(key) is text:  # else it is gone, or another by now
                        del self._waiting[key]
                        self.vectors.add(key, vector)
                size, delay = min(2 * size, self._most), waits.backoff
            elif found.final and size > 1 and len(keys) > 1:
                size = len(keys) // 2  # one of them is at fault: find it
            elif found.final and self._works:
                self._give_up(keys[0], texts[0], found)
            else:
                await asyncio.sleep(delay * (1 + self._sources.rng.random()) / 2)
                delay = min(2 * delay, waits.backoff_max)

    def _give_up(self, key: str, text: str, failure: Failure) -> None:
        self._last = None  # the text is at fault: the endpoint works, and searches need not spare it
        if self._waiting.get(key) is text:
            del self._waiting[key]
            self._given_up += 1
            _log.warning("%s has no vector and is found by its words: %s", key, failure.why)

    async def _ask(self, of: str, texts: list[str], timeout: float) -> list[Vector] | Failure:
        """Vectors of the texts, or what went wrong; either is counted and remembered."""
        found = await self._send(texts, timeout, length=self._says_length is not False)
        if isinstance(found, Failure) and found.final and self._says_length is None:
            # Many endpoints refuse `dimensions`: their models have one length. Which it is, the answer shows.
            second = await self._send(texts, timeout, length=False)
            if not isinstance(second, Failure):
                found, self._says_length = second, False
        elif not isinstance(found, Failure) and self._says_length is None:
            self._says_length = True
        if isinstance(found, Failure):
            if self._last is None or self._last.code != found.code:
                _log.warning("embeddings of %s: %s: search goes by words meanwhile", of, found.why)
            self._rests_until = self._sources.clock() + self._sources.waits.rest
            self._count(of, found.code)
            self._last = found
        else:
            self._last = None
            self._works = True
            self._count(of, "ok")
        return found

    def _count(self, of: str, outcome: str) -> None:
        self._counter.labels(self._scope, of, outcome).inc()

    async def _send(self, texts: list[str], timeout: float, *, length: bool) -> list[Vector] | Failure:
        settings = self._settings
        request = HttpRequest("POST", settings.path, _HEADERS, remote.body(settings, texts, dimensions=length))
        random_bytes = self._sources.random_bytes(trace.RANDOM_BYTES)
        context = CallContext(
            request_id=trace.request_id(None, random_bytes), traceparent=trace.traceparent(None, random_bytes)
        )
        limits = Limits(timeout, remote.most_bytes(settings, len(texts)))
        response = await self._clusters.send(settings.cluster, request, HttpPolicy(timeout=timeout), limits, context)
        if isinstance(response, CallFailure):
            return Failure(response.code.value, response.message)
        if response.status // 100 != 2:
            why = f"cluster {settings.cluster!r} answers {settings.path} with HTTP status {response.status}"
            return Failure("upstream_error", why, final=response.status in _NOT_FOR_REPEATING)
        found = remote.read(response.body, len(texts), settings.dimensions)
        return Failure("invalid_output", found) if isinstance(found, str) else found

    def _published_anew(self, old: View, new: View) -> None:
        for name in new.touched:
            before, after = old.tools.get(name), new.tools.get(name)
            if before is not None and (after is None or after.tool.qualified != before.tool.qualified):
                self._forget(before)
            if after is not None:
                self._take(before, after)
        if self._waiting:
            self._changed.set()

    def _forget(self, entry: Entry) -> None:
        self.vectors.remove(entry.tool.qualified)
        self._waiting.pop(entry.tool.qualified, None)

    def _take(self, before: Entry | None, after: Entry) -> None:
        """Use the vector that came with the tool, keep the one of the same text, or have one fetched."""
        tool, key = after.tool, after.tool.qualified
        if tool.embedding is not None:
            vector = self._unit(tool.embedding, self._settings.dimensions)
            if not isinstance(vector, str):
                self._waiting.pop(key, None)
                self.vectors.add(key, vector)
                return
            _log.warning("%s comes with %s: another is fetched", key, vector)
        text = remote.text(tool)
        same = before is not None and before.tool.embedding is None and remote.text(before.tool) == text
        if same and (key in self.vectors or key in self._waiting):
            return
        self.vectors.remove(key)  # the old one says what the tool was
        self._waiting[key] = text
