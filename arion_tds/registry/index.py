"""Published name to tool, copied on write in pieces, so that one change costs the same in a catalog of any size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from arion_tds.model.tool import Tool

_SHARDS: Final = 256  # a shard of a catalog of 50,000 holds 200 names


class Index:
    """Immutable. Names are spread over shards by hash; a new Index shares every shard that did not change."""

    __slots__ = ("_count", "_shards")

    def __init__(self, shards: tuple[Mapping[str, Tool], ...], count: int) -> None:
        """`count` names in all shards together."""
        self._shards = shards
        self._count = count

    def __len__(self) -> int:
        return self._count

    def get(self, published: str) -> Tool | None:
        """The tool of that published name."""
        return self._shards[hash(published) % _SHARDS].get(published)


class Draft:
    """A change of an Index in the making, used by one reduction."""

    __slots__ = ("_count", "_own", "_shards")

    def __init__(self, index: Index) -> None:
        """Shares everything with `index` until it differs."""
        self._shards: list[Mapping[str, Tool]] = list(index._shards)  # noqa: SLF001 - its draft
        self._count = len(index)
        self._own: dict[int, dict[str, Tool]] = {}

    def get(self, published: str) -> Tool | None:
        """The tool of that published name, as changed so far."""
        return self._shards[hash(published) % _SHARDS].get(published)

    def put(self, published: str, tool: Tool) -> None:
        """Add the name or give it another tool."""
        shard = self._shard(published)
        self._count += published not in shard
        shard[published] = tool

    def drop(self, published: str) -> None:
        """Take the name out; it must be there."""
        del self._shard(published)[published]
        self._count -= 1

    def finish(self) -> Index:
        """The changed Index. The draft must not be used any more."""
        return Index(tuple(self._shards), self._count)

    def _shard(self, published: str) -> dict[str, Tool]:
        at = hash(published) % _SHARDS
        own = self._own.get(at)
        if own is None:
            own = self._own[at] = dict(self._shards[at])
            self._shards[at] = own
        return own


EMPTY: Final = Index(({},) * _SHARDS, 0)
