"""Long work in slices, or beside it: the event loop is never held for more than about ten milliseconds.

Used by ingest and catalog between the steps of work whose size the control plane decides, and by finding, tenants and
admin for what takes long to import.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable
from typing import Final

SLICE: Final = 0.008
"""Seconds of work between two turns of the event loop; the bar for any stall is 50 ms."""

_loaded: set[str] = set()


async def load(module: str) -> None:
    """Import a module in a thread, where it has not been before: after that an import of it takes no time."""
    if module not in _loaded:
        await asyncio.to_thread(importlib.import_module, module)
        _loaded.add(module)


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
