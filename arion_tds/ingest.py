"""From a delivery to what is served: decode, expand or discover, commit, verdict.

In: a `Delivery` (one response of the control plane, filtered to our scopes) or a gateway's static content.
Out: content in the catalogs, and a `DeliveryVerdict` that names every refused resource. Called by xds.stream (through
app) and by app at start. The only writer of catalogs, beside the refresh of upstream servers.

Tools and toolkits are pure computation and are applied in order of arrival. Sources and servers wait on a worker or on
a network: each goes its own way, so that one that hangs holds nothing back. Once a newer update of the same resource is
taken, or the resource removed, the result of an older one is dropped; a newer one that is refused leaves the older to
be taken.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

from arion_tds import static
from arion_tds.catalog import Catalog
from arion_tds.decode import table
from arion_tds.decode.rules import DataRules
from arion_tds.heap import Heap
from arion_tds.history import History
from arion_tds.metrics import Metrics
from arion_tds.model.change import (
    Change,
    PutServer,
    PutSource,
    PutTool,
    PutToolkit,
    RemoveServer,
    RemoveSource,
    RemoveTool,
    RemoveToolkit,
)
from arion_tds.model.delivery import CATALOG, Delivered, Delivery, DeliveryVerdict, Kind, ResourceId
from arion_tds.model.derived import Derived
from arion_tds.model.problem import Problem
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit
from arion_tds.pace import Pace
from arion_tds.problems import Problems

BATCH: Final = 500
"""Tools committed at once: large enough to amortise the dict copies, small enough to publish early."""

_log = logging.getLogger("arion_tds.ingest")


Expand = Callable[[OpenApiSource], Awaitable[Derived]]
"""How a source becomes tools; it bounds its own time and answers with a problem instead of raising."""


class Keeper(Protocol):
    """Keeps discovered servers fresh: hears what becomes of each, by scope and namespace."""

    def follow(self, catalog: Catalog, server: McpServer) -> None:
        """The server is served now."""
        ...

    async def discover(self, server: McpServer) -> Derived:
        """The server's first list; it bounds its own time and answers with a problem instead of raising."""
        ...

    def refused(self, server: McpServer) -> None:
        """Its list was not taken after all."""
        ...

    def pending(self, catalog: Catalog, server: McpServer, update: Delivered | None) -> None:
        """The server could not be asked: go on trying."""
        ...

    def dropped(self, server: McpServer) -> None:
        """The server could not be asked, and is not to be: something newer has come."""
        ...

    def superseded(self, scope: str, namespace: str) -> None:
        """A newer update of the server has come: what is still being tried is out of date."""
        ...

    def forget(self, scope: str, namespace: str) -> None:
        """The server is gone."""
        ...

    def resent(self) -> None:
        """The control plane begins to send again every server that was refused."""
        ...


class Memory(Protocol):
    """Remembers what is served beyond the life of the process."""

    def put(self, kind: Kind, update: Delivered) -> None:
        """The resource is served."""
        ...

    def remove(self, kind: Kind, name: ResourceId) -> None:
        """The control plane has taken the resource back."""
        ...


@dataclasses.dataclass(slots=True)
class _Flight:
    """One source or server with updates under way, numbered as they arrived: what became of which.

    `settled`: the newest that was taken, or after which the resource was removed. `refused`: the newest refused.
    """

    under_way: int = 0
    newest: int = 0
    settled: int = 0
    refused: int = 0


class Ingest:
    """The write path of the process."""

    def __init__(  # noqa: PLR0913, PLR0917 - the composition root names every part once
        self,
        catalogs: Mapping[str, Catalog],
        rules: DataRules,
        expand: Expand,
        keeper: Keeper,
        problems: Problems,
        history: History,
        metrics: Metrics,
        memory: Memory | None = None,
    ) -> None:
        """`catalogs` by scope; the mapping is live: a scope that appears in it is served from its next delivery on."""
        self._catalogs = catalogs
        self._rules = rules
        self._expand = expand
        self._keeper = keeper
        self._problems = problems
        self._history = history
        self._metrics = metrics
        self._counted = {kind: metrics.resources.labels(kind.short, "accepted") for kind in CATALOG}
        self._memory = memory
        self._heap = Heap()
        self._in_order = asyncio.Lock()
        self._flights: dict[tuple[Kind, ResourceId], _Flight] = {}

    def beside(self, kind: Kind, malformed: tuple[Problem, ...], *, first: bool) -> None:
        """Take note of what a response says beside its delivery, before that comes: see xds.stream.Beside.

        A refused resource is claimed by no version, so nobody says that it was withdrawn while the stream was down. But
        whatever still stands is sent again on the new stream: with its first response, refusals begin anew.
        """
        if first:
            self._problems.resent(kind)
            if kind is Kind.SERVER:
                self._keeper.resent()
        for problem in malformed:
            if self._problems.rejected(kind, problem.where, "", problem.why):
                _log.warning("rejected %s %r: %s", kind.short, problem.where, problem.why)
            self._metrics.resources.labels(kind.short, "rejected").inc()

    async def deliver(self, delivery: Delivery) -> DeliveryVerdict:
        """Apply one delivery; what is refused is named, everything else is served when this returns."""
        if delivery.kind in {Kind.SOURCE, Kind.SERVER}:
            rejected = await self._derived(delivery)
        else:
            async with self._in_order:
                rejected = await self._plain(delivery)
        self._tell(delivery, rejected)
        self._heap.delivered(sum(len(update.payload) for update in delivery.updates))
        return DeliveryVerdict(tuple(rejected))

    async def _plain(self, delivery: Delivery) -> list[Problem]:
        """Tools and toolkits: removals, then updates in batches."""
        await self._remove(delivery)
        rejected: list[Problem] = []
        pace = Pace()
        waiting: dict[str, list[tuple[Delivered, Change, tuple[str, ...]]]] = {}
        for update in delivery.updates:
            catalog = self._catalogs.get(update.id.scope)
            if catalog is None:
                continue
            decoded = table.decode(delivery.kind, update.id, update.payload, self._rules_for(catalog))
            if isinstance(decoded.value, Tool | Toolkit):
                change: Change = (
                    PutTool(decoded.value) if isinstance(decoded.value, Tool) else PutToolkit(decoded.value)
                )
                batch = waiting.setdefault(update.id.scope, [])
                batch.append((update, change, decoded.warnings))
                if len(batch) >= BATCH:
                    rejected += await self._commit(catalog, delivery.kind, batch)
                    batch.clear()
            elif decoded.problem is not None:
                rejected.append(self._refuse(delivery.kind, update, decoded.problem))
            await pace.breathe()
        for scope, batch in waiting.items():
            catalog = self._catalogs.get(scope)
            if catalog is not None and batch:
                rejected += await self._commit(catalog, delivery.kind, batch)
        return rejected

    async def _commit(
        self, catalog: Catalog, kind: Kind, batch: Sequence[tuple[Delivered, Change, tuple[str, ...]]]
    ) -> list[Problem]:
        rejected: list[Problem] = []
        verdicts = await catalog.commit([change for _, change, _ in batch])
        for (update, _, warnings), verdict in zip(batch, verdicts, strict=True):
            if verdict.problem is not None:
                rejected.append(self._refuse(kind, update, verdict.problem))
            else:
                self._accept(kind, update, (*warnings, *verdict.warnings))
        return rejected

    async def _remove(self, delivery: Delivery) -> None:
        by_scope: dict[str, list[ResourceId]] = {}
        for removed in delivery.removals:
            by_scope.setdefault(removed.scope, []).append(removed)
            self._problems.removed(delivery.kind, removed)
            self._history.removed(delivery.kind, removed)
            if self._memory is not None:
                self._memory.remove(delivery.kind, removed)
        for scope, ids in by_scope.items():
            catalog = self._catalogs.get(scope)
            if catalog is None:
                continue
            verdicts = await catalog.commit([_removal(delivery.kind, removed.name) for removed in ids])
            for removed, verdict in zip(ids, verdicts, strict=True):
                self._warn(delivery.kind, str(removed), verdict.warnings)

    async def _derived(self, delivery: Delivery) -> list[Problem]:
        """Sources and servers: each update on its own, all at once."""
        for removed in delivery.removals:
            flight = self._flights.get((delivery.kind, removed))
            if flight is not None:
                flight.newest += 1
                flight.settled = flight.newest
            if delivery.kind is Kind.SERVER:
                self._keeper.forget(removed.scope, removed.name)
        await self._remove(delivery)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._derive_one(delivery.kind, update, *self._arrived(delivery.kind, update.id)))
                for update in delivery.updates
            ]
        return [problem for problem in (task.result() for task in tasks) if problem is not None]

    def _arrived(self, kind: Kind, name: ResourceId) -> tuple[_Flight, int]:
        flight = self._flights.setdefault((kind, name), _Flight())
        flight.under_way += 1
        flight.newest += 1
        if kind is Kind.SERVER:
            self._keeper.superseded(name.scope, name.name)
        return flight, flight.newest

    async def _derive_one(self, kind: Kind, update: Delivered, flight: _Flight, number: int) -> Problem | None:
        try:
            problem = await self._derive(kind, update, flight, number)
            if problem is None:
                return None
            # What stands in the problems is the newest, whichever was judged last.
            stands = number > max(flight.refused, flight.settled)
            flight.refused = max(flight.refused, number)
            return self._refuse(kind, update, problem, stands=stands)
        finally:
            flight.under_way -= 1
            if not flight.under_way:
                del self._flights[kind, update.id]

    async def _derive(self, kind: Kind, update: Delivered, flight: _Flight, number: int) -> Problem | None:
        catalog = self._catalogs.get(update.id.scope)
        if catalog is None:
            return None
        decoded = table.decode(kind, update.id, update.payload, self._rules_for(catalog))
        value = decoded.value
        if decoded.problem is not None or not isinstance(value, OpenApiSource | McpServer):
            return decoded.problem or Problem(str(update.id), "is not what its type says")
        change, derived = await self.derive(value)
        if derived.problem is not None:
            if isinstance(value, McpServer):
                if flight.newest == number:
                    self._keeper.pending(catalog, value, update)
                else:
                    self._keeper.dropped(value)
            if flight.settled > number:
                return None  # What it would have brought is out of date.
            return Problem(str(update.id), derived.problem)
        if isinstance(change, PutSource):
            change = PutSource(change.source.expanded(), change.tools)
        verdicts = await catalog.commit([change], when=lambda: flight.settled < number)
        problem = verdicts[0].problem if verdicts else None
        taken = bool(verdicts) and problem is None and flight.settled < number  # else it is removed by the next commit
        if taken:
            flight.settled = number
            stands = flight.refused < number
            warnings = (*decoded.warnings, *verdicts[0].warnings)
            self._accept(kind, update, warnings, derived.left_out, stands=stands)
        if isinstance(value, McpServer):
            if taken:
                self._keeper.follow(catalog, value)
            else:
                self._keeper.refused(value)
        return problem

    def taken(self, update: Delivered, derived: Derived) -> None:
        """Note that a refused server is served after all."""
        self._accept(Kind.SERVER, update, (), derived.left_out)

    async def derive(self, value: OpenApiSource | McpServer) -> tuple[Change, Derived]:
        """The change that a source or server comes to, with its tools expanded or discovered."""
        if isinstance(value, OpenApiSource):
            derived = await self._expand(value)
            return PutSource(value, derived.tools), derived
        derived = await self._keeper.discover(value)
        return PutServer(value, derived.tools), derived

    async def load(self, catalog: Catalog) -> list[Problem]:
        """Commit a gateway's static content and keep its servers fresh. Returns what was refused."""
        made = await static.load(catalog, self.derive)
        made.adopt(self._keeper)
        return list(made.problems)

    def configure(self, rules: DataRules) -> None:
        """What delivered resources may read of this machine, from the next one on."""
        self._rules = rules

    def _rules_for(self, catalog: Catalog) -> DataRules:
        search = catalog.gateway.search
        if search is None or search.embeddings is None:
            return self._rules
        return dataclasses.replace(self._rules, dimensions=search.embeddings.dimensions)

    def _refuse(self, kind: Kind, update: Delivered, problem: Problem, *, stands: bool = True) -> Problem:
        """`stands`: no newer version of the resource has been judged."""
        named = Problem(str(update.id), problem.why)
        self._history.rejected(kind, update.id, update.version, problem.why)
        if stands and self._problems.rejected(kind, update.id, update.version, problem.why):
            _log.warning("rejected %s %s version %r: %s", kind.short, update.id, update.version, problem.why)
        self._metrics.resources.labels(kind.short, "rejected").inc()
        return named

    def _accept(
        self,
        kind: Kind,
        update: Delivered,
        warnings: tuple[str, ...],
        left_out: tuple[str, ...] = (),
        *,
        stands: bool = True,
    ) -> None:
        """`stands`: no newer version of the resource is refused."""
        if stands:
            self._problems.accepted(kind, update.id, update.version, left_out)
        self._history.accepted(kind, update.id, update.version)
        if self._memory is not None:
            self._memory.put(kind, update)
        self._counted[kind].inc()
        self._warn(kind, str(update.id), (*warnings, *left_out))

    def _warn(self, kind: Kind | None, name: str, warnings: tuple[str, ...]) -> None:
        for warning in warnings:
            _log.warning("%s %s: %s", kind.short if kind else "static", name, warning)

    def _tell(self, delivery: Delivery, rejected: list[Problem]) -> None:
        self._metrics.problems.set(len(self._problems))
        if delivery.removals:
            self._metrics.resources.labels(delivery.kind.short, "removed").inc(len(delivery.removals))
        _log.info(
            "%s: %d updated, %d removed, %d rejected",
            delivery.kind.short,
            len(delivery.updates) - len(rejected),
            len(delivery.removals),
            len(rejected),
        )


def _removal(kind: Kind, name: str) -> Change:
    match kind:
        case Kind.TOOL:
            return RemoveTool(name)
        case Kind.SOURCE:
            return RemoveSource(name)
        case Kind.SERVER:
            return RemoveServer(name)
        case Kind.TOOLKIT:
            return RemoveToolkit(name)
        case Kind.CLUSTER | Kind.ENDPOINTS:
            raise ValueError(f"{kind.short} is no part of a catalog")
