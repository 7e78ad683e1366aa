"""Files that are replaced while we run: certificates, keys, key sets. Looked at every few seconds, read when changed.

In: for each thing its files and a way to read them anew. Out: calls of that way; a thing whose new files cannot be used
keeps its old ones, with a warning. Run as a task of the app.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import NoReturn

_log = logging.getLogger("arion_tds.rotation")

Signature = tuple[tuple[int, int, int] | None, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Watched:
    """A thing made of files. `renew` reads them anew and takes them into use; OSError or ValueError when it cannot."""

    what: str
    files: tuple[str, ...]
    renew: Callable[[], Awaitable[None] | None]


class Rotation:
    """Watches what `sources` name at each look; a thing that appears is taken as it is."""

    def __init__(self, interval: float) -> None:
        """Seconds between two looks."""
        self._interval = interval
        self._sources: list[Callable[[], Iterable[Watched]]] = []
        self._seen: dict[str, Signature] = {}
        self.renewals = 0
        self.failures = 0

    def add(self, source: Callable[[], Iterable[Watched]]) -> None:
        """Watch what this function gives, from now on."""
        self._sources.append(source)
        self.note()

    def note(self) -> None:
        """There are new things, of files that have just been read: what differs from now on is a change."""
        for watched in (watched for source in self._sources for watched in source()):
            self._seen.setdefault(watched.what, _signature(watched.files))

    async def run(self) -> NoReturn:
        """Look, wait, look again. Ends when cancelled."""
        while True:
            await asyncio.sleep(self._interval)
            await self.look()

    async def look(self) -> None:
        """Renew what changed since the last look."""
        found = [watched for source in self._sources for watched in source()]
        seen = {watched.what: await self._look(watched) for watched in found}
        self._seen = seen

    async def _look(self, watched: Watched) -> Signature:
        now = _signature(watched.files)
        before = self._seen.get(watched.what, now)
        if now == before:
            return now
        try:
            working = watched.renew()
            if working is not None:
                await working
        except (OSError, ValueError) as error:
            # Certificate and key are rarely replaced in the same moment: the next change is another try.
            self.failures += 1
            _log.warning("%s: the new files cannot be used, the old ones stay: %s", watched.what, error)
        else:
            self.renewals += 1
            _log.info("%s: new files are in use", watched.what)
        return now


def _signature(files: Iterable[str]) -> Signature:
    return tuple(_stat(path) for path in files)


def _stat(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
