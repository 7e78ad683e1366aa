"""What is published: per fleet and type, every resource by name. Pure; a change costs what changed, not the catalog.

In: entries from documents (files, HTTP, mock). Out: which names changed, for the streams that follow them.
Called by server, http, mock (the event loop is its only writer).
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

_NOTHING: Final[Mapping[str, Held]] = MappingProxyType({})


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """One published resource: opaque version (by default a hash of the bytes) and the Any's value bytes."""

    version: str
    payload: bytes


class Origin(enum.Enum):
    """Where an entry came from. A file wins over what was put."""

    FILE = "file"
    PUT = "put"


class Key(NamedTuple):
    """What is unique over everything published. `name` is the full resource id."""

    fleet: str
    type_url: str
    name: str


Changes = dict[str, dict[str, set[str]]]
"""Fleet → type URL → names that were added, altered or removed. Empty: nothing changed."""


class Snapshot:
    """All fleets. One is published from its first entry (or `publish_fleet`) on, and stays so when it is emptied."""

    def __init__(self) -> None:
        self._fleets: dict[str, dict[str, dict[str, Held]]] = {}
        self._origins: dict[Key, Origin] = {}

    def publish_fleet(self, fleet: str) -> None:
        """Make the fleet known although it may be empty: its streams get (empty) answers from now on."""
        self._fleets.setdefault(fleet, {})

    def is_published(self, fleet: str) -> bool:
        """Whether streams of this fleet are answered."""
        return fleet in self._fleets

    @property
    def fleets(self) -> tuple[str, ...]:
        """Published fleets, in order of their names."""
        return tuple(sorted(self._fleets))

    def catalog(self, fleet: str, type_url: str) -> Mapping[str, Held]:
        """Name → resource, as it stands now (a live view; do not keep it). Empty for what is not known."""
        return self._fleets.get(fleet, {}).get(type_url, _NOTHING)

    def types(self, fleet: str) -> tuple[str, ...]:
        """Type URLs that the fleet holds or held something of."""
        return tuple(self._fleets.get(fleet, ()))

    def get(self, key: Key) -> Held | None:
        """The published resource, or None."""
        return self.catalog(key.fleet, key.type_url).get(key.name)

    def origin(self, key: Key) -> Origin | None:
        """Where the entry came from, or None when there is no such entry."""
        return self._origins.get(key)

    def entries(self, fleet: str | None = None) -> Iterator[tuple[Key, Held, Origin]]:
        """Every entry (of one fleet, or of all), grouped by fleet and type."""
        for fleet_name in self.fleets if fleet is None else (fleet,):
            for type_url, catalog in self._fleets.get(fleet_name, {}).items():
                for name, held in catalog.items():
                    key = Key(fleet_name, type_url, name)
                    yield key, held, self._origins[key]

    def apply(self, updates: Iterable[tuple[Key, Held]], removals: Iterable[Key], origin: Origin) -> Changes:
        """Remove, then add or replace. Returns what really changed: equal bytes and version are no change.

        Removals touch entries of the same origin only: a file that goes does not take a PUT resource with it.
        """
        changes: Changes = {}
        incoming = dict(updates)
        for key in removals:
            if key in incoming or self._origins.get(key) is not origin:
                continue
            del self._origins[key]
            del self._fleets[key.fleet][key.type_url][key.name]
            _note(changes, key)
        for key, held in incoming.items():
            catalog = self._fleets.setdefault(key.fleet, {}).setdefault(key.type_url, {})
            self._origins[key] = origin
            if catalog.get(key.name) != held:
                catalog[key.name] = held
                _note(changes, key)
        return changes


def _note(changes: Changes, key: Key) -> None:
    changes.setdefault(key.fleet, {}).setdefault(key.type_url, set()).add(key.name)
