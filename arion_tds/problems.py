"""What stands rejected or doubtful, per resource: the list behind `/problems`.

In: verdicts from ingest. Out: current problems with reason, version and time; a resource leaves when it is accepted or
removed. Owned by the ingest task; read by admin. Bounded: the oldest go first, and the page says how many went.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

from arion_tds.model.delivery import Kind, ResourceId

MAX_PROBLEMS: Final = 10_000


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """One rejected resource, or one part of an accepted resource that was left out (`accepted` True)."""

    kind: str
    name: str
    version: str
    reason: str
    at: float
    accepted: bool = False


class Problems:
    """Problems by resource. Times are seconds since the epoch, from the injected clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since the epoch."""
        self._clock = clock
        self._rejected: dict[tuple[str, str], Standing] = {}
        self._partial: dict[tuple[str, str], tuple[Standing, ...]] = {}
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._rejected)

    def rejected(self, kind: Kind, name: ResourceId | str, version: str, reason: str) -> bool:
        """Remember a rejection; True when this reason is new for the resource (worth a log line)."""
        key = (kind.short, str(name))
        before = self._rejected.pop(key, None)
        self._rejected[key] = Standing(kind.short, str(name), version, reason, self._clock())
        self._bound(self._rejected)
        return before is None or before.reason != reason

    def accepted(self, kind: Kind, name: ResourceId, version: str, left_out: Sequence[str] = ()) -> None:
        """The resource is served; `left_out` says which parts of it are not."""
        if not (self._rejected or self._partial or left_out):
            return  # a first load of ten thousand good tools comes here ten thousand times
        key = (kind.short, str(name))
        self._rejected.pop(key, None)
        self._partial.pop(key, None)
        at = self._clock()
        parts = tuple(Standing(kind.short, str(name), version, why, at, accepted=True) for why in left_out)
        if parts:
            self._partial[key] = parts
            self._bound(self._partial)

    def removed(self, kind: Kind, name: ResourceId) -> None:
        """The control plane has taken the resource back."""
        key = (kind.short, str(name))
        self._rejected.pop(key, None)
        self._partial.pop(key, None)

    def resent(self, kind: Kind) -> None:
        """The control plane begins to send again all that was refused of the type: what it withdrew stands no more."""
        for key in [key for key in self._rejected if key[0] == kind.short]:
            del self._rejected[key]

    def forget(self, scope: str) -> None:
        """Nothing of the scope is consumed any more."""
        for kept in (self._rejected, self._partial):
            for key in [key for key in kept if key[1].startswith(f"{scope}/")]:
                del kept[key]

    def standing(self) -> list[Standing]:
        """Everything that stands, oldest first, rejections before partial ones."""
        return [*self._rejected.values(), *(one for many in self._partial.values() for one in many)]

    def _bound(self, kept: dict[tuple[str, str], Standing] | dict[tuple[str, str], tuple[Standing, ...]]) -> None:
        while len(kept) > MAX_PROBLEMS:
            del kept[next(iter(kept))]
            self.dropped += 1
