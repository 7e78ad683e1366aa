"""One listener with all that is its own: content, door, front, sandboxes, socket. It can take another one's place.

In: a listener's config, its catalog, and what all listeners share. Out: a `Listener` that is first bound, then serves,
and ends by itself. Built by tenants, at start and whenever the config changes.

Each listener lives in a task of its own, so that it can be ended whenever and by whomever; what it takes over from one
that it replaces are the connections, or the listening sockets alone where TLS or the limits of connections change, and,
where the catalog stays, `Content`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from arion_tds import disclosure
from arion_tds.access_log import Requests
from arion_tds.audit import Audit
from arion_tds.backends.clusters import Clusters
from arion_tds.backends.mcp.pool import Upstreams
from arion_tds.calls import Backends, Calls
from arion_tds.catalog import Catalog
from arion_tds.config import sharing
from arion_tds.config.listener import ListenerConfig
from arion_tds.doors import Clocks, Door
from arion_tds.embedding import Embedder, Sources
from arion_tds.errors import BindError
from arion_tds.finding import Finder
from arion_tds.metrics import Metrics
from arion_tds.observing import FrontObserver
from arion_tds.rotation import Watched
from arion_tds.server import notes
from arion_tds.server.http import FrontSettings, HttpListener, McpFront
from arion_tds.server.sessions import Sessions
from arion_tds.server.settings import MethodsConfig
from arion_tds.server.spans import Spans
from arion_tds.workers import outsiders
from arion_tds.workers.siblings import Siblings

if TYPE_CHECKING:
    from arion_tds.codemode.engine import Engine
    from arion_tds.codemode.limits import Limits


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the listeners of a process have in common.

    `engine` gives what runs programs where a gateway is in code mode; `requests`, `audit` and `spans` the logs and
    spans of a listener, by name. `siblings`: other workers serve the same addresses.
    """

    clusters: Clusters
    upstreams: Upstreams
    metrics: Metrics
    sessions: Sessions
    clocks: Clocks
    sources: Sources
    engine: Callable[[], Callable[[Limits], Engine]]
    requests: Callable[[str], Requests | None]
    audit: Callable[[str], Audit | None]
    spans: Callable[[str], Spans | None]
    siblings: Siblings | None = None


class Content:
    """A catalog and what works on it behind the scenes: its token counts and vectors."""

    def __init__(self, catalog: Catalog, shared: Shared) -> None:
        """Nothing runs before `start`."""
        self.catalog = catalog
        search = catalog.gateway.search
        self.embedder: Embedder | None = None
        if search is not None and search.embeddings is not None:
            self.embedder = Embedder(
                catalog.published, search.embeddings, shared.clusters, shared.metrics, shared.sources
            )
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Begin the work; the group owns it."""
        self._tasks.append(tasks.create_task(self.catalog.tokens.run()))
        if self.embedder is not None:
            self._tasks.append(tasks.create_task(self.embedder.run()))

    def stop(self) -> None:
        """End the work."""
        for task in self._tasks:
            task.cancel()


class Listener:
    """Use: `bind`, then `serve`, then `end` and `ended`; or `end` at once.

    `bound` is the address once it is bound, `inherited` whether another listener has taken over its connections.
    """

    def __init__(self, settings: ListenerConfig, content: Content, shared: Shared) -> None:
        """ConfigError when something that the config names cannot be used. Opens nothing."""
        self.settings = settings
        self.content = content
        self.door = Door(settings, content.catalog.gateway.name, shared.metrics, shared.clocks)
        self.bound = ""
        self._shared = shared
        self.inherited = False
        self._front: McpFront | None = None
        self._sockets: HttpListener | None = None
        self._heir_of: Listener | None = None
        self._life: asyncio.Task[None] | None = None
        self._end = asyncio.Event()

    @property
    def endpoint(self) -> str:
        """Its URL, once it is bound."""
        return f"{'http' if self.settings.tls is None else 'https'}://{self.bound}/mcp"

    @property
    def catalog(self) -> Catalog:
        """What it serves."""
        return self.content.catalog

    @property
    def front(self) -> McpFront:
        """Its endpoint, once it is bound."""
        if self._front is None:
            raise RuntimeError(f"listener {self.settings.name!r} is not bound")
        return self._front

    @property
    def _http(self) -> HttpListener:
        if self._sockets is None:
            raise RuntimeError(f"listener {self.settings.name!r} is not bound")
        return self._sockets

    async def bind(self, tasks: asyncio.TaskGroup, before: Listener | None) -> None:
        """Take the address, or what the listener before has at the same address; BindError when that cannot be.

        Everything of it lives in `tasks` from here on, until it is ended.
        """
        bound: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._life = tasks.create_task(self._live(bound, before))
        await bound

    async def serve(self) -> None:
        """Take connections, or take over those of the listener before."""
        if self._heir_of is not None:
            self._heir_of.inherited = True
            self._heir_of = None
            self._http.replace(self.front)
        else:
            await self._http.serve()

    def sockets(self) -> list[socket.socket]:
        """Its listening sockets, for one that takes its place; the caller closes them."""
        return self._http.duplicate()

    def watched(self) -> Iterator[Watched]:
        """Files that may be rotated."""
        if self._sockets is not None:
            yield from self.door.watched(self._sockets.renew)

    def end(self) -> None:
        """Take no more connections, end streams, let calls finish until the drain timeout."""
        self._end.set()

    async def ended(self) -> None:
        """Until that is done."""
        if self._life is not None:
            await asyncio.wait([self._life])

    async def _live(self, bound: asyncio.Future[None], before: Listener | None) -> None:
        async with AsyncExitStack() as stack:
            try:
                await self._open(stack, before)
            except Exception as error:  # noqa: BLE001  (for whoever waits for it to be bound)
                bound.set_exception(error)
                return
            bound.set_result(None)
            await self._end.wait()

    async def _open(self, stack: AsyncExitStack, before: Listener | None) -> None:
        await stack.enter_async_context(self.door.open())
        host, port = sharing.split_address(self.settings.address)
        self._front = await self._make_front(stack, loopback=sharing.is_loopback(host))
        if before is not None and before.takes(self.settings):
            self._sockets, self._heir_of, self.bound = before._http, before, before.bound  # noqa: SLF001  (its heir)
        else:
            self._sockets = await self._own_sockets(host, port, before)
        stack.push_async_callback(self._leave)

    async def _own_sockets(self, host: str, port: int, before: Listener | None) -> HttpListener:
        limits = self.settings.limits.connections()
        shared = self.settings.share_address or self._shared.siblings is not None
        http = HttpListener(self.front, host, port, reuse_port=shared, tls=self.door.tls, limits=limits)
        same = before is not None and before.settings.address == self.settings.address
        try:
            if self._shared.siblings is not None and not same and not self.settings.share_address:
                await asyncio.to_thread(_ours_alone, host, port)
            address = await http.bind(before.sockets() if before is not None and same else ())
        except OSError as error:
            raise BindError.at(f"listener {self.settings.name!r}", host, port, error) from error
        self.bound = f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"
        return http

    def takes(self, settings: ListenerConfig) -> bool:
        """Whether a listener of these settings can go on with our connections."""
        own = self.settings
        same = own.address == settings.address and own.tls == settings.tls
        return same and own.limits.connections() == settings.limits.connections()

    async def _leave(self) -> None:
        if self._heir_of is not None:
            return  # It never served.
        if self.inherited:
            await self._http.leave(self.front, self.settings.drain_timeout)
        else:
            await self._http.stop(self.settings.drain_timeout)

    async def _make_front(self, stack: AsyncExitStack, *, loopback: bool) -> McpFront:
        settings, catalog, shared = self.settings, self.content.catalog, self._shared
        gateway = catalog.gateway
        backends = Backends(shared.clusters, shared.upstreams)
        audit = shared.audit(settings.name)
        calls = Calls(settings.name, gateway, backends, shared.metrics, time.perf_counter, audit=audit)
        finder = Finder(catalog, self.content.embedder)
        return McpFront(
            self._front_settings(loopback=loopback),
            catalog.published,
            calls,
            finder,
            shared.sessions,
            clock=time.perf_counter,
            random_bytes=os.urandom,
            config=await self._methods(stack, calls, finder),
            access=self.door.access,
            observer=FrontObserver(shared.metrics, settings.name),
            log=shared.requests(settings.name),
            tell=notes.nobody if shared.siblings is None else shared.siblings.teller(settings.name),
            spans=shared.spans(settings.name),
        )

    async def _methods(self, stack: AsyncExitStack, calls: Calls, finder: Finder) -> MethodsConfig | None:
        """What the front serves beside, or instead of, the catalog's tools."""
        catalog, metrics, name = self.content.catalog, self._shared.metrics, self.settings.name
        mode = catalog.gateway.code_mode
        if mode is not None:
            from arion_tds.executing import Executor, Parts  # with all of codemode: 0.5 MB that few need

            parts = Parts(catalog.published, finder, calls, self._shared.engine())
            executor = Executor(name, mode, parts, metrics, time.perf_counter)
            return await stack.enter_async_context(executor.running())
        searched = metrics.searches.labels(name, "search_tools").inc
        return disclosure.methods(catalog.gateway, catalog.published, finder, calls, searched)

    def _front_settings(self, *, loopback: bool) -> FrontSettings:
        settings, gateway = self.settings, self.content.catalog.gateway
        search = gateway.search
        return FrontSettings(
            name=gateway.name,
            version=gateway.version,
            instructions=settings.instructions,
            page_size=settings.page_size,
            page_bytes=settings.page_bytes,
            max_body_bytes=settings.max_body_bytes,
            ttl_ms=round(settings.ttl * 1000),
            keepalive=settings.keepalive,
            max_streams=settings.max_streams,
            max_search_results=(search and search.max_allowable_results) or 100,
            allowed_origins=settings.allowed_origins,
            allowed_hosts=settings.allowed_hosts,
            loopback=loopback,
            cache_scope=self.door.cache_scope,
            protected_resource=self.door.metadata,
            limits=settings.limits.settings(),
            body_timeout=settings.limits.body_timeout,
            write_timeout=settings.limits.write_timeout,
        )


def _ours_alone(host: str, port: int) -> None:
    """OSError when another gateway has the address: workers share theirs with each other alone."""
    if outsiders.listen(host, port):
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
