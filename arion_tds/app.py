"""The composition root: builds every part from the config, owns every task, ends them in order.

In: a judged `Config`. Out: a running gateway until it is told to stop. Called by the cli, and by tests that want a
whole gateway inside their process.

Order of start: admin (probes see "not ready"), static content, listeners, control plane. Order of stop: control plane,
listeners (streams told to end, calls finished up to a deadline), upstreams, admin.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import logging
import os
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack

from arion_tds import deriving, disclosure, embedding, pem
from arion_tds.admin import dump
from arion_tds.admin.http import AdminListener
from arion_tds.admin.panel import Panel
from arion_tds.backends.clusters import Clusters
from arion_tds.backends.mcp.connection import STATES
from arion_tds.backends.mcp.pool import Upstreams
from arion_tds.backends.mcp.stdio import StdioServer
from arion_tds.cache.keeping import Cache, Origin
from arion_tds.calls import Backends, Calls
from arion_tds.catalog import Catalog
from arion_tds.codemode import deno
from arion_tds.coldstart import ColdStart
from arion_tds.config import judging, values
from arion_tds.config.file import ControlPlaneConfig, ListenerConfig
from arion_tds.config.judging import Config
from arion_tds.doors import Clocks, Door
from arion_tds.embedding import Embedder
from arion_tds.errors import BindError, ConfigError
from arion_tds.executing import Executor, Parts
from arion_tds.expansion import Expander
from arion_tds.finding import Finder
from arion_tds.freshness import Freshness
from arion_tds.history import History
from arion_tds.ingest import Ingest
from arion_tds.metrics import Metrics
from arion_tds.model.delivery import Delivered, Kind
from arion_tds.model.derived import Derived
from arion_tds.model.gateway import Gateway as GatewaySpec
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.problems import Problems
from arion_tds.rotation import Rotation
from arion_tds.server.http import FrontSettings, HttpListener, McpFront
from arion_tds.server.sessions import Sessions
from arion_tds.xds.stream import AdsClient, AdsSettings

_log = logging.getLogger("arion_tds.app")


@contextlib.asynccontextmanager
async def running(config: Config) -> AsyncIterator[Gateway]:
    """A whole gateway, serving while the block runs. ConfigError or BindError when it cannot start."""
    async with AsyncExitStack() as stack:
        gateway = Gateway(config)
        await gateway.start(stack)
        yield gateway


class Gateway:
    """The parts of one running process. `bound` gives the address of each listener by name (port 0: any)."""

    def __init__(self, config: Config) -> None:
        """Build everything; nothing listens or connects yet."""
        file = config.file
        self._config = config
        self.metrics = Metrics()
        self.problems = Problems(time.time)  # noqa: TID251 - the root hands the clocks out
        self.history = History(time.time)  # noqa: TID251
        try:
            self.clusters = Clusters({item.name: item.settings() for item in file.clusters})
            self._sessions = _sessions(config)
            self.upstreams = Upstreams(file.mcp_servers.settings(_processes(config)), clock=time.time)  # noqa: TID251
        except (ValueError, OSError, KeyError) as error:
            raise ConfigError([str(error)]) from error
        self.catalogs = [
            Catalog(made, listener.tool_names) for made, listener in zip(_static(config), file.listeners, strict=True)
        ]
        codes = any(catalog.gateway.code_mode is not None for catalog in self.catalogs)
        self._engine = deno.engine() if codes else None
        self._by_scope = {found.scope: found for found in self.catalogs if found.gateway.scope is not None}
        self.expander = Expander(file.openapi.settings(), file.openapi.output, file.openapi.workers)
        rng = random.Random()  # noqa: S311 - jitter, not secrets
        self.cache = self._cache()
        self.coldstart = None if self.cache is None else ColdStart(self.cache, time.monotonic)
        recall = None if self.coldstart is None else self.coldstart.recall
        self.freshness = Freshness(self.upstreams, self._discover, self._taken, rng=rng, recall=recall)
        self.ingest = Ingest(
            self._by_scope,
            judging.delivered_rules(file.data_sources),
            self._expand,
            self.freshness,
            self.problems,
            self.history,
            self.metrics,
            self.cache,
        )
        sources = embedding.Sources(time.monotonic, rng, os.urandom)
        self.embedders = {
            listener.name: Embedder(catalog.published, search.embeddings, self.clusters, self.metrics, sources)
            for listener, catalog in zip(file.listeners, self.catalogs, strict=True)
            if (search := catalog.gateway.search) is not None and search.embeddings is not None
        }
        clocks = Clocks(time.time, time.monotonic)  # noqa: TID251
        self.doors = {
            listener.name: Door(listener, catalog.gateway.name, self.metrics, clocks)
            for listener, catalog in zip(file.listeners, self.catalogs, strict=True)
        }
        self._admin_token = file.admin.secret()
        self.rotation = Rotation(file.rotation.interval)
        self.rotation.add(pem.clusters(self.clusters))
        self.rotation.add(pem.upstreams(self.upstreams))
        self.panel = Panel(self, time.time)  # noqa: TID251
        self.ads = self._ads_client(file.control_plane) if file.control_plane and self._by_scope else None
        self.fronts: dict[str, McpFront] = {}
        self.bound: dict[str, str] = {}
        self.admin = ""
        self._loaded = False

    async def start(self, stack: AsyncExitStack) -> None:
        """Start everything; `stack` stops it in the reverse order."""
        stack.push_async_callback(self.clusters.close)
        stack.push_async_callback(self.upstreams.close)
        stack.push_async_callback(self.expander.close)
        await stack.enter_async_context(self.freshness.running())
        await self._start_admin(stack)
        self.panel.follow()
        if self.cache is not None and self.coldstart is not None:
            await self.coldstart.read(self._by_scope)
            stack.push_async_callback(self.cache.close)
            await stack.enter_async_context(_task(self.cache.run()))
        for embedder in self.embedders.values():
            await stack.enter_async_context(_task(embedder.run()))
        for catalog in self.catalogs:
            await stack.enter_async_context(_task(catalog.tokens.run()))
            refused = await self.ingest.load(catalog)
            if refused:
                raise ConfigError([str(problem) for problem in refused])
        if self.coldstart is not None:
            await stack.enter_async_context(_task(self.coldstart.run(self.ads, self.ingest)))
            await self.coldstart.restored.wait()
        for listener, catalog in zip(self._config.file.listeners, self.catalogs, strict=True):
            await self._start_listener(listener, catalog, stack)
        if self.ads is not None:
            await stack.enter_async_context(_task(self.ads.run()))
        await stack.enter_async_context(_task(self.rotation.run()))
        if self.cache is not None:
            stack.callback(self.cache.confirm)
        self._loaded = True
        for warning in self._config.warnings:
            _log.warning("%s", warning)

    async def _start_admin(self, stack: AsyncExitStack) -> None:
        host, port = values.split_address(self._config.file.admin.address)
        admin = AdminListener(host, port, self.panel, token=self._admin_token)
        stack.push_async_callback(admin.close)
        try:
            await admin.start()
        except OSError as error:
            raise BindError(f"admin: cannot listen on {host}:{port}: {error.strerror or error}") from error
        self.admin = admin.bound
        _log.info("admin on http://%s", admin.bound)

    async def _start_listener(self, settings: ListenerConfig, catalog: Catalog, stack: AsyncExitStack) -> None:
        host, port = values.split_address(settings.address)
        gateway = catalog.gateway
        search = gateway.search
        door = self.doors[settings.name]
        await stack.enter_async_context(door.open())
        calls = Calls(settings.name, gateway, Backends(self.clusters, self.upstreams), self.metrics, time.perf_counter)
        finder = Finder(catalog, self.embedders.get(settings.name))
        searched = self.metrics.searches.labels(settings.name, "search_tools").inc
        served = disclosure.methods(gateway, catalog.published, finder, calls, searched)
        if self._engine is not None and gateway.code_mode is not None:
            parts = Parts(catalog.published, finder, calls, self._engine)
            executor = Executor(settings.name, gateway.code_mode, parts, self.metrics, time.perf_counter)
            served = await stack.enter_async_context(executor.running())
        front = McpFront(
            FrontSettings(
                name=gateway.name,
                version=gateway.version,
                instructions=settings.instructions,
                page_size=settings.page_size,
                max_body_bytes=settings.max_body_bytes,
                ttl_ms=round(settings.ttl * 1000),
                keepalive=settings.keepalive,
                max_streams=settings.max_streams,
                max_search_results=(search and search.max_allowable_results) or 100,
                allowed_origins=settings.allowed_origins,
                allowed_hosts=settings.allowed_hosts,
                loopback=values.is_loopback(host),
                cache_scope=door.cache_scope,
                protected_resource=door.metadata,
                limits=settings.limits.settings(),
                body_timeout=settings.limits.body_timeout,
                write_timeout=settings.limits.write_timeout,
            ),
            catalog.published,
            calls,
            finder,
            self._sessions,
            clock=time.perf_counter,
            random_bytes=os.urandom,
            config=served,
            access=door.access,
            observer=_FrontObserver(self.metrics, settings.name),
        )
        listener = HttpListener(front, host, port, tls=door.tls, limits=settings.limits.connections())
        try:
            bound = await listener.start()
        except OSError as error:
            why = error.strerror or str(error)
            raise BindError(f"listener {settings.name!r}: cannot listen on {host}:{port}: {why}") from error
        stack.push_async_callback(listener.stop, settings.drain_timeout)
        self.rotation.add(lambda: door.watched(listener.renew))
        self.fronts[settings.name] = front
        self.bound[settings.name] = f"[{bound[0]}]:{bound[1]}" if ":" in bound[0] else f"{bound[0]}:{bound[1]}"
        _log.info("listener %s serves %s on http://%s/mcp", settings.name, catalog.scope, self.bound[settings.name])

    def _ads_client(self, settings: ControlPlaneConfig) -> AdsClient:
        node = self._config.file.node
        return AdsClient(
            AdsSettings(
                address=settings.address,
                node_id=node.id,
                node_cluster=node.cluster,
                subscription=settings.subscription,
                initial_fetch_timeout=settings.initial_fetch_timeout,
                connect_timeout=settings.connect_timeout,
                keepalive_time=settings.keepalive_time,
                keepalive_timeout=settings.keepalive_timeout,
                max_message_bytes=settings.max_message_bytes,
                backoff_base=settings.backoff_base,
                backoff_max=settings.backoff_max,
                max_unanswered=settings.max_unanswered,
                server_name=None if settings.tls is None else settings.tls.server_name,
                credentials=pem.PlaneCredentials(settings).wanted,
            ),
            self._by_scope,
            self.ingest.deliver,
            clock=time.monotonic,
            rng=random.Random(),  # noqa: S311 - jitter, not secrets
            observer=self.panel.plane,
        )

    def _cache(self) -> Cache | None:
        settings, plane = self._config.file.cache, self._config.file.control_plane
        if settings is None:
            return None
        origin = Origin("" if plane is None else plane.address, self._config.file.node.cluster)
        return Cache(
            settings.directory,
            settings.max_bytes,
            origin,
            clock=time.time,  # noqa: TID251
            connected=lambda: self.ads is not None and self.ads.status().connected,
        )

    async def _expand(self, source: OpenApiSource) -> Derived:
        return await deriving.expand(self.expander, source)

    async def _discover(self, server: McpServer) -> Derived:
        listed = None if self.cache is None else self.cache.listed
        timeout = self._config.file.mcp_servers.discovery_timeout
        derived = await deriving.discover(self.upstreams, server, timeout, listed)
        self.metrics.mcp_lists.labels("ok" if derived.problem is None else "failed").inc()
        return derived

    def _taken(self, update: Delivered, derived: Derived) -> None:
        self.ingest.taken(update, derived)
        if self.ads is not None:
            self.ads.claim(Kind.SERVER, update.id, update.version)

    def ready(self) -> Mapping[str, object]:
        """`ready`: config loaded, and the initial fetch done or timed out. Also how old the content is."""
        fetched = self.ads is None or self.ads.is_ready or (self.coldstart is not None and self.coldstart.is_serving)
        state: dict[str, object] = {"ready": self._loaded and fetched}
        if self.coldstart is not None:
            state["cache"] = self.coldstart.state()
        if self.ads is not None and self._config.file.control_plane is not None:
            status = self.ads.status()
            state["control_plane"] = dump.control_plane(
                self._config.file.control_plane.address, status, time.monotonic()
            )
        return state

    def configured(self) -> Mapping[str, object]:
        """What /config_dump says beside the state: workers, and the config. Secrets are only ever references."""
        return {
            "embeddings": {name: embedder.status() for name, embedder in self.embedders.items()},
            "openapi_workers": self.expander.status(),
            "config": self._config.file.model_dump(mode="json"),
        }

    @property
    def scopes(self) -> Mapping[str, str]:
        """The scope that each listener serves."""
        listeners = self._config.file.listeners
        return {one.name: catalog.scope for one, catalog in zip(listeners, self.catalogs, strict=True)}

    def plane_address(self) -> str:
        """Where the control plane is."""
        plane = self._config.file.control_plane
        return "" if plane is None else plane.address

    def measure(self) -> None:
        """Bring the gauges up to date."""
        self.metrics.problems.set(len(self.problems))
        for catalog in self.catalogs:
            self.metrics.tools.labels(catalog.scope).set(len(catalog.published.view.tools))
            self.metrics.revision.labels(catalog.scope).set(catalog.published.view.revision)
            self.metrics.catalog_tokens.labels(catalog.scope).set(sum(catalog.tokens.by_namespace().values()))
        for door in self.doors.values():
            door.measure()
        for embedder in self.embedders.values():
            embedder.measure()
        servers = collections.Counter(one.state for one in self.upstreams.status())
        for how in STATES:
            self.metrics.mcp_servers.labels(how).set(servers[how])
        self.metrics.mcp_refused.set(self.freshness.refusals)
        if self.coldstart is not None:
            age = self.coldstart.age
            self.metrics.cache_age.set(-1 if age is None else age)
            self.metrics.cache_left_out.set(self.coldstart.left_out)
        if self.ads is not None:
            status = self.ads.status()
            self.metrics.xds_connected.set(status.connected)
            self.metrics.xds_attempts.set(status.attempts)
            at = status.last_response_at
            self.metrics.xds_age.set(-1 if at is None else time.monotonic() - at)
            for kind, state in status.types.items():
                self.metrics.xds_responses.labels(kind.short, "ack").set(state.acks)
                self.metrics.xds_responses.labels(kind.short, "nack").set(state.nacks)


class _FrontObserver:
    """What one front did, as metrics."""

    def __init__(self, metrics: Metrics, listener: str) -> None:
        self._requests = metrics.requests
        self._listener = listener
        self._streams = metrics.streams.labels(listener)
        self._dropped = metrics.dropped
        self._refused = metrics.refused

    def answered(self, method: str, status: int, seconds: float, *, modern: bool) -> None:
        """Count one answer."""
        del seconds
        era = "modern" if modern else "handshake"
        self._requests.labels(self._listener, method, str(status), era).inc()

    def streams(self, count: int) -> None:
        """So many are open now."""
        self._streams.set(count)

    def dropped(self, what: str) -> None:
        """Something was thrown away because a client reads too slowly."""
        self._dropped.labels(self._listener, what).inc()

    def refused(self, what: str) -> None:
        """Somebody was turned away."""
        self._refused.labels(self._listener, what).inc()


def _processes(config: Config) -> dict[str, StdioServer]:
    return {
        one.url(listener.name): one.settings() for listener in config.file.listeners for one in listener.stdio_servers
    }


def _static(config: Config) -> list[GatewaySpec]:
    """The gateways with their listeners' own static servers beside those of the McpGateway message."""
    return [
        dataclasses.replace(
            made, servers=(*made.servers, *(one.server(listener.name) for one in listener.stdio_servers))
        )
        for made, listener in zip(config.gateways, config.file.listeners, strict=True)
    ]


def _sessions(config: Config) -> Sessions:
    settings = config.file.sessions
    key = settings.key.read() if settings.key is not None else os.urandom(32)
    return Sessions(key, clock=time.time, random_bytes=os.urandom, lifetime=settings.lifetime)  # noqa: TID251


@contextlib.asynccontextmanager
async def _task(work: asyncio._CoroutineLike[object]) -> AsyncIterator[None]:
    """Run `work` beside the block; a failure of it ends the block, the end of the block ends it."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        try:
            yield
        finally:
            task.cancel()
