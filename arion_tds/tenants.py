"""All listeners of a process and the catalogs behind them, as the config of this moment wants them.

In: judged configs, at start and at every reload. Out: listeners that serve; scopes by name for ingest and the ADS
client. Built by app. A config is prepared whole before anything of it is used: everything that can be wrong with it is
found while the old one serves on, and then nothing has changed.

What a listener keeps when its config changes: its socket, if its address stays; its catalog, if its gateway does. A
catalog that must be made anew takes over what was delivered to the old one, so that no tool is missed in between.
Listeners that do not change notice nothing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from arion_tds import pace, static
from arion_tds.catalog import Catalog
from arion_tds.config.judging import Config
from arion_tds.errors import ConfigError
from arion_tds.ingest import Ingest
from arion_tds.listening import Content, Listener, Shared
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.model.gateway import Gateway
from arion_tds.model.server import McpServer
from arion_tds.rotation import Watched
from arion_tds.search.hits import ENGINE
from arion_tds.static import Static

_log = logging.getLogger("arion_tds.app")


class Keeper(static.Keeper, Protocol):
    """Keeps servers fresh."""

    def forget(self, scope: str, namespace: str) -> None:
        """The server is gone."""
        ...

    def forget_scope(self, scope: str) -> None:
        """Every server of the scope is gone."""
        ...


@dataclasses.dataclass(slots=True)
class Prepared:
    """The listeners that a config wants, in its order, and what is to be done to have them and no others.

    `fresh`: made for it and bound; the others serve already. `statics`: static content of catalogs made for it.
    """

    listeners: dict[str, Listener]
    fresh: list[Listener] = dataclasses.field(default_factory=list)
    statics: list[Static] = dataclasses.field(default_factory=list)
    old: dict[str, Listener] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Changed:
    """What a commit did to scopes: `gone` are consumed no longer, `anew` have another gateway.

    Of the latter the control plane is to send all again: what was refused before may be good now, and the other way.
    """

    gone: frozenset[str] = frozenset()
    anew: frozenset[str] = frozenset()


class Tenants:
    """Owned by app: `prepare` and `commit`, or `prepare` and `discard`, one config after the other."""

    def __init__(
        self, shared: Shared, ingest: Ingest, keeper: Keeper, scopes: dict[str, Catalog], tasks: asyncio.TaskGroup
    ) -> None:
        """`scopes` is what ingest looks catalogs up in: it is kept up to date here. `tasks` owns all that runs."""
        self.listeners: dict[str, Listener] = {}
        self.scopes = scopes
        self._shared = shared
        self._ingest = ingest
        self._keeper = keeper
        self._tasks = tasks
        self._alive: set[Listener] = set()  # bound and not ended, whatever became of the config they were made for

    @property
    def catalogs(self) -> list[Catalog]:
        """One per listener, in the order of the config."""
        return [listener.catalog for listener in self.listeners.values()]

    async def prepare(self, config: Config) -> Prepared:
        """Make and bind what the config wants and is not there. ConfigError or BindError: nothing has changed."""
        prepared = Prepared({}, old=dict(self.listeners))
        if any(one.search is not None or one.code_mode is not None for one in config.gateways):
            await pace.load(ENGINE)  # Else the first search would wait for it.
        try:
            problems: list[str] = []
            for settings, gateway in zip(config.file.listeners, gateways(config), strict=True):
                old = self.listeners.get(settings.name)
                same = (
                    old is not None
                    and old.catalog.gateway == gateway
                    and old.settings.tool_names is settings.tool_names
                )
                if old is not None and same and old.settings == settings:
                    prepared.listeners[settings.name] = old
                    continue
                if old is not None and same:
                    content = old.content
                else:
                    content = Content(Catalog(gateway, settings.tool_names), self._shared)
                    problems += await self._load(content.catalog, old, prepared)
                listener = Listener(settings, content, self._shared)
                prepared.listeners[settings.name] = listener
                prepared.fresh.append(listener)
            if problems:
                raise ConfigError(problems)
            for listener in prepared.fresh:
                self._alive.add(listener)
                await listener.bind(self._tasks, prepared.old.get(listener.settings.name))
        except BaseException:
            await self.discard(prepared)
            raise
        return prepared

    async def _load(self, catalog: Catalog, old: Listener | None, prepared: Prepared) -> list[str]:
        if old is not None and old.catalog.scope == catalog.scope:
            made = await static.load(catalog, self._ingest.derive, old.catalog.snapshot)
        else:
            made = await static.load(catalog, self._ingest.derive)
        prepared.statics.append(made)
        return [str(problem) for problem in made.problems]

    async def discard(self, prepared: Prepared) -> None:
        """The config will not be used after all."""
        for made in prepared.statics:
            made.discard(self._keeper)
        for listener in prepared.fresh:
            listener.end()
        for listener in prepared.fresh:
            await listener.ended()
            self._alive.discard(listener)

    async def commit(self, prepared: Prepared, delivered: Callable[[Kind, ResourceId], bool]) -> Changed:
        """Use the prepared config. `delivered` says of a resource of ours whether the control plane gave it to us.

        What is replaced or gone finishes its calls in the background.
        """
        before = [one.content for one in prepared.old.values()]
        after = [one.content for one in prepared.listeners.values()]
        old = {one.catalog.scope: one.catalog for one in before if one.catalog.gateway.scope is not None}
        anew: set[str] = set()
        for made in prepared.statics:
            scope = made.catalog.scope
            if scope in old:
                await self._succeed(made, old[scope], delivered)
                anew.add(scope)
            made.adopt(self._keeper)
        kept = {one.catalog.scope for one in after}
        for content in before:
            if content not in after:
                content.stop()
            if content.catalog.scope not in kept:
                content.catalog.retired = True
                self._keeper.forget_scope(content.catalog.scope)
        for content in after:
            if content not in before:
                content.start(self._tasks)
        self.listeners = prepared.listeners
        wanted = {one.scope: one for one in self.catalogs if one.gateway.scope is not None}
        gone = frozenset(self.scopes.keys() - wanted.keys())
        for scope in gone:
            del self.scopes[scope]
        self.scopes.update(wanted)
        return Changed(gone, frozenset(anew))

    async def serve(self, prepared: Prepared) -> None:
        """Take connections on what is new, and let what it replaces, or what is gone, finish."""
        for listener in prepared.fresh:
            await listener.serve()
            _log.info(
                "listener %s serves %s on %s",
                listener.settings.name,
                listener.catalog.scope,
                listener.endpoint,
            )
        for name, old in prepared.old.items():
            if prepared.listeners.get(name) is not old:
                _log.info("listener %s on %s ends%s", name, old.bound, "" if name in prepared.listeners else ": gone")
                old.end()
                self._tasks.create_task(self._see_off(old))

    async def end(self) -> None:
        """End all listeners at once, each within its drain timeout; also those of a change that was broken off."""
        leaving = list(self._alive)
        for listener in leaving:
            listener.end()
        for listener in leaving:
            await listener.ended()
            listener.content.stop()

    def watched(self) -> Iterator[Watched]:
        """Files of the listeners that may be rotated."""
        for listener in self.listeners.values():
            yield from listener.watched()

    async def _see_off(self, old: Listener) -> None:
        await old.ended()
        self._alive.discard(old)

    async def _succeed(self, made: Static, old: Catalog, delivered: Callable[[Kind, ResourceId], bool]) -> None:
        """The new catalog takes the old one's place."""
        new = made.catalog
        refused = await new.succeed(old, lambda kind, name: delivered(kind, ResourceId(new.scope, name)))
        for problem in refused:
            _log.warning("%s: %s does not fit the new config: %s", new.scope, problem.where, problem.why)
        static_now = {server.namespace for server in new.gateway.servers}
        for server in old.gateway.servers:
            held = new.snapshot.namespaces.get(server.namespace)
            if server.namespace not in static_now and held is None:
                self._keeper.forget(new.scope, server.namespace)
        for held in new.snapshot.namespaces.values():
            if isinstance(held.definition, McpServer) and held.definition not in made.served:
                self._keeper.follow(new, held.definition)


def gateways(config: Config) -> Iterator[Gateway]:
    """The gateways with their listeners' own static servers beside those of the McpGateway message."""
    for made, listener in zip(config.gateways, config.file.listeners, strict=True):
        own = tuple(one.server(listener.name) for one in listener.stdio_servers)
        yield dataclasses.replace(made, servers=(*made.servers, *own))
