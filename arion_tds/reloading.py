"""The config file, read again: on a signal, and when it changes. A file with mistakes changes nothing.

In: the file's path, signals, a way to apply a config. Out: calls of it, one after the other, and what became of the
last. Built by app; `run` is one of its tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

from arion_tds.config import judging
from arion_tds.config.judging import Config
from arion_tds.errors import BindError, ConfigError

INTERVAL: Final = 1.0
"""Seconds between two looks at the file."""

_log = logging.getLogger("arion_tds.reload")

Apply = Callable[[Config], Awaitable[None]]
"""Takes a config into use, or raises ConfigError or BindError and has changed nothing."""

_Mark = tuple[int, int, int] | None


class Reloader:
    """`generation` counts the configs in use so far, from 1; `last_error` is "" unless the newest was refused."""

    def __init__(self, path: str | None, apply: Apply, watching: Callable[[], bool]) -> None:
        """`path` None: there is no file, as in tests. `watching` says whether changes of the file count."""
        self.generation = 1
        self.last_error = ""
        self._path = path
        self._apply = apply
        self._watching = watching
        self._asked = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    def ask(self) -> None:
        """Read the file again as soon as may be (SIGHUP)."""
        self._asked.set()

    def follow(self, asked: asyncio.Event) -> None:
        """Heed this event instead of `ask`: somebody may have set it before there was a gateway."""
        self._asked = asked

    async def take(self, load: Callable[[], Config]) -> bool:
        """Apply what `load` gives; False when it was refused. Everything wrong with it is logged and shown."""
        async with self._one_at_a_time:
            try:
                # A large file takes a while to judge, and calls go on meanwhile.
                await self._apply(await asyncio.to_thread(load))
            except (ConfigError, BindError) as error:
                problems = error.problems if isinstance(error, ConfigError) else [str(error)]
                self.last_error = "; ".join(problems)
                for problem in problems:
                    _log.error("the config is refused, the one in use stays: %s", problem)
                return False
            self.generation += 1
            self.last_error = ""
            _log.info("config taken into use: generation %d", self.generation)
            return True

    async def run(self) -> NoReturn:
        """Until cancelled."""
        seen = self._mark()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL):
                    await self._asked.wait()
            if self._asked.is_set():
                self._asked.clear()
                seen = self._mark()
                await self._read()
            elif self._watching() and (now := self._mark()) not in {None, seen}:
                await asyncio.sleep(INTERVAL)
                if self._mark() != now:
                    continue  # It is being written still.
                seen = now
                _log.info("%s has changed", self._path)
                await self._read()

    async def _read(self) -> None:
        path = self._path
        if path is None:
            _log.warning("there is no config file to read again")
            return
        try:
            await self.take(lambda: judging.load(path))
        except Exception as error:  # noqa: BLE001  (top of a task: a bug met in a reload must not end a gateway)
            self.last_error = f"internal error: {error!r}; the config may be in use in part"
            _log.exception("reloading %s failed on an error of our own", path)

    def _mark(self) -> _Mark:
        if self._path is None:
            return None
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
