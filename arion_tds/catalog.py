"""One scope's content from registry to View: the only place where a scope changes.

In: changes (decoded, expanded, discovered). Out: a verdict per change, and a published View in which what was accepted
is listed, found and callable at the same moment. Called by ingest and by the refresh of upstream servers.

The costly part of a publication, each tool's JSON and its search terms, is done in slices before the View is swapped;
the swap itself is a few dict copies. Commits of one scope are serialised, first come, first served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from arion_tds import view as views
from arion_tds.counting import TokenCounts
from arion_tds.model.change import Change, PutServer, PutSource, PutTool, PutToolkit, Verdict
from arion_tds.model.delivery import Kind
from arion_tds.model.gateway import Gateway
from arion_tds.model.names import Naming
from arion_tds.model.problem import Problem
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.pace import Pace
from arion_tds.registry import snapshot as snapshots
from arion_tds.registry.reduce import Outcome, Rules, reduce
from arion_tds.registry.snapshot import Snapshot
from arion_tds.search import tokenize
from arion_tds.search.index import SearchIndex
from arion_tds.view import Entry, Published


class Catalog:
    """The registry, search index, token counts and published View of one gateway."""

    def __init__(self, gateway: Gateway, naming: Naming) -> None:
        """Empty; static content is committed like delivered content. `settled`: index and View hold the same tools.

        `retired`: nobody serves it any more, nor a successor of it.
        """
        self.gateway = gateway
        self.naming = naming
        self.scope = gateway.scope or gateway.name
        self.published = Published(self.scope, naming)
        self.tokens = TokenCounts(self.published)
        if gateway.discloses:
            self.tokens.want()
        self.index = SearchIndex()
        self.settled = True
        self.snapshot = snapshots.EMPTY
        self.retired = False
        self._successor: Catalog | None = None
        self._rules = Rules(naming, code_mode=gateway.code_mode is not None, reserved=gateway.reserved)
        self._writing = asyncio.Lock()

    async def commit(self, changes: Sequence[Change], *, when: Callable[[], bool] | None = None) -> tuple[Verdict, ...]:
        """Apply the changes as one step and publish. A rejected change leaves no trace; the others apply.

        `when` is asked once it is this commit's turn: no means that the changes are out of date, and nothing happens.
        """
        async with self._writing:
            if self._successor is not None:
                return await self._successor.commit(changes, when=when)
            if when is not None and not when():
                return ()
            outcome = reduce(self.snapshot, changes, self._rules)
            gone, come = _gone_and_come(outcome)
            if gone or come or outcome.diff.toolkits_changed:
                self.settled = False
                await self._publish(outcome, gone, come)
                self.settled = True
            else:
                self.snapshot = outcome.snapshot
            return outcome.verdicts

    @property
    def current(self) -> Catalog:
        """The catalog that stands in this one's place by now: this one, or a successor."""
        return self if self._successor is None else self._successor.current

    async def succeed(self, old: Catalog, delivered: Callable[[Kind, str], bool]) -> list[Problem]:
        """Hold what was delivered to `old` as well, and get from here on what is committed to it.

        `delivered` says of a resource name whether it came from the control plane; the rest is the old config's. What
        does not fit beside the new static content is returned, and not held.
        """
        async with old._writing:
            verdicts = await self.commit(list(_puts(old.snapshot, delivered)))
            old._successor = self
            old.snapshot = snapshots.EMPTY  # who reads the old one still has its View
        return [verdict.problem for verdict in verdicts if verdict.problem is not None]

    async def _publish(self, outcome: Outcome, gone: list[Tool], come: list[Tool]) -> None:
        pace = Pace()
        entries: list[Entry] = []
        for tool in come:
            entries.append(views.entry(tool, self.naming))
            # A term set that the View does not hold yet is never shown: search asks the View for every hit.
            self.index.add(tool.qualified, tool.namespace, tokenize.document(tool), tool.rbac)
            await pace.breathe()
        new = self.published.view.replace(
            gone,
            entries,
            outcome.snapshot.toolkits,
            eager_only=self.gateway.discloses,
            counted=self.gateway.code_mode is not None,
        )
        stay = {tool.qualified for tool in come}
        self.snapshot = outcome.snapshot
        self.published.publish(new)
        for tool in gone:
            if tool.qualified not in stay:
                self.index.remove(tool.qualified)
                await pace.breathe()


def _puts(held: Snapshot, delivered: Callable[[Kind, str], bool]) -> Iterator[Change]:
    for name, space in sorted(held.namespaces.items()):  # the same one gives way in every process
        tools = tuple(space.tools.values())
        match space.definition:
            case None:
                own = (tool for _, tool in sorted(space.tools.items()) if delivered(Kind.TOOL, tool.qualified))
                yield from map(PutTool, own)
            case OpenApiSource() as source:
                if delivered(Kind.SOURCE, name):
                    yield PutSource(source, tools)
            case server:
                if delivered(Kind.SERVER, name):
                    yield PutServer(server, tools)
    for name, toolkit in held.toolkits.items():
        if delivered(Kind.TOOLKIT, name):
            yield PutToolkit(toolkit)


def _gone_and_come(outcome: Outcome) -> tuple[list[Tool], list[Tool]]:
    diff = outcome.diff
    gone = [*diff.removed, *(old for old, _ in diff.replaced)]
    come = [*diff.added, *(new for _, new in diff.replaced)]
    return gone, come
