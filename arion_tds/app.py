"""The composition root: builds every part from the config, owns every task, ends them in order.

In: a judged `Config`. Out: a running gateway until it is told to stop. Called by the cli, and by tests that want a
whole gateway inside their process.

Order of start: admin (probes see "not ready"), static content, what was kept on disk, listeners, control plane. As one
of several workers the listeners come last (`open`): whoever would be served by it is served by the others meanwhile.
Order of stop: control plane, listeners (streams told to end, calls finished up to a deadline), upstreams, admin.

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
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from arion_tds import deriving, embedding, fitting, log, observing, pem, telling, traced
from arion_tds.admin.http import AdminListener
from arion_tds.admin.panel import Panel
from arion_tds.backends.clusters import Clusters
from arion_tds.backends.mcp.pool import Upstreams
from arion_tds.catalog import Catalog
from arion_tds.coldstart import ColdStart
from arion_tds.config import judging, plane, sharing
from arion_tds.config.file import ControlPlaneConfig
from arion_tds.config.judging import Config
from arion_tds.doors import Clocks
from arion_tds.errors import BindError, ConfigError
from arion_tds.expansion import Expander
from arion_tds.fitting import Logs
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
from arion_tds.server.spans import Spans
from arion_tds.standing import Standing
from arion_tds.telling import Telling
from arion_tds.tenants import Prepared, Tenants
from arion_tds.workers.role import Role
from arion_tds.workers.siblings import Siblings
from arion_tds.xds.stream import AdsClient

if TYPE_CHECKING:
    from arion_tds.cds import PushedClusters
    from arion_tds.codemode.engine import Engine
    from arion_tds.codemode.limits import Limits

_log = logging.getLogger("arion_tds.app")


@contextlib.asynccontextmanager
async def running(config: Config, path: str | None = None, role: Role | None = None) -> AsyncIterator[Gateway]:
    """A whole gateway, serving while the block runs. ConfigError or BindError when it cannot start.

    `path`: the config's file, for reloads. `role`: its place among several, which serves when it is told to `open`.
    """
    refused: ConfigError | BindError | None = None
    async with AsyncExitStack() as stack:
        gateway = Gateway(config, path, role)
        try:
            await gateway.start(stack)
        except (ConfigError, BindError) as error:
            refused = error  # kept until all is stopped: on its way through task groups it would be wrapped by each
        else:
            yield gateway
    if refused is not None:
        raise refused


class Gateway(Standing):
    """The parts of one running process. `bound` gives the address of each listener by name (port 0: any)."""

    def __init__(self, config: Config, path: str | None = None, role: Role | None = None) -> None:
        """Build everything; nothing listens or connects yet."""
        file = config.file
        self._config = config
        self._role = role
        self.metrics = Metrics(file.metrics.tools)
        self.siblings = None if role is None else Siblings(role, self)
        self._measures = observing.Measures(self.metrics)
        self._logs = Logs(file, self.metrics, time.time)  # noqa: TID251
        self.problems = Problems(time.time)  # noqa: TID251 - the root hands the clocks out
        self.history = History(time.time)  # noqa: TID251
        observing.rejections(self.history, self.metrics)
        upstreams, clusters, self._sessions = fitting.settings(config, None if role is None else role.key)
        try:
            self.clusters = Clusters(clusters)
        except ValueError as error:
            raise ConfigError([str(error)]) from error
        self.upstreams = Upstreams(upstreams, clock=time.time)  # noqa: TID251
        self.telling = self._events()
        self.traced = traced.of(file, self.metrics)
        self.expander = Expander(file.openapi.settings(), file.openapi.output, file.openapi.workers)
        rng = random.Random()  # noqa: S311 - jitter, not secrets
        self.cache = fitting.cache(
            file, lambda: self.ads is not None and self.ads.status().connected, keeps=self._leads
        )
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
            requests=self._logs.requests,
            audit=self._logs.audit,
            spans=self._spans,
            siblings=self.siblings,
        )
        self.tenants = Tenants(shared, self.ingest, self.freshness, by_scope, self._tasks)
        self.reloader = Reloader(path, self.apply, lambda: self._config.file.reload.watch)
        self.rotation = Rotation(file.rotation.interval)
        self.rotation.add(pem.clusters(self.clusters))
        self.rotation.add(pem.upstreams(self.upstreams))
        self.rotation.add(self.tenants.watched)
        self.panel = Panel(self, time.time)  # noqa: TID251
        self._admin = AdminListener(self.panel, token=file.admin.secret(), reuse_port=role is not None)
        self.ads: AdsClient | None = None if file.control_plane is None else self._ads_client(file.control_plane)
        pushes = file.control_plane is not None and file.control_plane.clusters
        self._cds = self._pushed_clusters(clusters, self.ads) if self.ads is not None and pushes else None
        self.admin = ""
        self._opened = asyncio.Event()
        self._draining = False
        self._prepared: Prepared | None = None

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
        self._logs.open(stack)
        if self.siblings is not None:
            await stack.enter_async_context(self.siblings.running())
        stack.push_async_callback(self._admin.close)
        if not self._patient:
            await self._start_admin()
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
        self._prepared = prepared
        if self._role is None:
            await self._serve()
        if self.ads is not None:
            await stack.enter_async_context(_task(self.ads.run()))
        await stack.enter_async_context(_task(self.rotation.run()))
        await stack.enter_async_context(_task(self._reload()))
        if self.cache is not None:
            stack.callback(self.cache.confirm)
        for warning in self._config.warnings:
            _log.warning("%s", warning)

    async def open(self) -> None:
        """As a worker: take connections once there is something to serve, or when that takes too long.

        While others serve there is no such time: one that stands in for another must not say that a tool is unknown.
        """
        plane = self._config.file.control_plane
        if plane is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if self._patient else plane.initial_fetch_timeout):
                    await self.fetched()
        await self._serve()
        if self._patient:
            await self._start_admin()

    async def fetched(self) -> None:
        """Until the first content is there."""
        if self.ads is not None and not self._fetched:
            await self.ads.wait_ready()

    async def _serve(self) -> None:
        if self._prepared is not None:
            await self.tenants.serve(self._prepared)
        self._prepared = None
        self.rotation.note()
        self._opened.set()

    async def _reload(self) -> None:
        await self._opened.wait()
        await self.reloader.run()

    async def apply(self, config: Config) -> None:
        """Take another config into use. ConfigError or BindError: it cannot be, and nothing has changed."""
        fixed = fitting.fixed(self._config.file, config.file)
        if self._role is not None:
            fitting.shareable(config.file, self._role.count)
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
            number = None if self._role is None else self._role.number
            log.setup(wanted.file.log.level, wanted.file.log.format, number)
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

    def _spans(self, listener: str) -> Spans | None:
        return None if self.traced is None else self.traced.spans(listener)

    async def _start_admin(self) -> None:
        host, port = sharing.split_address(self._config.file.admin.address)
        try:
            await self._admin.start(host, port)
        except OSError as error:
            raise BindError.at("admin", host, port, error) from error
        self.admin = self._admin.bound
        _log.info("admin on http://%s", self._admin.bound)

    @property
    def _patient(self) -> bool:
        return self._role is not None and self._role.patient

    @property
    def patience(self) -> float:
        """Seconds that a stop may take: serving on, and then the calls under way."""
        return self._config.file.drain_delay + max(one.drain_timeout for one in self._config.file.listeners)

    @property
    def _leads(self) -> bool:
        return self._role is None or self._role.leads

    def _events(self) -> Telling | None:
        made = telling.of(self._config.file, self.metrics, time.time) if self._leads else None  # noqa: TID251
        if made is not None:
            telling.connect(made, self.history, self.clusters, self.upstreams)
        return made

    def _ads_client(self, settings: ControlPlaneConfig) -> AdsClient:
        return AdsClient(
            plane.ads(
                settings,
                self._config.file.node,
                pem.PlaneCredentials(settings).wanted,
                None if self._role is None else self._role.number,
            ),
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
            from arion_tds.codemode import deno

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


@contextlib.asynccontextmanager
async def _task(work: asyncio._CoroutineLike[object]) -> AsyncIterator[None]:
    """Run `work` beside the block; a failure of it ends the block, the end of the block ends it."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        try:
            yield
        finally:
            task.cancel()
