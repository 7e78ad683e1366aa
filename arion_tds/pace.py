"""Long work in slices: the event loop is never held for more than about ten milliseconds.

Used by ingest and catalog between the steps of work whose size the control plane decides.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

SLICE: Final = 0.008
"""Seconds of work between two turns of the event loop; the bar for any stall is 50 ms."""


class Pace:
    """Yields to the event loop whenever a slice's worth of work has been done since it last did."""

    __slots__ = ("_clock", "_since")

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """`clock` gives seconds."""
        self._clock = clock
        self._since = clock()

    async def breathe(self) -> None:
        """Call between two steps of work."""
        if self._clock() - self._since > SLICE:
            await asyncio.sleep(0)
            self._since = self._clock()
