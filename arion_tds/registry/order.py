"""Names in their order, copied on write in pieces: a name that comes or goes costs the same among any number of them.

Used by listing for what is listed, and to whom.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, overload

RUN: Final = 1024
"""Names of a run before it is cut."""


class Names(Sequence[str]):
    """Immutable, sorted, each name once. Unchanged runs are shared; equal to any sequence of the same names."""

    __slots__ = ("_ends", "_firsts", "_lengths", "_runs")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, names: Iterable[str] = ()) -> None:
        """In any order."""
        runs = _cut(sorted(names))
        self._lay(runs, [run[0] for run in runs], list(map(len, runs)))

    def _lay(self, runs: list[list[str]], firsts: list[str], lengths: list[int]) -> None:
        self._runs = runs
        self._firsts = firsts
        self._lengths = lengths
        self._ends = list(itertools.accumulate(lengths))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(self._runs)

    def __contains__(self, name: object) -> bool:
        if not self._runs or not isinstance(name, str):
            return False
        run = self._runs[self._run(name)]
        at = bisect.bisect_left(run, name)
        return at < len(run) and run[at] == name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return self is other or (len(self) == len(other) and all(map(str.__eq__, self, other)))

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if step == 1:
                return self._slice(start, stop)
            return [self[place] for place in range(start, stop, step)]
        place = at + len(self) if at < 0 else at
        if not 0 <= place < len(self):
            raise IndexError(at)
        found = bisect.bisect_right(self._ends, place)
        run = self._runs[found]
        return run[place - self._ends[found] + len(run)]

    def replace(self, gone: Collection[str], come: Collection[str]) -> Names:
        """Without `gone` (names that may be missing), with `come` (names that are not there, or that go)."""
        own: dict[int, list[str]] = {}
        for name in gone:
            if self._runs:
                run = self._own(own, name)
                at = bisect.bisect_left(run, name)
                if at < len(run) and run[at] == name:
                    del run[at]
        if not self._runs:
            return Names(come)
        for name in come:
            self._own(own, name).append(name)
        runs, firsts, lengths = list(self._runs), list(self._firsts), list(self._lengths)
        for at in sorted(own, reverse=True):
            pieces = _cut(sorted(own[at]))
            runs[at : at + 1] = pieces
            firsts[at : at + 1] = [piece[0] for piece in pieces]
            lengths[at : at + 1] = map(len, pieces)
        made = Names()
        made._lay(runs, firsts, lengths)
        return made

    def _own(self, own: dict[int, list[str]], name: str) -> list[str]:
        at = self._run(name)
        found = own.get(at)
        if found is None:
            found = own[at] = list(self._runs[at])
        return found

    def _run(self, name: str) -> int:
        """Where the name is, if it is there."""
        return max(0, bisect.bisect_right(self._firsts, name) - 1)

    def _slice(self, start: int, stop: int) -> list[str]:
        found: list[str] = []
        for at in range(bisect.bisect_right(self._ends, start), len(self._runs)):
            run = self._runs[at]
            begin = self._ends[at] - len(run)
            if begin >= stop:
                break
            found += run[max(0, start - begin) : stop - begin]
        return found


def _cut(run: list[str]) -> list[list[str]]:
    """The sorted names in runs; where one is too long, each gets room to grow."""
    if len(run) <= RUN:
        return [run] if run else []
    return [run[at : at + RUN // 2] for at in range(0, len(run), RUN // 2)]
