"""Names to what they stand for, copied on write in pieces: one change costs about the same in a catalog of any size.

Used by registry (names to tools and namespaces) and by view (name to entry).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final, Generic, TypeVar, overload

_FILL: Final = 64
"""Names per shard at which there come to be four times as many: a change copies one shard and the list of them."""

T = TypeVar("T")
D = TypeVar("D")


class Index(Mapping[str, T], Generic[T]):
    """Immutable, in no particular order. Names are spread over shards by hash; unchanged shards are shared."""

    __slots__ = ("_count", "_mask", "_shards")

    def __init__(self, shards: tuple[Mapping[str, T], ...] = ({},), count: int = 0) -> None:
        """Without arguments: empty. `shards`: a power of two of them, with `count` names together."""
        self._shards = shards
        self._mask = len(shards) - 1
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(self._shards)

    def __getitem__(self, name: str) -> T:
        return self._shards[hash(name) & self._mask][name]

    def __contains__(self, name: object) -> bool:
        return name in self._shards[hash(name) & self._mask]

    @overload
    def get(self, name: str, /) -> T | None: ...
    @overload
    def get(self, name: str, default: T | D, /) -> T | D: ...
    def get(self, name: str, default: T | D | None = None, /) -> T | D | None:
        """What the name stands for."""
        return self._shards[hash(name) & self._mask].get(name, default)


class Draft(Mapping[str, T], Generic[T]):
    """A change of an Index in the making, used by one reduction or one publication; reads as what it has become."""

    __slots__ = ("_count", "_mask", "_own", "_shards")

    def __init__(self, index: Index[T]) -> None:
        """Shares everything with `index` until it differs."""
        self._shards: list[Mapping[str, T]] = list(index._shards)  # noqa: SLF001 - its draft
        self._mask = len(self._shards) - 1
        self._count = len(index)
        self._own: dict[int, dict[str, T]] = {}

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(self._shards)

    def __getitem__(self, name: str) -> T:
        return self._shards[hash(name) & self._mask][name]

    @overload
    def get(self, name: str, /) -> T | None: ...
    @overload
    def get(self, name: str, default: T | D, /) -> T | D: ...
    def get(self, name: str, default: T | D | None = None, /) -> T | D | None:
        """What the name stands for, as changed so far."""
        return self._shards[hash(name) & self._mask].get(name, default)

    def put(self, name: str, value: T) -> None:
        """Add the name or let it stand for something else."""
        shard = self._shard(name)
        self._count += name not in shard
        shard[name] = value
        if self._count > _FILL * len(self._shards):
            self._spread()

    def drop(self, name: str) -> T:
        """Take the name out, and say what it stood for; it must be there."""
        value = self._shard(name).pop(name)
        self._count -= 1
        return value

    def finish(self) -> Index[T]:
        """The changed Index. The draft must not be used any more."""
        return Index(tuple(self._shards), self._count)

    def _shard(self, name: str) -> dict[str, T]:
        at = hash(name) & self._mask
        own = self._own.get(at)
        if own is None:
            own = self._own[at] = dict(self._shards[at])
            self._shards[at] = own
        return own

    def _spread(self) -> None:
        """Have four times as many shards."""
        self._mask = mask = 4 * len(self._shards) - 1
        self._own = {at: {} for at in range(mask + 1)}
        for shard in self._shards:
            for name, value in shard.items():
                self._own[hash(name) & mask][name] = value
        self._shards = list(self._own.values())
