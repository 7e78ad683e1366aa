"""Everything that the operator's pages show, gathered from the running parts in slices.

In: the parts of the gateway, as they are at the moment of the question (`Parts`; the app is one), and questions. Out:
JSON values. Called by admin.http. Nothing here changes anything. What grows with the catalog is taken in slices: a page
of 10,000 tools does not hold up a call.
"""

from __future__ import annotations

import asyncio
import bisect
import dataclasses
import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import arion_tds
from arion_tds.admin import agreeing, dump, hearing
from arion_tds.admin.events import Events
from arion_tds.admin.explain import explain
from arion_tds.admin.facts import Plane, Trying, World
from arion_tds.auth.rbac import Token
from arion_tds.backends.clusters import Clusters
from arion_tds.backends.mcp.pool import Upstreams
from arion_tds.catalog import Catalog
from arion_tds.history import History
from arion_tds.metrics import Metrics
from arion_tds.pace import Pace, load
from arion_tds.problems import Problems
from arion_tds.search.hits import ENGINE
from arion_tds.view import Entry, View
from arion_tds.xds.stream import AdsClient

MAX_PAGE: Final = 500
"""Entries of one page of a list."""


class _Front(Protocol):
    def status(self) -> Mapping[str, int]: ...


class _Trying(Protocol):
    @property
    def failures(self) -> int: ...
    @property
    def reason(self) -> str: ...


class _Keeper(Protocol):
    def trying(self) -> Mapping[tuple[str, str], _Trying]: ...


class _Siblings(Protocol):
    async def ready(self) -> Mapping[str, object]: ...
    async def metrics(self) -> bytes: ...
    async def explained(
        self, name: str, scope: str | None, token: Token | None
    ) -> Mapping[int, list[dict[str, Any]] | None]: ...


class Parts(Protocol):
    """A running gateway, as far as the pages look into it. Read anew with every question."""

    clusters: Clusters
    upstreams: Upstreams
    problems: Problems
    history: History
    metrics: Metrics

    @property
    def catalogs(self) -> Sequence[Catalog]:
        """One per listener."""

    @property
    def siblings(self) -> _Siblings | None:
        """Other workers that serve the same; None: there is one process alone."""

    @property
    def ads(self) -> AdsClient | None:
        """None: no control plane is used."""

    @property
    def fronts(self) -> Mapping[str, _Front]:
        """By listener."""

    @property
    def bound(self) -> Mapping[str, str]:
        """The address of each listener."""

    @property
    def endpoints(self) -> Mapping[str, str]:
        """The URL of each listener."""

    @property
    def scopes(self) -> Mapping[str, str]:
        """What each listener serves."""

    @property
    def freshness(self) -> _Keeper:
        """Which servers are asked again."""

    def ready(self) -> Mapping[str, object]:
        """What `/readyz` says."""

    def configured(self) -> Mapping[str, object]:
        """What `/config_dump` says beside the state: the config, without secrets."""

    def plane_address(self) -> str:
        """Of the control plane."""

    def measure(self) -> None:
        """Bring the gauges up to date."""


class Panel:
    """Answers of the operator's pages."""

    def __init__(self, parts: Parts, clock: Callable[[], float]) -> None:
        """`clock`: seconds since the epoch."""
        self._parts = parts
        self._clock = clock
        self.events = Events(clock)
        self.plane = hearing.PlaneHearing(self.events)
        self._followed: dict[Catalog, Callable[[], None]] = {}
        parts.history.listen(lambda kind, name, given: hearing.verdict(self.events, kind, name, given))

    def follow(self) -> None:
        """Hear of the catalogs that there are now, and no longer of those that are gone."""
        catalogs = set(self._parts.catalogs)
        for gone in self._followed.keys() - catalogs:
            self._followed.pop(gone)()
        for catalog in catalogs - self._followed.keys():
            self._followed[catalog] = _hear(self.events, catalog)

    async def ready(self) -> Mapping[str, object]:
        """See `Parts.ready`; of several workers, whether all of them are."""
        siblings = self._parts.siblings
        return self._parts.ready() if siblings is None else await siblings.ready()

    async def metrics(self) -> bytes:
        """The Prometheus page, of all workers together."""
        if self._parts.siblings is not None:
            return await self._parts.siblings.metrics()
        self._parts.measure()
        # A thousand scopes are some ten thousand lines: they are written beside the loop, not on it.
        return await asyncio.to_thread(self._parts.metrics.page)

    async def config_dump(self) -> dict[str, object]:
        """Everything that is configured and held; secrets are only ever references."""
        return {**await self._state(dump.namespace), **self._parts.configured()}

    async def status(self) -> dict[str, object]:
        """Like `config_dump`, with counts instead of names and without the config."""
        self.follow()
        problems = self._parts.problems
        return {
            **await self._state(dump.namespace_in_short),
            "problems": {"rejected": len(problems), "dropped": problems.dropped},
        }

    async def _state(self, shown: Callable[..., dict[str, object]]) -> dict[str, object]:
        parts, pace = self._parts, Pace()
        scopes = []
        for catalog in list(parts.catalogs):
            costs = catalog.tokens.by_namespace()
            await pace.breathe()
            namespaces: dict[str, object] = {}
            for name, held in sorted(catalog.snapshot.namespaces.items()):
                namespaces[name] = shown(held, costs.get(name, 0))
                await pace.breathe()
            scopes.append({**dump.scope(catalog), "namespaces": namespaces})
        trying = parts.freshness.trying().items()
        return {
            "version": arion_tds.__version__,
            **await self.ready(),
            "listeners": {
                name: {
                    "address": parts.bound[name],
                    "endpoint": parts.endpoints[name],
                    "scope": parts.scopes[name],
                    **front.status(),
                }
                for name, front in parts.fronts.items()
            },
            "scopes": scopes,
            "mcp_servers": [dataclasses.asdict(one) for one in parts.upstreams.status()],
            "pending_servers": [
                {"scope": scope, "namespace": name, "failures": one.failures, "reason": one.reason}
                for (scope, name), one in trying
            ],
            "clusters": [dataclasses.asdict(one) for one in parts.clusters.status()],
        }

    async def problems(self, scope: str | None) -> dict[str, object]:
        """What stands rejected or left out, oldest first; of one scope or of all."""
        pace = Pace()
        found = []
        for one in self._parts.problems.standing():
            if scope is None or one.name.startswith(f"{scope}/"):
                found.append(dump.standing(one))
            await pace.breathe()
        return {"problems": found, "dropped": self._parts.problems.dropped}

    async def history(self, scope: str | None, name: str | None, limit: int) -> dict[str, object]:
        """The resources that were heard of last, newest first, each with its last verdicts."""
        pace = Pace()
        found: list[dict[str, object]] = []
        for kind, resource, verdicts in self._parts.history.recent():
            if (scope is None or resource.scope == scope) and (name is None or resource.name == name):
                found.append(dump.record(kind, str(resource), verdicts))
                if len(found) >= limit:
                    break
            await pace.breathe()
        return {"resources": found, "kept": len(self._parts.history), "dropped": self._parts.history.dropped}

    async def explain(self, name: str, scope: str | None, token: Token | None) -> dict[str, object]:
        """Why the name is, or is not, where somebody looks for it, and which of several workers say otherwise."""
        answers, siblings = await self.explained(name, scope, token), self._parts.siblings
        if siblings is not None:
            agreeing.mark(answers, await siblings.explained(name, scope, token))
        return {"name": name, "answers": answers}

    async def explained(self, name: str, scope: str | None, token: Token | None) -> list[dict[str, Any]]:
        """The answers of this process."""
        # Beside the loop: an unknown name is compared with every name that there is.
        found = await asyncio.to_thread(explain, self._world(), name, scope, token)
        return [dump.explanation(one) for one in found]

    def _world(self) -> World:
        parts, ads, plane = self._parts, self._parts.ads, None
        if ads is not None:
            status = ads.status()
            plane = Plane(
                address=parts.plane_address(),
                connected=status.connected,
                settled=ads.is_ready,
                last_error=status.last_error,
                nacks={kind: state.last_nack for kind, state in status.types.items() if state.last_nack},
            )
        return World(
            catalogs={catalog.scope: catalog for catalog in parts.catalogs},
            history=parts.history,
            version=(lambda _kind, _name: None) if ads is None else ads.version,
            plane=plane,
            now=self._clock(),
            standing=parts.problems.standing(),
            trying={key: Trying(one.failures, one.reason) for key, one in parts.freshness.trying().items()},
            upstreams={one.url: one for one in parts.upstreams.status()},
            clusters={one.name: one for one in parts.clusters.status()},
        )

    async def tools(
        self, scope: str | None, namespace: str | None, query: str, after: str, limit: int
    ) -> dict[str, Any] | None:
        """A page of tools: in the order of names, or what a search finds. None: no such scope.

        `next` is the `after` of the next page (of a list alone: a search gives its best).
        """
        catalog = self._catalog(scope)
        if catalog is None:
            return None
        if query:
            await load(ENGINE)
            from arion_tds.search.query import search

            view = catalog.published.view
            within = None if namespace is None else (namespace,)
            hits = search(
                catalog.index, query, namespaces=within, limit=limit, offset=0, visible=view.qualified.__contains__
            )
            found = [view.qualified[name] for name, _ in hits.items]
            return {"scope": catalog.scope, "total": hits.total, "tools": await _shown(catalog, found)}
        view = catalog.published.view
        # Beside the loop: where not all that is held is listed, there is no order to read it from.
        total, page = await asyncio.to_thread(_page, view, namespace, after, limit)
        shown = await _shown(catalog, [view.tools[name] for name in page[:limit]])
        answer: dict[str, Any] = {"scope": catalog.scope, "total": total, "tools": shown}
        if len(page) > limit:
            answer["next"] = page[limit - 1]
        return answer

    def tool(self, scope: str | None, name: str) -> dict[str, object] | None:
        """One tool with its schemas. None: no such scope, or no such tool in it."""
        catalog = self._catalog(scope)
        entry = None if catalog is None else catalog.published.view.find(name)
        if catalog is None or entry is None:
            return None
        one = entry.tool
        return {
            **dump.tool(catalog, entry),
            "scope": catalog.scope,
            "inputSchema": one.input_schema.value(),
            "outputSchema": None if one.output_schema is None else one.output_schema.value(),
        }

    def _catalog(self, scope: str | None) -> Catalog | None:
        """The scope's; without one, the first."""
        catalogs = self._parts.catalogs
        return next((one for one in catalogs if scope in {None, one.scope}), None)


def _hear(events: Events, catalog: Catalog) -> Callable[[], None]:
    return catalog.published.listen(lambda old, new: hearing.published(events, catalog.scope, old, new))


def _page(view: View, namespace: str | None, after: str, limit: int) -> tuple[int, list[str]]:
    """How many names there are in all, and those after that one in their order, one more than the limit."""
    if namespace is None and len(view.order) == len(view.tools):
        at = bisect.bisect_right(view.order, after)
        return len(view.order), view.order[at : at + limit + 1]
    names = [name for name, one in view.tools.items() if namespace is None or one.tool.namespace == namespace]
    return len(names), heapq.nsmallest(limit + 1, (name for name in names if name > after))


async def _shown(catalog: Catalog, entries: Sequence[Entry]) -> list[dict[str, object]]:
    pace, shown = Pace(), []
    for one in entries:
        shown.append(dump.tool(catalog, one))
        await pace.breathe()
    return shown
