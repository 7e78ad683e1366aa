"""Keeping the tools of MCP servers fresh after their first list.

In: servers that ingest accepted (follow) or refused because they could not be asked (pending). Out: commits to the
catalog when a list changed; a refused server is asked again and its tools appear without a new push.
Called by ingest; the tasks belong to `running`, which app enters.

A server is asked again when it announces `list_changed`, when its `cache_duration` has run out (with jitter), and,
after a failure, with backoff. A failed refresh keeps the tools and is said once per reason. Two scopes that name the
same URL share one announcement stream; a server that nobody names any more is let go.

Tasks end at any moment, because a definition was removed or replaced. A publication does not: it is a task of its own,
so that it is never torn in the middle.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final

from arion_tds.backends.mcp.pool import Upstreams
from arion_tds.catalog import Catalog
from arion_tds.model.change import PutServer
from arion_tds.model.delivery import Delivered
from arion_tds.model.derived import Derived
from arion_tds.model.result import CallFailure
from arion_tds.model.server import McpServer
from arion_tds.registry.snapshot import Owner

QUIET: Final = 0.5
"""Seconds between two lists of one server at least, however often it announces changes."""

OPEN: Final = 0.25
"""Seconds that a first list waits for the announcement stream. One that opens later counts as a change."""

_JITTER: Final = 0.1
_log = logging.getLogger("arion_tds.freshness")

Discover = Callable[[McpServer], Awaitable[Derived]]


@dataclasses.dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds between tries of a server that cannot be asked: doubling from `base` to `most`, with jitter."""

    base: float = 1.0
    most: float = 60.0

    def wait(self, failures: int, rng: random.Random) -> float:
        """Before the next try after so many failures in a row."""
        most = min(self.most, self.base * 2.0 ** min(failures - 1, 16))
        return most / 2 + rng.uniform(0, most / 2)


@dataclasses.dataclass(frozen=True, slots=True)
class Pending:
    """A server that is asked again until it can be: how often it could not, and the last reason."""

    url: str
    failures: int
    reason: str


class _Lookout:
    """One URL's announcements, for all who follow it or are listing it for the first time."""

    def __init__(self) -> None:
        self.hearers: set[asyncio.Event] = set()
        self.leave: Callable[[], None] = lambda: None

    def tell(self) -> None:
        for hearer in self.hearers:
            hearer.set()


class Freshness:
    """Every server in use, by (scope, namespace). Use from one event loop."""

    def __init__(
        self,
        upstreams: Upstreams,
        discover: Discover,
        taken: Callable[[Delivered, Derived], None],
        *,
        rng: random.Random,
        backoff: Backoff | None = None,
        recall: Callable[[McpServer], Awaitable[Derived | None]] | None = None,
    ) -> None:
        """`taken` hears of a refused update that was accepted after all, once its tools are served.

        `recall` gives what a server listed in an earlier life, which stands in for its first list.
        """
        self._upstreams = upstreams
        self._ask = discover
        self._taken = taken
        self._rng = rng
        self._backoff = backoff or Backoff()
        self._recall = recall or _nothing
        self._followed: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._pending: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._tries: dict[tuple[str, str], Pending] = {}
        self._delivered: set[tuple[str, str]] = set()
        self._lookouts: dict[str, _Lookout] = {}
        self._first: dict[McpServer, list[asyncio.Event]] = {}
        self._taking: dict[tuple[str, str], asyncio.Task[None] | None] = {}
        self._ending = False
        self._tasks = asyncio.TaskGroup()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while the block runs; every task ends with it."""
        async with self._tasks:
            try:
                yield
            finally:
                self._ending = True
                for task in (*self._followed.values(), *self._pending.values()):
                    task.cancel()

    async def discover(self, server: McpServer) -> Derived:
        """The server's first list. Announcements are heard from before it, so that none falls in between.

        After a list that came, `follow` or `refused` is to be called once.
        """
        changed = self._listen(server.url, asyncio.Event())
        taken = False
        try:
            derived = await self._recall(server)
            if derived is None:
                await self._upstreams.standing(server.url, OPEN)
                derived = await self._ask(server)
            taken = derived.problem is None
            if derived.remembered:
                changed.set()  # what is remembered is served, and the server asked as soon as it is followed
        finally:
            if taken:
                # Scopes may define the same server: each that asks has heard since its own question.
                self._first.setdefault(server, []).append(changed)
            else:
                self._ignore(server.url, changed)
        return derived

    def follow(self, catalog: Catalog, server: McpServer) -> None:
        """The server is served: keep its tools fresh. Replaces what stood under its namespace."""
        if catalog.current.retired:
            self.refused(server)
            return
        key = (catalog.scope, server.namespace)
        _end(self._followed.pop(key, None))
        changed = self._heard(server) or self._listen(server.url, asyncio.Event())
        task = self._followed[key] = self._owned(self._keep(catalog, server, changed))
        task.add_done_callback(lambda _: self._left(server.url, changed))

    def refused(self, server: McpServer) -> None:
        """Its list was not taken after all: another owner has the namespace."""
        changed = self._heard(server)
        if changed is not None:
            self._ignore(server.url, changed)
            self._let_go(server.url)

    def trying(self) -> dict[tuple[str, str], Pending]:
        """The servers that are being asked again, by (scope, namespace)."""
        return {key: self._tries[key] for key, task in self._pending.items() if key in self._tries and not task.done()}

    def pending(self, catalog: Catalog, server: McpServer, update: Delivered | None) -> None:
        """The server could not be asked: go on trying. What is served of it, and followed, stays."""
        if catalog.current.retired:
            self.dropped(server)
            return
        key = (catalog.scope, server.namespace)
        self.superseded(*key)
        self._tries[key] = Pending(server.url, 1, "")
        if update is not None:
            self._delivered.add(key)
        task = self._pending[key] = self._owned(self._try(catalog, server, update))
        task.add_done_callback(lambda _: self._let_go(server.url))

    def dropped(self, server: McpServer) -> None:
        """The server could not be asked, and is not to be: something newer has come."""
        self._let_go(server.url)

    def resent(self) -> None:
        """The control plane begins to send again every server that was refused: what it withdrew is not tried on."""
        for key in list(self._delivered):
            self.superseded(*key)

    def superseded(self, scope: str, namespace: str) -> None:
        """A newer update has come: stop trying the refused one. What is served is still followed."""
        self._delivered.discard((scope, namespace))
        self._tries.pop((scope, namespace), None)
        _end(self._pending.pop((scope, namespace), None))

    @property
    def refusals(self) -> int:
        """How many servers could not be asked and are asked again."""
        return sum(not task.done() for task in self._pending.values())

    def forget(self, scope: str, namespace: str) -> None:
        """The server was removed."""
        self.superseded(scope, namespace)
        self._taking.pop((scope, namespace), None)
        _end(self._followed.pop((scope, namespace), None))

    def forget_scope(self, scope: str) -> None:
        """The scope is served no longer."""
        for key in {*self._followed, *self._pending}:
            if key[0] == scope:
                self.forget(*key)

    async def _try(self, catalog: Catalog, server: McpServer, update: Delivered | None) -> None:
        failures = 1
        while True:
            await asyncio.sleep(self._backoff.wait(failures, self._rng))
            derived = await self.discover(server)
            if derived.problem is None:
                break
            failures += 1
            self._tries[catalog.scope, server.namespace] = Pending(server.url, failures, derived.problem)
        this = asyncio.current_task()
        await asyncio.shield(self._owned(self._take(catalog, server, update, derived, this)))

    async def _take(
        self,
        catalog: Catalog,
        server: McpServer,
        update: Delivered | None,
        derived: Derived,
        trying: asyncio.Task[None] | None,
    ) -> None:
        """Serve what a refused server lists at last, unless `trying` was superseded before its turn came."""
        key = (catalog.scope, server.namespace)
        put = PutServer(server, derived.tools)
        self._taking[key] = trying
        verdicts = await catalog.commit([put], when=lambda: self._pending.get(key) is trying)
        removed = self._taking.get(key) is not trying  # meanwhile: that commit is the next
        if not removed:
            del self._taking[key]
        problem = verdicts[0].problem if verdicts else None
        if not verdicts or problem is not None or removed:
            self.refused(server)
            if problem is not None:
                _log.warning("MCP server %s: still refused: %s", server.namespace, problem.why)
            return
        _log.info("MCP server %s can be asked now: %d tools", server.namespace, len(derived.tools))
        if self._pending.get(key) is trying:
            del self._pending[key]
            self._tries.pop(key, None)
            self._delivered.discard(key)
            if update is not None:
                self._taken(update, derived)
        if not self._ending:
            self.follow(catalog, server)

    async def _keep(self, catalog: Catalog, server: McpServer, changed: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        reason: str | None = None
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._wait(server, failures)):
                    await changed.wait()
            changed.clear()
            if not _serves(catalog, server):
                return
            begun = loop.time()
            derived = await self._ask(server)
            if derived.problem is None:
                put = [PutServer(server, derived.tools)]
                # A newer definition may have been committed while this list was fetched.
                commit = catalog.commit(put, when=lambda: _serves(catalog, server))
                await asyncio.shield(self._owned(commit))
                failures, reason = 0, None
            else:
                failures += 1
                if derived.problem != reason:
                    reason = derived.problem
                    _log.warning("MCP server %s: its former tools stay: %s", server.namespace, reason)
            await asyncio.sleep(max(0.0, QUIET - (loop.time() - begun)))

    def _owned(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[None]:
        """A task of ours. A fault of the gateway in it costs this server its freshness, not the gateway its life.

        What is to be done after it stands in callbacks: a task that is cancelled before it begins runs nothing.
        """
        task = self._tasks.create_task(_survive(work))
        task.add_done_callback(lambda _: work.close())
        return task

    def _left(self, url: str, changed: asyncio.Event) -> None:
        """Nobody keeps the server fresh for this hearer any more."""
        self._ignore(url, changed)
        self._let_go(url)

    def _wait(self, server: McpServer, failures: int) -> float | None:
        if failures:
            return self._backoff.wait(failures, self._rng)
        if server.cache_duration is None:
            return None
        return server.cache_duration * (1 + self._rng.uniform(-_JITTER, _JITTER))

    def _listen(self, url: str, changed: asyncio.Event) -> asyncio.Event:
        lookout = self._lookouts.get(url)
        if lookout is None:
            lookout = _Lookout()
            leave = self._upstreams.watch(url, lookout.tell)
            if isinstance(leave, CallFailure):
                return changed  # Too many servers: its calls say so, and cache_duration still works.
            lookout.leave = leave
            self._lookouts[url] = lookout
        lookout.hearers.add(changed)
        return changed

    def _heard(self, server: McpServer) -> asyncio.Event | None:
        """What the oldest list of the server that was not taken or refused yet has heard since it was asked for."""
        waiting = self._first.get(server)
        if waiting is None:
            return None
        changed = waiting.pop(0)
        if not waiting:
            del self._first[server]
        return changed

    def _let_go(self, url: str) -> None:
        """If nobody follows or asks the server any more, its connection is of no use."""
        if url not in self._lookouts and not self._ending:
            self._upstreams.release(url)

    def _ignore(self, url: str, changed: asyncio.Event) -> None:
        lookout = self._lookouts.get(url)
        if lookout is None:
            return
        lookout.hearers.discard(changed)
        if not lookout.hearers:
            lookout.leave()
            del self._lookouts[url]


async def _survive(work: Coroutine[Any, Any, object]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 - the top of a task
        _log.exception("keeping an MCP server fresh failed")


async def _nothing(_server: McpServer) -> Derived | None:
    return None


def _end(task: asyncio.Task[None] | None) -> None:
    # A pending task comes here itself when it is taken after all: it ends by returning.
    if task is not None and task is not asyncio.current_task():
        task.cancel()


def _serves(catalog: Catalog, server: McpServer) -> bool:
    held = catalog.current.snapshot.namespaces.get(server.namespace)
    return held is not None and held.owner is Owner.SERVER and held.definition == server
