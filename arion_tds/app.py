"""The composition root: builds every part from the config, owns every task, ends them in order.

In: a judged `Config`. Out: a running gateway until it is told to stop. Called by the cli, and by tests that want a
whole gateway inside their process.

Order of start: admin (probes see "not ready"), static content, what was kept on disk, listeners, control plane. Order
of stop: control plane, listeners (streams told to end, calls finished up to a deadline), upstreams, admin.

While it runs, `apply` takes another config into use: whole, or not at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from arion_tds import deriving, embedding, fitting, gauges, log, observing, pem, telling, traced
from arion_tds.access_log import AccessLog, Requests
from arion_tds.admin import dump
from arion_tds.admin.http import AdminListener
from arion_tds.admin.panel import Panel
from arion_tds.audit import Audit
from arion_tds.backends.clusters import Clusters
from arion_tds.backends.mcp.pool import Upstreams
from arion_tds.catalog import Catalog
from arion_tds.codemode import deno
from arion_tds.codemode.engine import Engine
from arion_tds.codemode.limits import Limits
from arion_tds.coldstart import ColdStart
from arion_tds.config import judging, plane, values
from arion_tds.config.file import ControlPlaneConfig
from arion_tds.config.judging import Config
from arion_tds.doors import Clocks, Door
from arion_tds.embedding import Embedder
from arion_tds.errors import BindError, ConfigError
from arion_tds.expansion import Expander
from arion_tds.freshness import Freshness
from arion_tds.history import History
from arion_tds.ingest import Ingest
from arion_tds.listening import Shared
from arion_tds.metrics import Metrics
from arion_tds.model.cluster import Cluster
from arion_tds.model.delivery import Delivered, Delivery, DeliveryVerdict, Kind, ResourceId
from arion_tds.model.derived import Derived
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.problems import Problems
from arion_tds.reloading import Reloader
from arion_tds.rotation import Rotation
from arion_tds.server.http import McpFront
from arion_tds.server.spans import Spans
from arion_tds.tenants import Tenants
from arion_tds.xds.stream import AdsClient

if TYPE_CHECKING:
    from arion_tds.cds import PushedClusters

_log = logging.getLogger("arion_tds.app")


@contextlib.asynccontextmanager
async def running(config: Config, path: str | None = None) -> AsyncIterator[Gateway]:
    """A whole gateway, serving while the block runs. ConfigError or BindError when it cannot start.

    `path`: the config's file, for reloads.
    """
    refused: ConfigError | BindError | None = None
    async with AsyncExitStack() as stack:
        gateway = Gateway(config, path)
        try:
            await gateway.start(stack)
        except (ConfigError, BindError) as error:
            refused = error  # kept until all is stopped: on its way through task groups it would be wrapped by each
        else:
            yield gateway
    if refused is not None:
        raise refused


class Gateway:
    """The parts of one running process. `bound` gives the address of each listener by name (port 0: any)."""

    def __init__(self, config: Config, path: str | None = None) -> None:
        """Build everything; nothing listens or connects yet."""
        file = config.file
        self._config = config
        self.metrics = Metrics(file.metrics.tools)
        self._measures = observing.Measures(self.metrics)
        self._access_log: AccessLog | None = None
        self._audit_log: AccessLog | None = None
        self.problems = Problems(time.time)  # noqa: TID251 - the root hands the clocks out
        self.history = History(time.time)  # noqa: TID251
        observing.rejections(self.history, self.metrics)
        upstreams, clusters, self._sessions = fitting.settings(config)
        try:
            self.clusters = Clusters(clusters)
        except ValueError as error:
            raise ConfigError([str(error)]) from error
        self.upstreams = Upstreams(upstreams, clock=time.time)  # noqa: TID251
        self.telling = telling.of(file, self.metrics, time.time)  # noqa: TID251
        if self.telling is not None:
            telling.connect(self.telling, self.history, self.clusters, self.upstreams)
        self.traced = traced.of(file, self.metrics)
        self.expander = Expander(file.openapi.settings(), file.openapi.output, file.openapi.workers)
        rng = random.Random()  # noqa: S311 - jitter, not secrets
        self.cache = fitting.cache(file, lambda: self.ads is not None and self.ads.status().connected)
        self.coldstart = None if self.cache is None else ColdStart(self.cache, time.monotonic)
        recall = None if self.coldstart is None else self.coldstart.recall
        self.freshness = Freshness(self.upstreams, self._discover, self._taken, rng=rng, recall=recall)
        by_scope: dict[str, Catalog] = {}
        self.ingest = Ingest(
            by_scope,
            judging.delivered_rules(file.data_sources),
            self._expand,
            self.freshness,
            self.problems,
            self.history,
            self.metrics,
            self.cache,
        )
        self._tasks = asyncio.TaskGroup()
        self._engine: Callable[[Limits], Engine] | None = None
        if any(gateway.code_mode is not None for gateway in config.gateways):
            self._engines()  # refused before anything listens, not in the midst of starting
        sources = embedding.Sources(time.monotonic, rng, os.urandom)
        clocks = Clocks(time.time, time.monotonic)  # noqa: TID251
        shared = Shared(
            clusters=self.clusters,
            upstreams=self.upstreams,
            metrics=self.metrics,
            sessions=self._sessions,
            clocks=clocks,
            sources=sources,
            engine=self._engines,
            requests=self._requests,
            audit=self._audit,
            spans=self._spans,
        )
        self.tenants = Tenants(shared, self.ingest, self.freshness, by_scope, self._tasks)
        self.reloader = Reloader(path, self.apply, lambda: self._config.file.reload.watch)
        self._admin_token = file.admin.secret()
        self.rotation = Rotation(file.rotation.interval)
        self.rotation.add(pem.clusters(self.clusters))
        self.rotation.add(pem.upstreams(self.upstreams))
        self.rotation.add(self.tenants.watched)
        self.panel = Panel(self, time.time)  # noqa: TID251
        self.ads: AdsClient | None = None if file.control_plane is None else self._ads_client(file.control_plane)
        pushes = file.control_plane is not None and file.control_plane.clusters
        self._cds = self._pushed_clusters(clusters, self.ads) if self.ads is not None and pushes else None
        self.admin = ""
        self._loaded = False
        self._draining = False

    async def start(self, stack: AsyncExitStack) -> None:
        """Start everything; `stack` stops it in the reverse order."""
        stack.push_async_callback(self.clusters.close)
        stack.push_async_callback(self.upstreams.close)
        stack.push_async_callback(self.expander.close)
        if self.telling is not None:
            await stack.enter_async_context(self.telling.running())
        if self.traced is not None:
            await stack.enter_async_context(self.traced.running())
        await stack.enter_async_context(self.freshness.running())
        await stack.enter_async_context(self._tasks)
        self._open_logs(stack)
        await self._start_admin(stack)
        if self.cache is not None and self.coldstart is not None:
            scopes = [one.scope for one in self._config.gateways if one.scope is not None]
            await self.coldstart.read(scopes, shared=self._cds is not None)
            stack.push_async_callback(self.cache.close)
            await stack.enter_async_context(_task(self.cache.run()))
        prepared = await self.tenants.prepare(self._config)
        stack.push_async_callback(self.tenants.end)
        await self.tenants.commit(prepared, lambda _kind, _id: False)
        self._follow()
        if self.ads is not None:
            self.ads.set_scopes(self.tenants.scopes)
        if self.coldstart is not None:
            await stack.enter_async_context(_task(self.coldstart.run(self.ads, self._deliver)))
            await self.coldstart.restored.wait()
        await self.tenants.serve(prepared)
        self.rotation.note()
        if self.ads is not None:
            await stack.enter_async_context(_task(self.ads.run()))
        await stack.enter_async_context(_task(self.rotation.run()))
        await stack.enter_async_context(_task(self.reloader.run()))
        if self.cache is not None:
            stack.callback(self.cache.confirm)
        self._loaded = True
        for warning in self._config.warnings:
            _log.warning("%s", warning)

    async def apply(self, config: Config) -> None:
        """Take another config into use. ConfigError or BindError: it cannot be, and nothing has changed."""
        fixed = fitting.fixed(self._config.file, config.file)
        wanted = dataclasses.replace(config, file=config.file.model_copy(update=fixed))
        upstreams, clusters, _ = fitting.settings(wanted)
        before = self.upstreams.replace(upstreams)
        try:
            prepared = await self.tenants.prepare(wanted)
            try:
                await self._take_clusters(wanted, clusters)
            except ValueError as error:
                await self.tenants.discard(prepared)
                raise ConfigError([str(error)]) from error
        except BaseException:
            self.upstreams.replace(before)
            raise
        self.ingest.configure(judging.delivered_rules(wanted.file.data_sources))
        changed = await self.tenants.commit(prepared, self._is_delivered)
        if self.ads is not None:
            self.ads.set_scopes(self.tenants.scopes)
            # What was refused before may be good now, and the other way round.
            reads = wanted.file.data_sources != self._config.file.data_sources
            self.ads.refetch(["", *self.tenants.scopes] if reads else changed.anew)
            if {one.name for one in self._config.file.clusters} - clusters.keys():
                self.ads.refetch([""])  # A pushed cluster of a name that was taken may be used now.
        if self.coldstart is not None:
            self.coldstart.rescope(self.tenants.scopes)
        await self.tenants.serve(prepared)
        self.rotation.note()
        for scope in changed.gone:
            self.problems.forget(scope)
            self.metrics.forget(scope)
        self._follow()
        if wanted.file.log != self._config.file.log:
            log.setup(wanted.file.log.level, wanted.file.log.format)
        self._config = wanted
        for name in fixed:
            _log.warning("%s differs from the config in use: that takes effect at the next start only", name)
        for warning in wanted.warnings:
            _log.warning("%s", warning)

    def _follow(self) -> None:
        """Let those who tell of catalogs know which there are now."""
        self.panel.follow()
        if self.telling is not None:
            self.telling.follow(self.catalogs)

    async def drain(self, cut: asyncio.Event) -> None:
        """Not ready any more, but serving, for the drain delay or until `cut`; to be called before the stop."""
        self._draining = True
        _log.info("told to stop: not ready any more, serving for %g s yet", self._config.file.drain_delay)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._config.file.drain_delay):
                await cut.wait()

    def _open_logs(self, stack: AsyncExitStack) -> None:
        access, audit = self._config.file.access_log, self._config.file.audit_log
        dropped = self.metrics.access_log_dropped.inc, self.metrics.audit_dropped.inc
        if access is not None:
            self._access_log = fitting.opened(stack, "access_log", access.path, access.max_buffer_bytes, dropped[0])
        if audit is not None:
            self._audit_log = fitting.opened(stack, "audit_log", audit.path, audit.max_buffer_bytes, dropped[1])

    def _audit(self, listener: str) -> Audit | None:
        settings = self._config.file.audit_log
        if settings is None or self._audit_log is None:
            return None
        return Audit(self._audit_log, listener, time.time, arguments=settings.arguments)  # noqa: TID251

    def _requests(self, listener: str) -> Requests | None:
        settings = self._config.file.access_log
        if settings is None or self._access_log is None:
            return None
        return Requests(self._access_log, listener, settings.format, time.time)  # noqa: TID251

    def _spans(self, listener: str) -> Spans | None:
        return None if self.traced is None else self.traced.spans(listener)

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

    def _ads_client(self, settings: ControlPlaneConfig) -> AdsClient:
        return AdsClient(
            plane.ads(settings, self._config.file.node, pem.PlaneCredentials(settings).wanted),
            (),
            observing.Deliveries(
                self._deliver, self.metrics, time.perf_counter, None if self.traced is None else self.traced.tracer
            ).deliver,
            clock=time.monotonic,
            rng=random.Random(),  # noqa: S311 - jitter, not secrets
            observer=self.panel.plane,
            beside=self.ingest.beside,
        )

    def _pushed_clusters(self, clusters: Mapping[str, Cluster], ads: AdsClient) -> PushedClusters:
        # Envoy's messages take a tenth of a second to import: only where clusters are pushed.
        from arion_tds.cds import Books, PushedClusters

        books = Books(self.problems, self.history, self.metrics, self.cache)
        rules = judging.delivered_rules(self._config.file.data_sources)
        return PushedClusters(self.clusters, clusters, rules, books, ads.want_endpoints)

    async def _deliver(self, delivery: Delivery) -> DeliveryVerdict:
        if delivery.kind.scoped or self._cds is None:
            return await self.ingest.deliver(delivery)
        return await self._cds.deliver(delivery)

    async def _take_clusters(self, config: Config, clusters: Mapping[str, Cluster]) -> None:
        """The config's clusters, and beside them those that are pushed. ValueError: nothing has changed."""
        if self._cds is None:
            await self.clusters.replace(clusters)
        else:
            await self._cds.configure(clusters, judging.delivered_rules(config.file.data_sources))

    def _engines(self) -> Callable[[Limits], Engine]:
        """What makes sandboxes, looked for when the first gateway in code mode asks for it."""
        if self._engine is None:
            self._engine = deno.engine()
        return self._engine

    def _is_delivered(self, kind: Kind, name: ResourceId) -> bool:
        return self.ads is not None and self.ads.holds(kind, name)

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
        state: dict[str, object] = {
            "ready": self._loaded and fetched and not self._draining,
            "draining": self._draining,
            "config_generation": self.reloader.generation,
            "last_reload_error": self.reloader.last_error,
        }
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
    def catalogs(self) -> Sequence[Catalog]:
        """One per listener, in the order of the config."""
        return self.tenants.catalogs

    @property
    def fronts(self) -> Mapping[str, McpFront]:
        """By listener."""
        return {name: one.front for name, one in self.tenants.listeners.items() if one.bound}

    @property
    def bound(self) -> Mapping[str, str]:
        """The address of each listener."""
        return {name: one.bound for name, one in self.tenants.listeners.items() if one.bound}

    @property
    def doors(self) -> Mapping[str, Door]:
        """By listener."""
        return {name: one.door for name, one in self.tenants.listeners.items()}

    @property
    def embedders(self) -> Mapping[str, Embedder]:
        """By listener, where there is one."""
        found = {name: one.content.embedder for name, one in self.tenants.listeners.items()}
        return {name: one for name, one in found.items() if one is not None}

    @property
    def scopes(self) -> Mapping[str, str]:
        """The scope that each listener serves."""
        return {name: one.catalog.scope for name, one in self.tenants.listeners.items()}

    def plane_address(self) -> str:
        """Where the control plane is."""
        settings = self._config.file.control_plane
        return "" if settings is None else settings.address

    def measure(self) -> None:
        """Bring the gauges up to date."""
        gauges.measure(self, time.monotonic())
        self._measures.clusters(self.clusters.status())
        self._measures.sessions(self._sessions.issued)


@contextlib.asynccontextmanager
async def _task(work: asyncio._CoroutineLike[object]) -> AsyncIterator[None]:
    """Run `work` beside the block; a failure of it ends the block, the end of the block ends it."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        try:
            yield
        finally:
            task.cancel()
