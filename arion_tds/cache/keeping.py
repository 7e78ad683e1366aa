"""Keeping what is served on disk, never in the way: changes are collected, and written by a thread of their own.

In: accepted and removed resources, tool lists, and whether the control plane is connected. Out: what an earlier life of
the gateway kept. Fed by ingest and by discovery; built, run and closed by app.

What is written is honest or not there: a version always stands beside the payload it belongs to. So when the disk is
slow or full the cache may lag, and what it then gives back is older, and is said to be: the control plane brings it up
to date on the first stream.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import functools
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeVar

from arion_tds.cache.kept import Batch, Kept
from arion_tds.model.delivery import Delivered, Kind, ResourceId

MAX_PENDING: Final = 64 << 20
"""Bytes that wait to be written; beyond it the newest are left out, and counted."""

COLLECT: Final = 0.25
"""Seconds during which changes are collected before they are written together."""

AGAIN: Final = 5.0
"""Seconds until a write that failed is tried again."""

CONFIRM: Final = 30.0
"""Seconds between two notes that the control plane is still connected, so that what is kept is as it says."""

_LAST: Final = 5.0  # seconds that the last write may take when the gateway stops
_CONFIRMED: Final = "confirmed_at"
_COMPLETE: Final = "complete_scopes"
_FLEET: Final = "fleet"
_ADDRESS: Final = "control_plane"
_log = logging.getLogger("arion_tds.cache")
_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """Whose content it is: the control plane's address and the fleet (node.cluster) that it was selected by."""

    address: str
    fleet: str


@dataclasses.dataclass(frozen=True, slots=True)
class Restored:
    """What an earlier life kept. `age` in seconds since the control plane was last heard to agree; None: unknown.

    `complete`: the scopes of which it is everything. `trusted`: it comes from the control plane that is configured now,
    so that its versions can be claimed.
    """

    kept: Kept = dataclasses.field(default_factory=Kept)
    age: float | None = None
    complete: frozenset[str] = frozenset()
    trusted: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class CacheStatus:
    """`pending_bytes` wait to be written, `written` batches were, `left_out` changes never will be."""

    path: str
    pending_bytes: int
    written: int
    left_out: int
    last_error: str


class Cache:
    """The file of one gateway. Use from one event loop; its state is that loop's, the file belongs to the thread."""

    def __init__(
        self,
        directory: str,
        max_bytes: int,
        origin: Origin,
        *,
        clock: Callable[[], float],
        connected: Callable[[], bool],
        keeps: bool = True,
    ) -> None:
        """`clock` gives seconds since the epoch; `connected` says whether the control plane's stream is up.

        `keeps` False: another process of this gateway writes the file, and this one reads what was there.
        """
        # Here, not above: SQLite is more than a megabyte that a gateway without a cache need not hold.
        from arion_tds.cache.store import Store

        self._store = Store(Path(directory), max_bytes)
        self._keeps = keeps
        self._origin = origin
        self._clock = clock
        self._connected = connected
        self._batch = Batch()
        self._bytes = 0
        self._dirty = asyncio.Event()
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "arion-tds-cache")
        self._open = False
        self._written = 0
        self._left_out = 0
        self._error = ""

    async def open(self, scopes: Iterable[str], *, shared: bool = False) -> Restored:
        """What was kept of these scopes; of others it is forgotten. Never fails: what is wrong is logged and shown.

        `shared`: also what belongs to no scope.
        """
        wanted = frozenset(("", *scopes) if shared else scopes)
        try:
            kept = await self._in_thread(self._store.open if self._keeps else self._store.peek)
        except OSError as error:
            self._failed(f"nothing is kept on disk: {self._store.path.parent}: {error.strerror or error}")
            return Restored()
        self._open = self._keeps
        if kept.damage:
            self._failed(f"{self._store.path}: {kept.damage}")
        fleet = kept.about.get(_FLEET, self._origin.fleet)
        trusted = kept.about.get(_ADDRESS, self._origin.address) == self._origin.address
        self._batch.about.update({_FLEET: self._origin.fleet, _ADDRESS: self._origin.address})
        held = {one.id.scope for found in kept.resources.values() for one in found}
        self._batch.scopes_gone = held if fleet != self._origin.fleet else held - wanted
        self._dirty.set()
        if fleet != self._origin.fleet:
            _log.warning(
                "what is kept on disk was for the fleet %r, not %r: it is forgotten", fleet, self._origin.fleet
            )
            return Restored()
        chosen = {kind: tuple(one for one in found if one.id.scope in wanted) for kind, found in kept.resources.items()}
        complete = frozenset(filter(None, kept.about.get(_COMPLETE, "").split("\n")))
        if kept.damage:
            complete = frozenset()
        age = _age(kept.about.get(_CONFIRMED), self._clock())
        return Restored(dataclasses.replace(kept, resources=chosen), age, complete & wanted, trusted)

    def put(self, kind: Kind, update: Delivered) -> None:
        """The resource was accepted."""
        if update.kept or not self._room(len(update.payload)):
            return
        self._replace(kind, update.id, update)

    def remove(self, kind: Kind, name: ResourceId) -> None:
        """The resource is gone."""
        if self._open:
            self._replace(kind, name, None)

    def listed(self, url: str, tools: tuple[bytes, ...]) -> None:
        """An MCP server listed these tools."""
        size = sum(map(len, tools))
        if not self._room(size):
            return
        old = self._batch.listings.get(url)
        self._bytes += size - sum(map(len, old or ()))
        self._batch.listings[url] = tools
        self._dirty.set()

    def unlisted(self, urls: Iterable[str]) -> None:
        """These MCP servers are in use no longer."""
        for url in urls:
            self._batch.listings[url] = None
            self._dirty.set()

    def complete(self, scopes: Iterable[str]) -> None:
        """The first content of every type is in: what is kept of these scopes is everything, from here on."""
        if self._open and not self._left_out:
            self._batch.about[_COMPLETE] = "\n".join(scopes)
            self._confirm()

    def forget(self, scope: str) -> None:
        """The scope is consumed no longer."""
        if not self._open:
            return
        self._batch.scopes_gone.add(scope)
        for key in [key for key in self._batch.resources if key[1].scope == scope]:
            self._replace(*key, None)
        self._dirty.set()

    async def run(self) -> None:
        """Write what comes, until cancelled."""
        if not self._open:
            return
        loop = asyncio.get_running_loop()
        confirm_at = loop.time() + CONFIRM
        while True:
            try:
                async with asyncio.timeout_at(confirm_at):
                    await self._dirty.wait()
            except TimeoutError:
                confirm_at = loop.time() + CONFIRM
                if self._connected():
                    self._confirm()
                continue
            await asyncio.sleep(COLLECT)
            if not await self._write():
                await asyncio.sleep(AGAIN)

    async def close(self) -> None:
        """Write what is left, within a few seconds, and let go of the file."""
        if self._open:
            try:
                async with asyncio.timeout(_LAST):
                    if self._batch:
                        await self._write()
                    await self._in_thread(self._store.close)
            except TimeoutError:
                _log.warning("the last changes could not be kept on disk within %g s", _LAST)
        self._open = False
        self._thread.shutdown(wait=False, cancel_futures=True)

    def confirm(self) -> None:
        """Note that the control plane is connected, if it is (to be called before its stream is closed)."""
        if self._open and self._connected():
            self._confirm()

    def status(self) -> CacheStatus:
        """The cache now."""
        return CacheStatus(str(self._store.path), self._bytes, self._written, self._left_out, self._error)

    async def _write(self) -> bool:
        self.confirm()
        batch, size = self._batch, self._bytes
        self._batch, self._bytes = Batch(), 0
        self._dirty.clear()
        try:
            await self._in_thread(functools.partial(self._store.write, batch))
        except OSError as error:
            self._failed(f"changes are not kept on disk for now: {error.strerror or error}")
            self._put_back(batch, size)
            return False
        if self._error and not self._error.startswith(str(self._store.path)):
            _log.info("changes are kept on disk again")
            self._error = ""
        self._written += 1
        return True

    def _put_back(self, batch: Batch, size: int) -> None:
        """What was not written waits again, behind what has come since."""
        newer = self._batch
        for key in [key for key in batch.resources if key[1].scope in newer.scopes_gone]:
            size -= _size(batch.resources.pop(key))
        for key, kept in newer.resources.items():
            size -= _size(batch.resources.get(key))
            batch.resources[key] = kept
        for url, tools in newer.listings.items():
            size -= sum(map(len, batch.listings.get(url) or ()))
            batch.listings[url] = tools
        batch.about.update(newer.about)
        batch.scopes_gone |= newer.scopes_gone
        self._batch = batch
        self._bytes += size
        self._dirty.set()

    def _replace(self, kind: Kind, name: ResourceId, kept: Delivered | None) -> None:
        key = (kind, name)
        self._bytes += _size(kept) - _size(self._batch.resources.get(key))
        self._batch.resources[key] = kept
        self._dirty.set()

    def _room(self, size: int) -> bool:
        if not self._open:
            return False
        if self._bytes + size <= MAX_PENDING:
            return True
        self._left_out += 1
        return False

    def _confirm(self) -> None:
        self._batch.about[_CONFIRMED] = str(self._clock())
        self._dirty.set()

    def _failed(self, why: str) -> None:
        if why != self._error:
            _log.warning("%s", why)
        self._error = why

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _size(kept: Delivered | None) -> int:
    return 0 if kept is None else len(kept.payload)


def _age(confirmed: str | None, now: float) -> float | None:
    try:
        return None if confirmed is None else max(0.0, now - float(confirmed))
    except ValueError:
        return None
