"""What became of every resource that was delivered, and when: where a tool comes from, and why it is not there.

In: verdicts from ingest. Out: the last verdicts of a resource, oldest first, and a call of whoever listens. Owned by
the ingest task; read by admin. Bounded: `MAX_VERDICTS` of a resource, `MAX_RESOURCES` in all, those not heard of for
longest go first. Which version the control plane is told is in use stands in the xDS session, not here.
"""

from __future__ import annotations

import dataclasses
import enum
import heapq
from collections.abc import Callable, Iterator
from typing import Final

from arion_tds.model.delivery import Kind, ResourceId

MAX_VERDICTS: Final = 8
MAX_RESOURCES: Final = 65_536

_REASON: Final = 2000
"""Characters of a reason that are kept."""


class Outcome(enum.StrEnum):
    """What became of a resource of a response."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    REMOVED = "removed"


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """One verdict. `at` is when it was first given, `last_at` when it was last given in a row, `times` how often.

    Seconds since the epoch. `version` is "" for a removal, `reason` "" unless rejected.
    """

    outcome: Outcome
    version: str
    reason: str
    at: float
    last_at: float
    times: int = 1


Told = Callable[[Kind, ResourceId, Verdict], None]

_Kept = Verdict | tuple[Verdict, ...]
"""Most resources have one verdict; a tuple around each would be a megabyte of a large catalog."""


class History:
    """Verdicts by resource."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since the epoch."""
        self._clock = clock
        self._kept: dict[Kind, dict[ResourceId, _Kept]] = {
            kind: {} for kind in Kind
        }  # the one heard of last at the end
        self._listeners: dict[object, Told] = {}
        self.dropped = 0

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def accepted(self, kind: Kind, name: ResourceId, version: str) -> None:
        """The version is served."""
        self._note(kind, name, Outcome.ACCEPTED, version, "")

    def rejected(self, kind: Kind, name: ResourceId, version: str, reason: str) -> None:
        """The version is not served; what was served before still is."""
        kept = reason if len(reason) <= _REASON else reason[: _REASON - 1] + "…"
        self._note(kind, name, Outcome.REJECTED, version, kept)

    def removed(self, kind: Kind, name: ResourceId) -> None:
        """The control plane has taken it back."""
        self._note(kind, name, Outcome.REMOVED, "", "")

    def of(self, kind: Kind, name: ResourceId) -> tuple[Verdict, ...]:
        """The last verdicts on the resource, oldest first; none if it was never heard of, or too long ago."""
        return _all(self._kept[kind].get(name, ()))

    def serving(self, kind: Kind, name: ResourceId) -> Verdict | None:
        """The verdict by which the resource is served now, if it is and the verdict is still remembered."""
        for verdict in reversed(self.of(kind, name)):
            if verdict.outcome is not Outcome.REJECTED:
                return verdict if verdict.outcome is Outcome.ACCEPTED else None
        return None

    def latest(self, scope: str) -> Iterator[tuple[Kind, str, Verdict]]:
        """Kind, name and last verdict of every resource of the scope. May be read from another thread."""
        for kind, resources in self._kept.items():
            for name, kept in list(resources.items()):
                if name.scope == scope:
                    yield kind, name.name, _all(kept)[-1]

    def recent(self) -> Iterator[tuple[Kind, ResourceId, tuple[Verdict, ...]]]:
        """Every resource with its verdicts, the one heard of last first. May be read while verdicts come in."""
        yield from heapq.merge(*map(self._recent, Kind), key=lambda one: -one[2][-1].last_at)

    def _recent(self, kind: Kind) -> Iterator[tuple[Kind, ResourceId, tuple[Verdict, ...]]]:
        for name in list(reversed(self._kept[kind])):
            verdicts = self.of(kind, name)
            if verdicts:
                yield kind, name, verdicts

    def listen(self, told: Told) -> Callable[[], None]:
        """Call `told` with every verdict, synchronously, until the returned function is called."""
        token = object()
        self._listeners[token] = told
        return lambda: self._listeners.pop(token, None) and None

    def _note(self, kind: Kind, name: ResourceId, outcome: Outcome, version: str, reason: str) -> None:
        now = self._clock()
        resources = self._kept[kind]
        before = _all(resources.pop(name, ()))
        last = before[-1] if before else None
        if last is not None and (last.outcome, last.version, last.reason) == (outcome, version, reason):
            verdict = dataclasses.replace(last, last_at=now, times=last.times + 1)
            before = before[:-1]
        else:
            verdict = Verdict(outcome, version, reason, now, now)
        resources[name] = (*before[-(MAX_VERDICTS - 1) :], verdict) if before else verdict
        if len(self) > MAX_RESOURCES:
            self._drop()
        for told in tuple(self._listeners.values()):
            told(kind, name, verdict)

    def _drop(self) -> None:
        """Forget the resource not heard of for longest: the first of its kind."""
        firsts = [(resources, next(iter(resources.items()))) for resources in self._kept.values() if resources]
        resources, (name, _) = min(firsts, key=lambda one: _all(one[1][1])[-1].last_at)
        del resources[name]
        self.dropped += 1


def _all(kept: _Kept) -> tuple[Verdict, ...]:
    """Oldest first."""
    return (kept,) if isinstance(kept, Verdict) else kept
