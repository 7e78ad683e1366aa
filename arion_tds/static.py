"""A gateway's static content: what its config holds, committed to a catalog like delivered content.

In: a catalog that is empty still, a way to derive tools, and what an older catalog of the same gateway holds. Out:
`Static`: what was refused, for whoever starts or reloads to fail on, and the servers that are to be kept fresh once the
catalog is in use. Called by ingest at start and by tenants.

A static server that cannot be asked keeps no gateway from starting: it is asked again until it can.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from arion_tds.catalog import Catalog
from arion_tds.model.change import Change, PutServer, PutSource, PutTool, PutToolkit
from arion_tds.model.derived import Derived
from arion_tds.model.problem import Problem
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.registry.snapshot import EMPTY, Snapshot

_log = logging.getLogger("arion_tds.ingest")

Derive = Callable[[OpenApiSource | McpServer], Awaitable[tuple[Change, Derived]]]


class Keeper(Protocol):
    """Keeps servers fresh: the part of ingest.Keeper that static servers need."""

    def follow(self, catalog: Catalog, server: McpServer) -> None:
        """The server is served now."""
        ...

    def refused(self, server: McpServer) -> None:
        """Its list was not taken after all."""
        ...

    def pending(self, catalog: Catalog, server: McpServer, update: None) -> None:
        """The server could not be asked: go on trying."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Static:
    """What became of it. `served` servers have their tools in the catalog, `silent` ones could not be asked."""

    catalog: Catalog
    problems: tuple[Problem, ...] = ()
    served: tuple[McpServer, ...] = ()
    silent: tuple[McpServer, ...] = ()

    def adopt(self, keeper: Keeper) -> None:
        """The catalog is in use: its servers are followed from here on."""
        for server in self.served:
            keeper.follow(self.catalog, server)
        for server in self.silent:
            keeper.pending(self.catalog, server, None)

    def discard(self, keeper: Keeper) -> None:
        """The catalog will not be used."""
        for server in self.served:
            keeper.refused(server)


async def load(catalog: Catalog, derive: Derive, known: Snapshot = EMPTY) -> Static:
    """Commit the gateway's static content. A source or server that stands in `known` as it is is not asked again."""
    gateway = catalog.gateway
    changes: list[Change] = [PutTool(tool) for tool in gateway.tools]
    changes += [PutToolkit(toolkit) for toolkit in gateway.toolkits]
    problems: list[Problem] = []
    silent: list[McpServer] = []

    async def derived(value: OpenApiSource | McpServer) -> tuple[Change, Derived]:
        held = known.namespaces.get(value.namespace)
        if held is not None and held.definition == value:
            tools = tuple(held.tools.values())
            again = PutSource(value, tools) if isinstance(value, OpenApiSource) else PutServer(value, tools)
            return again, Derived(tools)
        return await derive(value)

    values: list[OpenApiSource | McpServer] = [*gateway.sources, *gateway.servers]
    for value, (change, found) in zip(values, await asyncio.gather(*map(derived, values)), strict=True):
        if found.problem is None:
            changes.append(change)
        elif isinstance(value, McpServer):
            _log.warning("static MCP server %s: %s; it is asked again", value.namespace, found.problem)
            silent.append(value)
        else:
            problems.append(Problem(f"{catalog.scope}: static source {value.namespace!r}", found.problem))
    served: list[McpServer] = []
    for change, verdict in zip(changes, await catalog.commit(changes), strict=True):
        if isinstance(change, PutServer):
            served.append(change.server)
        if verdict.problem is not None:
            problems.append(Problem(f"{catalog.scope}: static {verdict.problem.where}", verdict.problem.why))
        for warning in verdict.warnings:
            _log.warning("static %s: %s", catalog.scope, warning)
    return Static(catalog, tuple(problems), tuple(served), tuple(silent))
