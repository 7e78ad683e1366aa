"""The server's side of one type on one delta stream. Pure: no await, clock, log.

In: `Ask`s of the client and the names whose content changed. Out: the client's answers, and the next response, pulled
when there is room to write: what was not pulled yet is merged, so a slow reader gets the newest state and no backlog.
Called by session.

Rules (xds_protocol.rst, discovery.proto; xDS TP1 for globs):
- `*` is every name. The first request of a type that names nothing means `*` (legacy); later an empty list never does.
- `path/*` is every name that starts with `path/`. Nothing there: `path/*` itself is reported as removed.
- What is subscribed is sent, even what the client should have already; a missing name is reported as removed, and the
  subscription stays: the name is sent when it comes into being.
- An unsubscribed name that `*` or a glob still covers is answered with its resource (or its removal).
- `initial_resource_versions` counts in the first request only: what is equal is not sent, what is gone is removed.
- The first request of a type is always answered, with an empty response if need be.
- A rejected resource is sent again when its content changes, and not before.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from control_plane_example.snapshot import Held

WILDCARD: Final = "*"
SPLIT_BYTES: Final = 1 << 20
"""A response is closed once it holds this much; one resource that is larger travels alone."""

MAX_UNANSWERED: Final = 64
"""Responses of a type without ACK or NACK; then the stream waits for the client, and changes are merged meanwhile."""

KEPT_NACKS: Final = 16


@dataclasses.dataclass(frozen=True, slots=True)
class Ask:
    """A DeltaDiscoveryRequest as values. `error` is None unless it is a NACK."""

    type_url: str
    subscribe: tuple[str, ...] = ()
    unsubscribe: tuple[str, ...] = ()
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    nonce: str = ""
    error: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Outgoing:
    """A response to write. `resources`: (name, content)."""

    type_url: str
    nonce: str
    resources: tuple[tuple[str, Held], ...] = ()
    removed: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The client's ACK (`reason` None) or NACK of one response.

    `versions` and `removed` are what that response held. `blamed`: the names that the reason speaks of; all of the
    response when it names none.
    """

    type_url: str
    nonce: str
    versions: Mapping[str, str]
    removed: tuple[str, ...]
    reason: str | None = None
    blamed: tuple[str, ...] = ()


class Subscription:
    """What one client wants of one type, what it was sent, and what is due."""

    def __init__(self, type_url: str, scopes: frozenset[str] | None = None) -> None:
        """`scopes` (`<server>/<config>`) narrows what `*` means; None: everything."""
        self.type_url = type_url
        self.wildcard = False
        self.names: set[str] = set()
        self.globs: set[str] = set()  # with the slash, without the star
        self.sent: dict[str, Held] = {}
        self.acks = 0
        self.nacks: list[Answer] = []  # the newest KEPT_NACKS
        self.nack_count = 0
        self.last_nonce = ""
        self._scopes = scopes
        self._asked = False
        self._owes_answer = False
        # Name → whether it is sent even if the client is believed to have it. A name stands in one of the two, and in
        # _removals only while the catalog does not have it.
        self._updates: dict[str, bool] = {}
        self._removals: dict[str, bool] = {}
        # Names of _updates in the order they are taken: a name that keeps changing does not hold back older ones.
        self._round: list[str] = []
        self._unanswered: dict[str, Outgoing] = {}

    @property
    def unanswered(self) -> int:
        """Responses sent that the client has neither accepted nor rejected yet."""
        return len(self._unanswered)

    def covers(self, name: str) -> bool:
        """Whether the client wants the resource of that name."""
        return name in self.names or self._covered_widely(name)

    def request(self, ask: Ask, catalog: Mapping[str, Held]) -> Answer | None:
        """Take a request in. Returns what it answers, or None when it answers nothing (or something long forgotten)."""
        first, self._asked = not self._asked, True
        if first:
            self._owes_answer = True
            self.sent = {name: _claimed(catalog.get(name), version) for name, version in ask.versions.items()}
        if ask.unsubscribe:
            self._unsubscribe(ask.unsubscribe, catalog)
        # A resubscribed name is sent again, but what the client said it has in this very request is not (reconnect).
        if first and not ask.subscribe:
            self._subscribe((WILDCARD,), catalog, again=False)
        elif ask.subscribe:
            self._subscribe(ask.subscribe, catalog, again=not first)
        if first:
            for name in [name for name in self.sent if not self.covers(name)]:
                del self.sent[name]
            for name in self.sent:
                if name not in catalog:
                    self._removals.setdefault(name, False)
        return self._answered(ask)

    def changed(self, names: Iterable[str]) -> bool:
        """Note that the content of `names` changed. Returns whether the client is concerned."""
        concerned = False
        for name in names:
            if not self.covers(name):
                continue
            concerned = True
            self._updates.setdefault(name, self._removals.pop(name, False))
            for prefix in _prefixes(name):
                # The glob is not empty any more: saying so now would take away what is being sent.
                self._removals.pop(prefix + WILDCARD, None)
        return concerned

    def pull_updates(self, catalog: Mapping[str, Held], nonce: str) -> Outgoing | None:
        """The next response with resources (or the empty one that is owed), or None. It counts as sent."""
        if len(self._unanswered) >= MAX_UNANSWERED:
            return None
        resources: list[tuple[str, Held]] = []
        size = 0
        while self._updates and size < SPLIT_BYTES:
            if not self._round:
                self._round = list(self._updates)
                self._round.reverse()
            name = self._round.pop()
            again = self._updates.pop(name, None)
            if again is None:
                continue
            held = catalog.get(name)
            if held is None:
                self._removals[name] = again
                continue
            if not again and self.sent.get(name) == held:
                continue
            cost = len(held.payload) + 2 * len(self.type_url) + len(name) + len(held.version) + 32
            if resources and size + cost > SPLIT_BYTES:
                self._updates[name] = again
                self._round.append(name)
                break
            size += cost
            self.sent[name] = held
            resources.append((name, held))
        if not self._updates:
            # A dict keeps the room that it once needed, and every stream has one.
            self._updates, self._round = {}, []
        if not resources and (not self._owes_answer or self._has_removals()):
            return None
        resources.sort()
        return self._send(Outgoing(self.type_url, nonce, resources=tuple(resources)))

    def pull_removals(self, nonce: str) -> Outgoing | None:
        """The next response with removals, or None. To be called when no type has updates left, which finds them."""
        if len(self._unanswered) >= MAX_UNANSWERED:
            return None
        removed: list[str] = []
        size = 0
        while self._removals and size < SPLIT_BYTES:
            name, always = self._removals.popitem()
            if (self.sent.pop(name, None) is not None) or always:
                removed.append(name)
                size += len(name) + 4
        if not removed:
            return None
        return self._send(Outgoing(self.type_url, nonce, removed=tuple(sorted(removed))))

    def record(self, outgoing: Outgoing) -> None:
        """Expect an answer to a response that was not pulled from here (a scripted one)."""
        while len(self._unanswered) >= 4 * MAX_UNANSWERED:
            del self._unanswered[next(iter(self._unanswered))]
        self._unanswered[outgoing.nonce] = outgoing
        self.last_nonce = outgoing.nonce

    def _send(self, outgoing: Outgoing) -> Outgoing:
        self._owes_answer = False
        self._unanswered[outgoing.nonce] = outgoing
        self.last_nonce = outgoing.nonce
        return outgoing

    def _has_removals(self) -> bool:
        return any(always or name in self.sent for name, always in self._removals.items())

    def _subscribe(self, wanted: tuple[str, ...], catalog: Mapping[str, Held], *, again: bool) -> None:
        prefixes = {name[:-1] for name in wanted if name.endswith("/*")}
        whole = WILDCARD in wanted
        self.wildcard = self.wildcard or whole
        self.globs |= prefixes
        if whole or prefixes:
            empty = set(prefixes)
            for name in catalog:
                inside = prefixes.intersection(_prefixes(name)) if prefixes else prefixes
                empty -= inside
                if inside or (whole and self._in_scopes(name)):
                    self._due(name, again=again)
            for prefix in empty:
                self._removals[prefix + WILDCARD] = True
        for name in wanted:
            if name == WILDCARD or name.endswith("/*"):
                continue
            self.names.add(name)
            if name in catalog:
                self._due(name, again=again)
            else:
                self._updates.pop(name, None)
                self._removals[name] = True

    def _due(self, name: str, *, again: bool) -> None:
        missed = self._removals.pop(name, False)
        self._updates[name] = again or missed or self._updates.get(name, False)

    def _unsubscribe(self, unwanted: tuple[str, ...], catalog: Mapping[str, Held]) -> None:
        wide = False
        for name in unwanted:
            if name == WILDCARD:
                wide, self.wildcard = True, False
            elif name.endswith("/*"):
                wide = True
                self.globs.discard(name[:-1])
                self._removals.pop(name, None)
            elif name in self.names:
                self.names.discard(name)
                if not self._covered_widely(name):
                    self._forget(name)
                elif name in catalog:
                    self._due(name, again=True)
                else:
                    self._removals[name] = True
        if wide:
            tracked = {*self.sent, *self._updates, *self._removals}
            for name in [name for name in tracked if not self.covers(name) and not self._is_glob(name)]:
                self._forget(name)

    def _is_glob(self, name: str) -> bool:
        return name.endswith("/*") and name[:-1] in self.globs

    def _forget(self, name: str) -> None:
        self.sent.pop(name, None)
        self._updates.pop(name, None)
        self._removals.pop(name, None)

    def _covered_widely(self, name: str) -> bool:
        if self.wildcard and self._in_scopes(name):
            return True
        return bool(self.globs) and not self.globs.isdisjoint(_prefixes(name))

    def _in_scopes(self, name: str) -> bool:
        return self._scopes is None or "/".join(name.split("/", 2)[:2]) in self._scopes

    def _answered(self, ask: Ask) -> Answer | None:
        # A nonce of another stream, or of a response answered before, says nothing; names in the same request count.
        outgoing = self._unanswered.pop(ask.nonce, None) if ask.nonce else None
        if outgoing is None:
            return None
        versions = {name: held.version for name, held in outgoing.resources}
        if ask.error is None:
            self.acks += 1
            return Answer(self.type_url, ask.nonce, versions, outgoing.removed)
        everything = (*versions, *outgoing.removed)
        blamed = tuple(name for name in everything if _speaks_of(ask.error, name)) or everything
        answer = Answer(self.type_url, ask.nonce, versions, outgoing.removed, ask.error, blamed)
        self.nack_count += 1
        self.nacks = [*self.nacks[1 - KEPT_NACKS :], answer]
        return answer


def _claimed(held: Held | None, version: str) -> Held:
    return held if held is not None and held.version == version else Held(version, b"")


def _prefixes(name: str) -> Iterator[str]:
    at = name.find("/")
    while at >= 0:
        yield name[: at + 1]
        at = name.find("/", at + 1)


def _speaks_of(reason: str, name: str) -> bool:
    """Whether the name stands in the reason, and not only as a part of a longer name."""
    if name not in reason:
        return False
    return re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-]|\.\w)", reason) is not None
