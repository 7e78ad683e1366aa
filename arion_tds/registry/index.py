"""Names to what they stand for, copied on write in pieces: one change costs the same in a catalog of any size.

Used by registry (published name to tool) and by view (name to entry).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final, Generic, TypeVar, overload

_SHARDS: Final = 256  # a shard of a catalog of 50,000 holds 200 names

T = TypeVar("T")
D = TypeVar("D")


class Index(Mapping[str, T], Generic[T]):
    """Immutable, in no particular order. Names are spread over shards by hash; unchanged shards are shared."""

    __slots__ = ("_count", "_shards")

    def __init__(self, shards: tuple[Mapping[str, T], ...] = ({},) * _SHARDS, count: int = 0) -> None:
        """Without arguments: empty. `count` names in all shards together."""
        self._shards = shards
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(self._shards)

    def __getitem__(self, name: str) -> T:
        return self._shards[hash(name) % _SHARDS][name]

    def __contains__(self, name: object) -> bool:
        return name in self._shards[hash(name) % _SHARDS]

    @overload
    def get(self, name: str, /) -> T | None: ...
    @overload
    def get(self, name: str, default: T | D, /) -> T | D: ...
    def get(self, name: str, default: T | D | None = None, /) -> T | D | None:
        """What the name stands for."""
        return self._shards[hash(name) % _SHARDS].get(name, default)


class Draft(Generic[T]):
    """A change of an Index in the making, used by one reduction or one publication."""

    __slots__ = ("_count", "_own", "_shards")

    def __init__(self, index: Index[T]) -> None:
        """Shares everything with `index` until it differs."""
        self._shards: list[Mapping[str, T]] = list(index._shards)  # noqa: SLF001 - its draft
        self._count = len(index)
        self._own: dict[int, dict[str, T]] = {}

    def get(self, name: str) -> T | None:
        """What the name stands for, as changed so far."""
        return self._shards[hash(name) % _SHARDS].get(name)

    def put(self, name: str, value: T) -> None:
        """Add the name or let it stand for something else."""
        shard = self._shard(name)
        self._count += name not in shard
        shard[name] = value

    def drop(self, name: str) -> T:
        """Take the name out, and say what it stood for; it must be there."""
        value = self._shard(name).pop(name)
        self._count -= 1
        return value

    def finish(self) -> Index[T]:
        """The changed Index. The draft must not be used any more."""
        return Index(tuple(self._shards), self._count)

    def _shard(self, name: str) -> dict[str, T]:
        at = hash(name) % _SHARDS
        own = self._own.get(at)
        if own is None:
            own = self._own[at] = dict(self._shards[at])
            self._shards[at] = own
        return own
