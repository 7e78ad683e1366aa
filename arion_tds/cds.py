"""Clusters that the control plane pushes (CDS) and their endpoints (EDS), beside those of the config.

In: deliveries of the two types, and the config's clusters. Out: settings for `Clusters`, the endpoint names to ask for,
verdicts. Built by app where the config asks for clusters; its `deliver` is called by xds.stream, through app.

A config cluster wins over a pushed one of its name, which is rejected. A pushed cluster whose endpoints have not come
is there and has none: its calls say so. Endpoints that no cluster names are not kept.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Iterable, Mapping

from arion_tds.backends.clusters import Clusters
from arion_tds.decode import cluster as decoder
from arion_tds.decode.rules import DataRules
from arion_tds.history import History
from arion_tds.ingest import Memory
from arion_tds.metrics import Metrics
from arion_tds.model.cluster import Cluster, PushedCluster
from arion_tds.model.delivery import Delivered, Delivery, DeliveryVerdict, Kind, ResourceId
from arion_tds.model.problem import Problem
from arion_tds.problems import Problems

_log = logging.getLogger("arion_tds.cds")


@dataclasses.dataclass(frozen=True, slots=True)
class Books:
    """Where verdicts are written down. `memory` None: nothing is kept on disk."""

    problems: Problems
    history: History
    metrics: Metrics
    memory: Memory | None


class PushedClusters:
    """All clusters of the process. Owned by app; changes are taken one after the other."""

    def __init__(
        self,
        clusters: Clusters,
        configured: Mapping[str, Cluster],
        rules: DataRules,
        books: Books,
        want: Callable[[Iterable[str]], None],
    ) -> None:
        """`rules`: what a delivered TLS setting may read. `want` is told the endpoint names to ask for, all of them."""
        self._clusters = clusters
        self._configured = dict(configured)
        self._rules = rules
        self._books = books
        self._want = want
        self._pushed: dict[str, PushedCluster] = {}
        self._endpoints: dict[str, tuple[str, ...]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def deliver(self, delivery: Delivery) -> DeliveryVerdict:
        """Apply one delivery; what is refused is named, everything else is in use when this returns."""
        async with self._one_at_a_time:
            if delivery.kind is Kind.CLUSTER:
                rejected = await self._take_clusters(delivery)
            else:
                rejected = await self._take_endpoints(delivery)
        _log.info(
            "%s: %d updated, %d removed, %d rejected",
            delivery.kind.short,
            len(delivery.updates) - len(rejected),
            len(delivery.removals),
            len(rejected),
        )
        return DeliveryVerdict(tuple(rejected))

    async def configure(self, configured: Mapping[str, Cluster], rules: DataRules) -> None:
        """Take the clusters of another config. ValueError when one cannot be used: then nothing has changed.

        A pushed cluster whose name the config takes is put aside; it is back when the config lets go of it.
        """
        async with self._one_at_a_time:
            await self._clusters.replace(self._all(configured, self._pushed))
            self._configured, self._rules = dict(configured), rules
            for name in self._pushed.keys() & configured.keys():
                _log.warning("cluster %r is in the config now: the pushed one of that name is not used", name)

    async def _take_clusters(self, delivery: Delivery) -> list[Problem]:
        pushed = {name: one for name, one in self._pushed.items() if ResourceId("", name) not in delivery.removals}
        accepted: list[tuple[Delivered, tuple[str, ...]]] = []
        rejected: list[Problem] = []
        for update in delivery.updates:
            judged = decoder.cluster(update.id.name, update.payload, self._rules)
            problem = judged.problem
            if update.id.name in self._configured:
                problem = Problem(update.id.name, "the gateway's config has a cluster of this name, which wins")
            if problem is None and judged.value is not None:
                before = dict(pushed)
                pushed[update.id.name] = judged.value
                problem = await self._use(pushed, update.id.name)
                if problem is None:
                    accepted.append((update, judged.warnings))
                    continue
                pushed = before
            if problem is not None:
                rejected.append(self._refuse(delivery.kind, update, problem))
        self._pushed = pushed
        await self._clusters.replace(self._all(self._configured, pushed))
        self._note(delivery, accepted)
        named = {one.eds for one in pushed.values() if one.eds is not None}
        for name in self._endpoints.keys() - named:
            del self._endpoints[name]
            if self._books.memory is not None:
                self._books.memory.remove(Kind.ENDPOINTS, ResourceId("", name))
        self._want(sorted(named))
        return rejected

    async def _use(self, pushed: Mapping[str, PushedCluster], name: str) -> Problem | None:
        """Whether the clusters can be set up with this one: its TLS files, above all."""
        one = pushed[name]
        if one.cluster.tls is None:
            return None
        try:
            await self._clusters.replace(self._all(self._configured, pushed))
        except ValueError as error:
            return Problem(name, str(error))
        return None

    async def _take_endpoints(self, delivery: Delivery) -> list[Problem]:
        named = {one.eds for one in self._pushed.values()}
        accepted: list[tuple[Delivered, tuple[str, ...]]] = []
        rejected: list[Problem] = []
        for removed in delivery.removals:
            self._endpoints.pop(removed.name, None)
        for update in delivery.updates:
            judged = decoder.assignment(update.id.name, update.payload, self._rules)
            if judged.value is not None:
                if update.id.name in named:
                    self._endpoints[update.id.name] = judged.value
                accepted.append((update, judged.warnings))
            elif judged.problem is not None:
                rejected.append(self._refuse(delivery.kind, update, judged.problem))
        await self._clusters.replace(self._all(self._configured, self._pushed))
        self._note(delivery, accepted)
        return rejected

    def _all(self, configured: Mapping[str, Cluster], pushed: Mapping[str, PushedCluster]) -> dict[str, Cluster]:
        found = dict(configured)
        for name, one in pushed.items():
            if name not in found:
                found[name] = one.cluster if one.eds is None else one.with_endpoints(self._endpoints.get(one.eds, ()))
        return found

    def _refuse(self, kind: Kind, update: Delivered, problem: Problem) -> Problem:
        books = self._books
        books.history.rejected(kind, update.id, update.version, problem.why)
        if books.problems.rejected(kind, update.id, update.version, problem.why):
            _log.warning("rejected %s %s version %r: %s", kind.short, update.id, update.version, problem.why)
        books.metrics.resources.labels(kind.short, "rejected").inc()
        return Problem(str(update.id), problem.why)

    def _note(self, delivery: Delivery, accepted: Iterable[tuple[Delivered, tuple[str, ...]]]) -> None:
        books, kind = self._books, delivery.kind
        for removed in delivery.removals:
            books.problems.removed(kind, removed)
            books.history.removed(kind, removed)
            if books.memory is not None:
                books.memory.remove(kind, removed)
        for update, warnings in accepted:
            books.problems.accepted(kind, update.id, update.version)
            books.history.accepted(kind, update.id, update.version)
            books.metrics.resources.labels(kind.short, "accepted").inc()
            if books.memory is not None:
                books.memory.put(kind, update)
            for warning in warnings:
                _log.warning("%s %s: %s", kind.short, update.id, warning)
