"""What a worker has counted, kept in a file for the one that replaces it: no counter of the common page goes backwards.

In: what the process counts. Out: that, together with what those before it have counted; the same for others to read
while it does not answer. Called by siblings. A value is in the file before anybody is shown it, so that whatever a
worker's end leaves behind, it is never less than what a page has said. Gauges end with their process.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import threading
from collections.abc import Mapping
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry

from arion_tds.workers import summing
from arion_tds.workers.summing import Family

MAX_LINES: Final = 100_000
"""Of one metric that is kept: a larger one begins anew. Those of tools may be others after each replacement."""

_KEPT: Final = frozenset(("counter", "histogram"))


class Counts:
    """Of worker `number`, in the supervisor's folder."""

    def __init__(self, directory: pathlib.Path, number: int, modes: Mapping[str, str]) -> None:
        """What those before it have counted is read now. `modes`: see `summing.modes`."""
        self._path = _path(directory, number)
        self._modes = modes
        self._lock = threading.Lock()
        self._before: tuple[Family, ...] = ()
        raw = read(directory, number)
        if raw is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                self._before = summing.decode(raw)

    def collect(self, registry: CollectorRegistry) -> tuple[bytes, bool]:
        """All that is counted, for another process to add up, and whether it could be kept. To be called in a thread.

        One after the other: an older count must not replace a newer one.
        """
        with self._lock:
            found = summing.collect(registry)
            if self._before:
                found = summing.Summed([found, self._before], self._modes).families()
            lasting = [one for one in found if one.kind in _KEPT and len(one.samples) <= MAX_LINES]
            written = self._path.with_suffix(".counts.new")
            try:
                written.write_bytes(summing.encode(lasting))
                os.replace(written, self._path)
            except OSError:
                return summing.encode(found), False
            return summing.encode(found), True


def read(directory: pathlib.Path, number: int) -> bytes | None:
    """What the worker of that number, or those before it, had counted when somebody last looked. None: nothing."""
    try:
        return _path(directory, number).read_bytes()
    except OSError:
        return None


def clear(directory: pathlib.Path) -> None:
    """Remove what is kept there."""
    for one in directory.glob("*.counts*"):
        with contextlib.suppress(OSError):
            one.unlink()


def _path(directory: pathlib.Path, number: int) -> pathlib.Path:
    return directory / f"{number}.counts"
