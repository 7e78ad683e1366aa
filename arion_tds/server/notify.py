"""notifications/tools/list_changed to the open streams of a listener, when what their caller sees of the list changed.

In: publications (`Published.listen`); a View's `list_revision` says whether tools/list answers something else than
before. Out: one message on each stream that was not told yet. Changes are gathered: a stream hears at most one message
per `interval`. Owned by front.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Final

from arion_tds.listing import ListChange
from arion_tds.model.caller import Caller
from arion_tds.server.sse import EventStream
from arion_tds.view import Published, View

METHOD: Final = "notifications/tools/list_changed"
AT_ONCE: Final = 64
"""Streams told before the loop may do something else: thousands of writes in one go would hold up every call."""

_MAX_CHANGES: Final = 64
"""Changes kept apart until the next round; more are joined into one."""


class Subscriber:
    """One open stream: whose it is, what it is sent, and up to which list it was told."""

    __slots__ = ("caller", "message", "stream", "told")

    def __init__(self, stream: EventStream, message: bytes, caller: Caller, told: int) -> None:
        """`message`: the notification as this stream wants it. `told`: a `list_revision`."""
        self.stream = stream
        self.caller = caller
        self.message = message
        self.told = told


class ChangeNotifier:
    """Listens to one `Published`. All state is the event loop's."""

    def __init__(
        self, published: Published, *, interval: float, loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    ) -> None:
        """`interval`: least seconds from the end of a round to the next, so that nobody hears more often than that.

        `loop` gives the time and the timer (default: the running loop).
        """
        self._published = published
        self._interval = interval
        self._loop = asyncio.get_running_loop if loop is None else loop
        self._subscribers: dict[Subscriber, None] = {}
        self._timer: asyncio.Handle | None = None
        self._round: Iterator[Subscriber] = iter(())
        self._revision = 0
        self._changes: list[tuple[int, ListChange]] = []
        self._again = False
        self._last = float("-inf")
        self._stop = published.listen(self._published_anew)

    def __len__(self) -> int:
        return len(self._subscribers)

    def add(self, stream: EventStream, message: bytes, caller: Caller) -> Subscriber:
        """Tell this stream of every change from now on that concerns the caller."""
        subscriber = Subscriber(stream, message, caller, self._published.view.list_revision)
        self._subscribers[subscriber] = None
        return subscriber

    def discard(self, subscriber: Subscriber) -> None:
        """Tell it no more."""
        self._subscribers.pop(subscriber, None)

    def tell(self, subscriber: Subscriber) -> None:
        """Tell this one in the next round: the list changed for it alone."""
        subscriber.told = -1
        self._again = True
        self._schedule()

    def close(self) -> None:
        """Stop listening; the streams are ended by whoever opened them."""
        self._stop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _published_anew(self, old: View, new: View) -> None:
        if old.list_revision == new.list_revision or not self._subscribers:
            return
        if len(self._changes) >= _MAX_CHANGES:
            _, change = self._changes.pop()
            self._changes.append((new.list_revision, change | new.list_change))
        else:
            self._changes.append((new.list_revision, new.list_change))
        self._schedule()

    def _schedule(self) -> None:
        if self._timer is not None:
            return  # a round is coming anyway
        loop = self._loop()
        self._timer = loop.call_at(max(loop.time(), self._last + self._interval), self._begin)

    def _begin(self) -> None:
        self._revision = self._published.view.list_revision
        self._again = False
        self._round = iter(list(self._subscribers))
        self._continue()

    def _continue(self) -> None:
        """Tell the next few. `_timer` stays set until the round is over, so that rounds do not overlap."""
        some = list(itertools.islice(self._round, AT_ONCE))
        for subscriber in some:
            if subscriber.told < self._revision and subscriber in self._subscribers:
                concerned = self._concerns(subscriber)
                subscriber.told = self._revision
                if concerned:
                    subscriber.stream.push(subscriber.message)
        if len(some) == AT_ONCE:
            self._timer = self._loop().call_soon(self._continue)
            return
        self._last = self._loop().time()
        self._changes = [one for one in self._changes if one[0] > self._revision]
        if self._again or self._published.view.list_revision != self._revision:  # changed while the round ran
            self._timer = self._loop().call_at(self._last + self._interval, self._begin)
        else:
            self._timer = None

    def _concerns(self, subscriber: Subscriber) -> bool:
        """Whether a change since the subscriber was last told is one of the list that its caller sees."""
        told, allows = subscriber.told, subscriber.caller.allows
        return told < 0 or any(at > told and change.concerns(allows) for at, change in self._changes)
