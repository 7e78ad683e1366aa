"""Numbers in the order of their names: what enumeration and name prefixes are read from.

In: names that come and go, each with a slot. Out: slots in name order, all or a prefix's. Called by search.index.

The names stand in sorted runs of at most a thousand, slots in lists beside them: a change touches one run, and a long
stretch of slots is copied run by run without looking at a name.
"""

from __future__ import annotations

import bisect
from typing import Final

RUN: Final = 1024
"""Names of a run before it is halved."""

_LAST: Final = "\U0010ffff"


class Order:
    """Slots sorted by name; several may have the same one. Names are kept as they are given, not copied."""

    def __init__(self) -> None:
        self._count = 0
        self._runs: list[list[str]] = [[]]
        self._slots: list[list[int]] = [[]]
        self._firsts: list[str] = [""]  # by run: no name of it is smaller; the first takes every name

    def __len__(self) -> int:
        return self._count

    def add(self, name: str, slot: int) -> None:
        """Put in a slot that does not have this name yet."""
        at = bisect.bisect_right(self._firsts, name) - 1
        run, slots = self._runs[at], self._slots[at]
        place = bisect.bisect_right(run, name)
        run.insert(place, name)
        slots.insert(place, slot)
        self._count += 1
        if len(run) > RUN:
            half = len(run) // 2
            self._firsts.insert(at + 1, run[half])
            self._runs.insert(at + 1, run[half:])
            self._slots.insert(at + 1, slots[half:])
            del run[half:], slots[half:]

    def remove(self, name: str, slot: int) -> None:
        """Take out the slot of this name, which must be there."""
        at = self._run(name)
        run, slots = self._runs[at], self._slots[at]
        place = bisect.bisect_left(run, name)
        if place == len(run) or slots[place] != slot:  # one of several of the name, here or in the runs that follow
            while slot not in slots[place : bisect.bisect_right(run, name, place)]:
                at, place = at + 1, 0
                run, slots = self._runs[at], self._slots[at]
            place = slots.index(slot, place)
        del run[place], slots[place]
        self._count -= 1
        if not run and at:
            del self._firsts[at], self._runs[at], self._slots[at]

    def prefixed(self, prefix: str) -> list[int]:
        """The slots of names that begin with the prefix (every name when it is empty), in name order."""
        found: list[int] = []
        end = prefix + _LAST
        for at in range(self._run(prefix), bisect.bisect_right(self._firsts, end)):
            run, slots = self._runs[at], self._slots[at]
            if run and run[0] >= prefix and run[-1] < end:
                found += slots
            else:
                start = bisect.bisect_left(run, prefix)
                found += slots[start : bisect.bisect_left(run, end, start)]
        return found

    def page(self, start: int, end: int) -> list[int]:
        """The slots of the names from position `start` up to `end`."""
        found: list[int] = []
        for slots in self._slots:
            if end <= 0:
                break
            found += slots[max(start, 0) : end]
            start -= len(slots)
            end -= len(slots)
        return found

    def _run(self, name: str) -> int:
        """The first run that may hold the name."""
        return max(bisect.bisect_left(self._firsts, name) - 1, 0)
