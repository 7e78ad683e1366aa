"""Memory goes back to the system once a large delivery is done with, and is not kept for each thread.

In: how much was delivered. Out: a smaller process. Called by ingest, and by the cli at start.

glibc keeps what is freed between blocks that are in use, and a delivery is many copies of what is kept of it in the
end: after GitHub's document 24 MB were free and held. Giving them back takes 3 ms, and next to nothing where there is
nothing to give; it waits for a quiet moment all the same. Code that only the start or the delivery has run goes, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import mmap
import pathlib
from collections.abc import Callable
from typing import Final

LARGE: Final = 1 << 20
"""Bytes of deliveries after which it is worth it."""

QUIET: Final = 1.0
"""Seconds without a delivery: by then what it was made of has been dropped."""

_M_ARENA_MAX: Final = -8
"""From glibc's malloc.h."""


class Heap:
    """Counts deliveries, and trims. All state is the event loop's."""

    __slots__ = ("_delivered", "_due", "_quiet", "_trim")

    def __init__(self, trim: Callable[[], object] | None = None, *, quiet: float = QUIET) -> None:
        """`trim` gives back what is free; None: as the C library does it, if it can."""
        self._trim = trim or _trimmer()
        self._quiet = quiet
        self._delivered = 0
        self._due: asyncio.TimerHandle | None = None

    def delivered(self, size: int) -> None:
        """So many bytes of content have been applied."""
        self._delivered += size
        if self._trim is None or self._delivered < LARGE:
            return
        if self._due is not None:
            self._due.cancel()
        self._due = asyncio.get_running_loop().call_later(self._quiet, self._give_back)

    def _give_back(self) -> None:
        self._delivered, self._due = 0, None
        if self._trim is not None:
            self._trim()
        leave_code()


def leave_code() -> None:
    """Let go of the pages of libraries' code (Linux), some 20 MB: they stay in the system's page cache.

    What runs on is mapped again as it runs, 64 KB at a time and within microseconds; the rest, which imports and the
    building of things have run once, no longer counts as this process's. Takes 2 ms. Only what can be executed and not
    be written is let go of, so that the file always has the same.
    """
    with contextlib.suppress(AttributeError, OSError, ValueError):  # not Linux
        advise = ctypes.CDLL(None).madvise
        for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
            where, rights, _, _, inode = line.split(None, 5)[:5]
            if rights == "r-xp" and inode != "0":
                start, end = (int(address, 16) for address in where.split("-"))
                advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


def share() -> None:
    """Let all threads take memory from one heap (glibc); to be called before there are others.

    glibc makes one for each thread. gRPC's threads then keep 3 MB of what they read of 10,000 tools, which nobody else
    can use; they allocate too little to stand in each other's way.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):  # not glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def _trimmer() -> Callable[[], object] | None:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc
        return None
    return lambda: trim(0)
