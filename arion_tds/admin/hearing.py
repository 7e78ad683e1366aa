"""What the xDS client and the history say, turned into events. Built by panel; the sources call it and never wait."""

from __future__ import annotations

from arion_tds.admin.events import Events
from arion_tds.history import Outcome, Verdict
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.view import View
from arion_tds.xds.status import Silent

NAMED = 20
"""Tools that an event names; of more it says how many."""


class PlaneHearing(Silent):
    """The control plane's stream comes and goes. An `Observer` of xds.stream."""

    def __init__(self, events: Events) -> None:
        """`events` hears of it."""
        self._events = events
        self._last = ""

    def connected(self) -> None:
        """A stream is up."""
        self._last = ""
        self._events.tell("control_plane", {"connected": True})

    def disconnected(self, reason: str) -> None:
        """A stream is gone, or none could be had: said once per reason."""
        if reason != self._last:
            self._last = reason
            self._events.tell("control_plane", {"connected": False, "reason": reason})


def verdict(events: Events, kind: Kind, name: ResourceId, given: Verdict) -> None:
    """A rejection, once per reason. What is accepted or removed shows in the catalog's own event."""
    if given.outcome is Outcome.REJECTED and given.times == 1:
        said = {"type": kind.short, "name": str(name), "version": given.version, "reason": given.reason}
        events.tell("rejected", said)


def published(events: Events, scope: str, old: View, new: View) -> None:
    """A scope serves something else than before."""
    before, after = old.tools, new.tools
    came = [name for name in new.touched if name not in before]
    went = [name for name in new.touched if name not in after]
    changed = [name for name in new.touched if name in before and name in after]
    told: dict[str, object] = {"scope": scope, "revision": new.revision, "tools": len(after)}
    for what, names in (("added", came), ("changed", changed), ("removed", went)):
        told[what] = {"count": len(names), "names": sorted(names[:NAMED])}
    events.tell("catalog", told)
