"""What changes, as it changes: a bounded ring of events and those who follow it, for `/events`, `watch` and the page.

In: events (a name and a JSON object) from whoever sees something happen. Out: server-sent events. Filled by panel and
hearing, served by admin.http. One per process, used from its event loop. Nobody waits for a slow reader: it is told how
many events it missed.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

KEPT: Final = 256
"""Events that are kept, for those who come back with `Last-Event-ID` and as what a slow reader may lag behind."""

MAX_FOLLOWERS: Final = 32

_encode = msgspec.json.Encoder().encode


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """`number` counts up from 1. `at`: seconds since the epoch."""

    number: int
    name: str
    at: float
    data: Mapping[str, object]

    def encoded(self) -> bytes:
        """As a server-sent event."""
        body = _encode({"at": self.at, **self.data})
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (self.number, self.name.encode(), body)


class Follower:
    """One reader. `take` waits for what comes next."""

    __slots__ = ("_events", "_next", "_wake")

    def __init__(self, events: Events, after: int) -> None:
        """Everything after event number `after`."""
        self._events = events
        self._next = after + 1
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Something is there, or all is over."""
        self._wake.set()

    async def take(self) -> bytes:
        """What has happened since the last time, at least one event, encoded. Nothing: the gateway stops."""
        while not self._events.closing and self._next > self._events.last:
            self._wake.clear()
            await self._wake.wait()
        if self._events.closing:
            return b""
        found = self._events.since(self._next)
        missed = (found[0].number if found else self._events.last + 1) - self._next
        self._next = self._events.last + 1
        told = [b'event: missed\ndata: {"missed":%d}\n\n' % missed] if missed > 0 else []
        return b"".join((*told, *(event.encoded() for event in found)))


class Events:
    """The ring."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since the epoch."""
        self._clock = clock
        self._ring: deque[Event] = deque(maxlen=KEPT)
        self._followers: set[Follower] = set()
        self.last = 0
        self.closing = False

    def tell(self, name: str, data: Mapping[str, object]) -> None:
        """Something happened."""
        self.last += 1
        self._ring.append(Event(self.last, name, self._clock(), data))
        for follower in self._followers:
            follower.wake()

    def since(self, number: int) -> list[Event]:
        """What is still kept of the events from that number on."""
        return [event for event in self._ring if event.number >= number]

    def follow(self, after: int | None) -> Follower | None:
        """A new reader, from now on or after an event that it has seen. None: there are `MAX_FOLLOWERS` already."""
        if self.closing or len(self._followers) >= MAX_FOLLOWERS:
            return None
        follower = Follower(self, self.last if after is None or after > self.last else after)
        self._followers.add(follower)
        return follower

    def leave(self, follower: Follower) -> None:
        """The reader has gone."""
        self._followers.discard(follower)

    def close(self) -> None:
        """Let every reader come to its end."""
        self.closing = True
        for follower in self._followers:
            follower.wake()
