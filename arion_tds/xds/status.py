"""What the client tells about itself, and whom it tells.

In: nothing. Out: `AdsStatus` for admin and readiness, `Observer` for metrics, `Said` for logs. Called by xds.stream.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Final, Protocol

from arion_tds.model.delivery import Kind


@dataclasses.dataclass(frozen=True, slots=True)
class TypeStatus:
    """One type: whether its first response was settled, versions in use, and counts since the client was made."""

    answered: bool
    versions: int
    responses: int
    acks: int
    nacks: int
    dropped: int
    last_nack: str


@dataclasses.dataclass(frozen=True, slots=True)
class AdsStatus:
    """The client now. Times are the client's clock in seconds; None: not connected, or no response yet.

    `attempts` counts streams begun, `dropped` responses of types that were not asked for, `last_error` is why the last
    stream ended, "" when none has.
    """

    connected: bool
    connected_since: float | None
    last_response_at: float | None
    attempts: int
    last_error: str
    dropped: int
    types: Mapping[Kind, TypeStatus]


class Observer(Protocol):
    """Hears events as they happen; must not block."""

    def connected(self) -> None:
        """A stream is up."""

    def disconnected(self, reason: str) -> None:
        """A stream that was up, or was to be, is gone."""

    def response(self, kind: Kind, size: int) -> None:
        """A response of `size` bytes was read."""

    def answered(self, kind: Kind, *, accepted: bool) -> None:
        """An ACK or a NACK was sent."""

    def dropped(self, type_url: str) -> None:
        """A response was dropped: its type was not asked for."""


class Silent:
    """Tells nobody."""

    def connected(self) -> None:
        """Nothing."""
        return

    def disconnected(self, reason: str) -> None:
        """Nothing."""
        return

    def response(self, kind: Kind, size: int) -> None:
        """Nothing."""
        return

    def answered(self, kind: Kind, *, accepted: bool) -> None:
        """Nothing."""
        return

    def dropped(self, type_url: str) -> None:
        """Nothing."""
        return


class Said:
    """What was logged lately: a problem that repeats is one line in `AGAIN` seconds. Holds `MOST` problems."""

    AGAIN: Final = 300.0
    MOST: Final = 256

    __slots__ = ("_at",)

    def __init__(self) -> None:
        self._at: OrderedDict[Hashable, float] = OrderedDict()

    def news(self, what: Hashable, now: float) -> bool:
        """Whether it is time to say this (again); it then counts as said."""
        said = self._at.get(what)
        if said is not None and now - said < self.AGAIN:
            return False
        self._at[what] = now
        self._at.move_to_end(what)
        if len(self._at) > self.MOST:
            self._at.popitem(last=False)
        return True
