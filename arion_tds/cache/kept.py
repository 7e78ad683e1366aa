"""What the cache is told, and what it tells, as values. Used by cache.keeping and cache.store, and by coldstart."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from arion_tds.model.delivery import Delivered, Kind, ResourceId


@dataclasses.dataclass(slots=True)
class Batch:
    """Changes to keep. None: gone. `listings` are tool lists of MCP servers by URL, `about` is text by key."""

    resources: dict[tuple[Kind, ResourceId], Delivered | None] = dataclasses.field(default_factory=dict)
    listings: dict[str, tuple[bytes, ...] | None] = dataclasses.field(default_factory=dict)
    about: dict[str, str] = dataclasses.field(default_factory=dict)
    scopes_gone: set[str] = dataclasses.field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.resources or self.listings or self.about or self.scopes_gone)


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """What was read. `damage` says what was wrong with the file and where it is now, "" for nothing."""

    resources: Mapping[Kind, tuple[Delivered, ...]] = dataclasses.field(default_factory=dict)
    listings: Mapping[str, tuple[bytes, ...]] = dataclasses.field(default_factory=dict)
    about: Mapping[str, str] = dataclasses.field(default_factory=dict)
    damage: str = ""
