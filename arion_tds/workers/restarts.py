"""How long to wait before a process that ended by itself is replaced. Pure. Called by supervisor.

The first replacement starts at once. One that does not serve for a while either is followed after a second, then two,
up to half a minute, so that a fault at start does not become a load of its own.
"""

from __future__ import annotations

from typing import Final, Protocol

FIRST: Final = 1.0
LONGEST: Final = 30.0
GOOD: Final = 60.0
"""Seconds of serving after which a process that ends is replaced at once again."""


class Uniform(Protocol):
    """What is needed of `random.Random`."""

    def uniform(self, a: float, b: float) -> float:
        """A number between `a` and `b`."""
        ...


class Restarts:
    """Of one worker."""

    __slots__ = ("_failures", "_rng")

    def __init__(self, rng: Uniform) -> None:
        """`rng` takes up to a fifth off, so that workers that fail together do not come back together."""
        self._failures = 0
        self._rng = rng

    def delay(self, served: float) -> float:
        """Seconds to wait after one that served that long."""
        if served >= GOOD:
            self._failures = 0
        self._failures += 1
        if self._failures == 1:
            return 0.0
        reach = min(LONGEST, FIRST * 2.0 ** min(self._failures - 2, 16))
        return reach * self._rng.uniform(0.8, 1.0)
