"""The versions of one type that are in use, by scope: what `initial_resource_versions` says after a reconnect.

In: what a response touches, then what became of each resource. Out: the map, as honest as it can be. Called by
xds.session.

A claim must never hide a difference: the server sends nothing for a version that it believes we hold. So a resource
whose fate is not known (its handler has not answered yet, or answers crossed) is claimed as `UNSETTLED`, which no
server calls a version of its own: it then sends the resource, or says that it is gone. Leaving the name out would let
a resource that was deleted meanwhile live for ever (istio/istio#41494).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from typing import Final

from arion_tds.model.delivery import ResourceId

UNSETTLED: Final = "unsettled"


@dataclasses.dataclass(slots=True)
class _Race:
    """A resource that several unanswered responses touch: the newest decides, if it is accepted."""

    count: int
    newest: int
    decided: bool = False


class Held:
    """Versions of one type. Owned by its session. Names are whole resource IDs; `seq` numbers responses by arrival.

    What is in use is kept by the names within its scope, strings that the catalog holds anyway.
    """

    __slots__ = ("_flying", "_races", "_scoped", "_since", "_versions")

    def __init__(self, scopes: Iterable[str], *, scoped: bool = True) -> None:
        """`scopes`: those consumed from the start (generation 0). Not `scoped`: names are in the scope ""."""
        self._scoped = scoped
        self._versions: dict[str, dict[str, str]] = {scope: {} for scope in scopes}
        self._since: dict[str, int] = dict.fromkeys(self._versions, 0)
        self._flying: dict[str, int] = {}
        self._races: dict[str, _Race] = {}

    def __len__(self) -> int:
        return sum(len(names) for names in self._versions.values())

    def add_scope(self, scope: str, generation: int) -> None:
        """Consume the scope from now on: what responses of an earlier generation say about it is not to be trusted."""
        self._versions[scope] = {}
        self._since[scope] = generation

    def drop_scope(self, scope: str) -> None:
        """Forget everything of the scope."""
        self._versions.pop(scope, None)
        self._since.pop(scope, None)

    def drop(self, names: Iterable[str]) -> None:
        """These, which have no scope, are not asked for any more, and what they held has been dropped."""
        versions = self._versions[""]
        for name in names:
            versions.pop(name, None)

    def unsettle(self, scope: str) -> None:
        """The server is to say all of the scope anew: nothing of it is claimed by its version."""
        names = self._versions.get(scope)
        if names is not None:
            self._versions[scope] = dict.fromkeys(names, UNSETTLED)

    def touch(self, names: Collection[str], seq: int) -> None:
        """A response about these resources goes to the handler."""
        flying = self._flying
        if not flying.keys().isdisjoint(names):
            for name in names:
                if name in flying:
                    self._contest(name, seq)
        flying.update(dict.fromkeys(names, seq))

    def settle(self, id: ResourceId, outcome: str | None, seq: int, generation: int) -> None:  # noqa: A002
        """`outcome` is what the response left in use: a version, or None for a resource that is gone."""
        name = str(id)
        if name in self._races:
            outcome, known = self._race(name, seq, outcome)
        else:
            self._landed(name)
            known = True
        if known:
            self._record(id, outcome, generation)

    def keep(self, name: str) -> None:
        """The handler rejected the resource: what was in use before still is, and with it its version."""
        race = self._races.get(name)
        if race is None:
            self._landed(name)
        else:
            self._leave(name, race)

    def claim(self, id: ResourceId, version: str) -> None:  # noqa: A002
        """The version is in use after all; ignored when the scope is not consumed."""
        names = self._versions.get(id.scope)
        if names is not None:
            names[id.name] = version

    def alive(self, id: ResourceId, version: str) -> bool:  # noqa: A002
        """Whether a heartbeat of that version is one of a resource that we hold or are about to."""
        return str(id) in self._flying or self.version(id) in {version, UNSETTLED}

    def has(self, id: ResourceId) -> bool:  # noqa: A002
        """Whether the resource is held or in a handler's hands."""
        return str(id) in self._flying or self.version(id) is not None

    def version(self, id: ResourceId) -> str | None:  # noqa: A002
        """The version of the resource that is claimed to be in use; None: none is."""
        return self._versions.get(id.scope, {}).get(id.name)

    def names(self, scope: str) -> list[str]:
        """Every resource of the scope that is held or in a handler's hands."""
        names = self._versions.get(scope)
        if names is None:
            return []
        found = {str(ResourceId(scope, name)): None for name in names}
        found.update((name, None) for name in self._flying if self._scope_of(name) == scope)
        return list(found)

    def claims(self) -> dict[str, str]:
        """`initial_resource_versions` for a stream that begins now."""
        claims: dict[str, str] = {}
        for scope, names in self._versions.items():
            claims.update((str(ResourceId(scope, name)), version) for name, version in names.items())
        for name in self._flying:
            if self._scope_of(name) in self._versions:
                claims[name] = UNSETTLED
        return claims

    def _scope_of(self, name: str) -> str:
        if not self._scoped:
            return ""
        server, config, _ = name.split("/", 2)
        return f"{server}/{config}"

    def _contest(self, name: str, seq: int) -> None:
        race = self._races.get(name)
        if race is None:
            self._races[name] = _Race(2, seq)
        else:
            race.count += 1
            race.newest = seq
            race.decided = False

    def _race(self, name: str, seq: int, outcome: str | None) -> tuple[str | None, bool]:
        race = self._races[name]
        self._leave(name, race)
        if seq == race.newest:
            race.decided = True
            return outcome, True
        return UNSETTLED, not race.decided

    def _leave(self, name: str, race: _Race) -> None:
        race.count -= 1
        if race.count == 0:
            del self._races[name]
            self._landed(name)

    def _landed(self, name: str) -> None:
        self._flying.pop(name, None)
        if not self._flying:
            self._flying = {}  # one that was large keeps its room

    def _record(self, id: ResourceId, outcome: str | None, generation: int) -> None:  # noqa: A002
        names = self._versions.get(id.scope)
        if names is None:
            return
        if self._since[id.scope] > generation and outcome is not None:
            # The scope went and came back meanwhile: whether this content reached the old one or the new, who knows.
            outcome = UNSETTLED
        if outcome is None:
            names.pop(id.name, None)
        else:
            names[id.name] = outcome
