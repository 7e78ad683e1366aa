"""Connections that are kept for the next request: how many there may be, who waits for one, how long one stays unused.

In: origins. Out: an `h1.Connection` that is the caller's until its answer is complete. Used by exchange (the pool of a
cluster) and by the channels of MCP servers.

Whoever finds all connections in use waits in line; a connection that comes back goes to the first of them. The one used
last is used first, so that the others grow old and are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections import deque
from collections.abc import Callable

from arion_tds.backends.dialing import TLS_GOODBYE, Dialer
from arion_tds.backends.h1 import Connection
from arion_tds.backends.reading import MAX_HEAD


class Closed(OSError):  # noqa: N818 - a state, told like any other reason for which there is no connection
    """No connection is made any more."""


class Place:
    """One origin: its dialer, its connections that wait for a request (oldest first), and how many it has."""

    __slots__ = ("count", "dialer", "idle", "used")

    def __init__(self, dialer: Dialer) -> None:
        self.dialer = dialer
        self.idle: dict[Connection, float] = {}
        self.count = 0
        self.used = 0.0


class Connections:
    """Those of one cluster or server. State of one event loop's; closed by its owner."""

    def __init__(
        self, dialer: Callable[[str], Dialer], *, most: int | None, idle_timeout: float, max_head: int = MAX_HEAD
    ) -> None:
        """`dialer`: of an origin. `most`: connections at once, None for no limit. `idle_timeout` in seconds.

        `max_head`: bytes of an answer's headers.
        """
        self.max_head = max_head
        self._dialer = dialer
        self._most = most
        self._idle_timeout = idle_timeout
        self._places: dict[str, Place] = {}
        self._all: set[Connection] = set()
        self._leaving: set[Connection] = set()  # what is dropped and has not ended yet
        self._taken = 0  # connections, and promises to make one
        self._waiting: deque[tuple[str, asyncio.Future[Connection | None]]] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._closing = asyncio.Event()
        self._ended = asyncio.Event()

    def take(self, origin: str) -> Connection | None:
        """One that is kept, if there is any."""
        place = self._places.get(origin)
        while place is not None and place.idle:
            connection, _ = place.idle.popitem()
            if connection.usable and connection.silent:
                connection.reused = True
                return connection
            self.drop(connection)
        return None

    async def open(self, origin: str) -> Connection:
        """A new one, once there may be one more; or one that came back meanwhile. Raises OSError (see dialing)."""
        while True:
            if self._closing.is_set():
                raise Closed("closed")
            found = await self._room(origin)
            if found is None:
                break
            if found.usable:
                return found  # else it has ended on the way here
        place = self._place(origin)
        place.count += 1
        try:
            connection = await place.dialer.dial(lambda: Connection(self, place))
            if self._closing.is_set():
                connection.abort()
                raise Closed("closed")
            if not connection.usable:
                raise ConnectionResetError(errno.ECONNRESET, "the connection was lost at once")
        except BaseException:
            place.count -= 1
            self._free()
            raise
        self._all.add(connection)
        return connection

    def authority(self, origin: str) -> str:
        """The Host header for an origin."""
        return self._place(origin).dialer.authority

    def release(self, connection: Connection) -> None:
        """Its answer is complete: it goes to whoever is first in line, or waits for a request."""
        if self._closing.is_set():
            connection.close()
            return
        first = self._first() if self._waiting else None
        if first is None:
            place = connection.place
            place.idle[connection] = place.used = asyncio.get_running_loop().time()
        elif self._places.get(first[0]) is connection.place:
            connection.reused = True
            first[1].set_result(connection)
        else:
            self._waiting.appendleft(first)
            self.drop(connection)

    def drop(self, connection: Connection) -> None:
        """It is not used again. Its place among those that are counted is free at once: a goodbye over TLS may take."""
        self.unusable(connection)
        if connection in self._all:
            self._all.discard(connection)
            self._leaving.add(connection)
            connection.place.count -= 1
            self._free()
        connection.close()

    def unusable(self, connection: Connection) -> None:
        """It ends while it waits for a request."""
        connection.place.idle.pop(connection, None)

    def gone(self, connection: Connection) -> None:
        """It has ended."""
        self.unusable(connection)
        self._leaving.discard(connection)
        if connection in self._all:  # else it never was anybody's: `open` accounts for it
            self._all.discard(connection)
            connection.place.count -= 1
            self._free()
        if self._closing.is_set() and not self._all and not self._leaving:
            self._ended.set()

    async def close(self) -> None:
        """End all. Requests under way are lost; whoever waits hears `Closed`."""
        self._closing.set()
        if self._sweep is not None:
            self._sweep.cancel()
        while (first := self._first()) is not None:
            first[1].set_exception(Closed("closed"))
        for connection in list(self._all):
            if connection in connection.place.idle:
                connection.close()
            else:
                connection.abort()
        if not self._all and not self._leaving:
            self._ended.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TLS_GOODBYE):
                await self._ended.wait()

    async def _room(self, origin: str) -> Connection | None:
        """None: one more may be made, and is counted already."""
        if self._most is None or self._taken < self._most or self._evict():
            self._taken += 1
            return None
        waiting: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((origin, waiting))
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                came = waiting.result()  # and nobody is there to take it
                if came is None:
                    self._free()
                elif came.usable:
                    self.release(came)
            raise

    def _first(self) -> tuple[str, asyncio.Future[Connection | None]] | None:
        """Who is first in line, and so no longer in it."""
        while self._waiting:
            origin, waiting = self._waiting.popleft()
            if not waiting.done():
                return origin, waiting
        return None

    def _free(self) -> None:
        """There may be one more."""
        first = self._first()
        if first is None:
            self._taken -= 1
        else:
            first[1].set_result(None)

    def _evict(self) -> bool:
        """Make room: another origin's connection that waits for a request ends."""
        for place in self._places.values():
            if place.idle:
                self.drop(next(iter(place.idle)))
                return True
        return False

    def _place(self, origin: str) -> Place:
        place = self._places.get(origin)
        if place is None:
            loop = asyncio.get_running_loop()
            place = self._places[origin] = Place(self._dialer(origin))
            place.used = loop.time()
            if self._sweep is None:
                self._sweep = loop.call_later(self._idle_timeout, self._close_idle)
        return place

    def _close_idle(self) -> None:
        """End what has waited too long, forget origins that have nothing; again when the next one is due."""
        self._sweep = None
        loop = asyncio.get_running_loop()
        due = loop.time() - self._idle_timeout
        following: float | None = None
        for origin, place in list(self._places.items()):
            for connection in [one for one, since in place.idle.items() if since <= due]:
                self.drop(connection)
            if not place.count and place.used <= due:
                del self._places[origin]
                continue
            oldest = next(iter(place.idle.values()), loop.time())
            following = oldest if following is None else min(following, oldest)
        if following is not None:
            self._sweep = loop.call_at(following + self._idle_timeout, self._close_idle)
