"""The session against a small control plane and a small catalog, both written straight from the contract.

Responses, verdicts, cuts, changes of content and of scopes come in any order. What must hold at every moment: a version
that is claimed is the one in use (or is claimed as unsettled), and everything in use is claimed. What must hold once
all is quiet: what is served is what the control plane has.
"""

from __future__ import annotations

import dataclasses
from collections import deque

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from arion_tds.model.delivery import CATALOG, Delivery, DeliveryVerdict, Kind
from arion_tds.model.problem import Problem
from arion_tds.xds.held import UNSETTLED
from arion_tds.xds.session import Session, Ticket
from arion_tds.xds.subscription import Request

KINDS = (Kind.TOOL, Kind.SERVER)
"""Tools are applied in order of arrival; servers as they come, where a newer update overtakes an older one."""

SCOPES = ("s/m", "t/m")
kinds = st.sampled_from(KINDS)
names = st.sampled_from(["s/m/x.a", "s/m/x.b", "t/m/x.a"])
changes = st.dictionaries(names, st.sampled_from(["1", "2", "1", "2", "bad", None]), min_size=1)
"""New versions by name; None deletes."""


def scope_of(name: str) -> str:
    return "/".join(name.split("/")[:2])


@dataclasses.dataclass
class Peer:
    """What the control plane believes of one type on the current stream."""

    subscribed: set[str] = dataclasses.field(default_factory=set)
    sent: dict[str, str] = dataclasses.field(default_factory=dict)
    owed: deque[str] = dataclasses.field(default_factory=deque)
    spoiled: bool = False

    def sees(self, name: str) -> bool:
        return "*" in self.subscribed or f"{scope_of(name)}/*" in self.subscribed


class Conversation(RuleBasedStateMachine):
    """Both ends, and the handler between."""

    def __init__(self) -> None:
        super().__init__()
        self.there: dict[Kind, dict[str, str]] = {kind: {} for kind in KINDS}
        self.content: dict[Kind, dict[str, str]] = {kind: {} for kind in KINDS}
        self.pending: dict[Kind, list[tuple[Ticket, Delivery]]] = {kind: [] for kind in KINDS}
        self.touched: dict[tuple[Kind, str], int] = {}
        self.born: dict[str, int] = {}
        self.moment = 0
        self.nonce = 0
        self.first: set[Kind] = set()
        self.peers = {kind: Peer() for kind in CATALOG}

    @initialize(wildcard=st.booleans())
    def begin(self, wildcard: bool) -> None:
        self.wildcard = wildcard
        self.session = Session(SCOPES[:1], wildcard=wildcard)
        self.scopes = set(SCOPES[:1])
        self._connect()

    # The control plane

    @rule(kind=kinds, changes=changes, void=st.sampled_from([False, False, False, True]))
    def pushes(self, kind: Kind, changes: dict[str, str | None], void: bool) -> None:
        self._change(kind, changes)
        self._send(kind, void=void)

    def _change(self, kind: Kind, changes: dict[str, str | None]) -> None:
        for name, version in changes.items():
            if version is None:
                self.there[kind].pop(name, None)
            else:
                self.there[kind][name] = version

    def _send(self, kind: Kind, *, void: bool = False) -> None:
        """What the peer does not have as far as the control plane knows."""
        peer = self.peers[kind]
        want = {name: version for name, version in self.there[kind].items() if peer.sees(name)}
        updates = {name: version for name, version in want.items() if peer.sent.get(name) != version}
        removed = [name for name in peer.sent if name not in want]
        if updates or removed:
            peer.sent = want
            peer.spoiled |= void
            self._respond(kind, updates, removed, twice=void)

    def _respond(self, kind: Kind, updates: dict[str, str], removed: list[str], *, twice: bool = False) -> None:
        self.nonce += 1
        nonce = f"n{self.nonce}"
        intake = self.session.begin(kind.value, nonce)
        assert intake is not None
        for name, version in updates.items():
            intake.update(name, version, kind.value, version.encode())
        for name in removed:
            intake.remove(name)
        if twice:
            intake.remove((list(updates) + removed)[0])
        ticket = self.session.receive(intake)
        self.peers[kind].owed.append(nonce)
        assert not twice or ticket.delivery is None
        if ticket.delivery is not None:
            self.moment += 1
            self.pending[kind].append((ticket, ticket.delivery))
            for id_ in (*(update.id for update in ticket.delivery.updates), *ticket.delivery.removals):
                self.touched[kind, str(id_)] = ticket.seq
                assert id_.scope in self.scopes

    # The handler

    @rule(kind=kinds, newest=st.booleans(), raises=st.sampled_from([False, False, False, True]))
    def settles(self, kind: Kind, newest: bool, raises: bool) -> None:
        if self.pending[kind]:
            self._settle(kind, -1 if newest and kind is Kind.SERVER else 0, raises=raises)

    def _settle(self, kind: Kind, at: int, *, raises: bool = False) -> None:
        ticket, delivery = self.pending[kind].pop(at)
        content = self.content[kind]
        rejected = []
        for removed in delivery.removals:
            if self._applies(kind, ticket, str(removed)):
                content.pop(str(removed), None)
        # A handler that breaks does so halfway through, and only a new stream brings what it left out.
        self.peers[kind].spoiled |= raises
        for update in delivery.updates[: len(delivery.updates) // 2 if raises else None]:
            name = str(update.id)
            if not self._applies(kind, ticket, name):
                continue
            if update.version.startswith("bad"):
                rejected.append(Problem(name, "bad"))
            else:
                content[name] = update.version
        self.session.settle(ticket, None if raises else DeliveryVerdict(tuple(rejected)))

    def _applies(self, kind: Kind, ticket: Ticket, name: str) -> bool:
        if scope_of(name) not in self.scopes or self.born.get(scope_of(name), 0) > ticket.seq:
            return False
        return kind is Kind.TOOL or self.touched[kind, name] == ticket.seq

    # The stream

    @rule(kind=kinds, changes=changes)
    def reconnects(self, kind: Kind, changes: dict[str, str | None]) -> None:
        """With changes while the stream is down."""
        self._break()
        self._change(kind, changes)
        self._connect()

    @rule()
    def speaks(self) -> None:
        while (request := self.session.next_request()) is not None:
            self._hear(request)

    def _connect(self) -> None:
        self.first = set()
        self.left: set[str] = set()
        self.peers = {kind: Peer() for kind in CATALOG}
        self.session.open()
        self.speaks()
        for kind in KINDS:
            self._send(kind)

    def _break(self) -> None:
        self.session.close()
        assert self.session.next_request() is None

    def _hear(self, request: Request) -> None:
        peer = self.peers[request.kind]
        assert (request.scopes is not None) == (not self.first)
        if request.scopes is not None:
            assert set(request.scopes) == self.scopes
        if request.kind not in self.first:
            self.first.add(request.kind)
            assert not request.nonce
            assert request.subscribe
            peer.sent = dict(request.versions)
        else:
            assert not request.versions
        assert not set(request.subscribe) & set(request.unsubscribe)
        peer.subscribed |= set(request.subscribe)
        for name in request.unsubscribe:
            peer.subscribed.remove(name)
            scope = name.removesuffix("/*")
            peer.sent = {sent: version for sent, version in peer.sent.items() if scope_of(sent) != scope}
            self._respond(request.kind, {}, [name])
        if request.nonce:
            assert peer.owed.popleft() == request.nonce
        else:
            assert not request.error

    @rule(scopes=st.sampled_from([set(SCOPES), set(SCOPES[:1]), set()]), speaks=st.booleans())
    def consumes(self, scopes: set[str], speaks: bool) -> None:
        for scope in self.scopes - scopes:
            for content in self.content.values():
                for name in [name for name in content if scope_of(name) == scope]:
                    del content[name]
        for scope in scopes - self.scopes:
            self.born[scope] = self.session._seq + 1
        come = scopes - self.scopes
        self.left |= self.scopes - scopes
        self.scopes = scopes
        if self.session.set_scopes(sorted(scopes)):
            assert come if self.wildcard else come & self.left
            self._break()
            self._connect()
        elif speaks:
            self.speaks()
            for kind in KINDS:
                self._send(kind)

    # What must hold

    @rule(newest=st.booleans())
    def quiets(self, newest: bool) -> None:
        """Every verdict comes in, and both sides agree on this very stream."""
        self._quiet(newest=newest)
        for kind in KINDS:
            self._send(kind)
        self._quiet(newest=newest)
        for kind in KINDS:
            peer = self.peers[kind]
            ours = {name: version for name, version in peer.sent.items() if scope_of(name) in self.scopes}
            assert peer.spoiled or self._serves(kind, ours)

    @invariant()
    def claims_hide_nothing(self) -> None:
        if not hasattr(self, "session"):
            return
        for kind in KINDS:
            claims = self.session.types[kind].held.claims()
            for name, version in claims.items():
                assert version in {UNSETTLED, self.content[kind].get(name)}
                assert scope_of(name) in self.scopes
            assert set(self.content[kind]) <= set(claims)

    @invariant()
    def counts_agree(self) -> None:
        if hasattr(self, "session"):
            assert self.session.unsettled == sum(len(pending) for pending in self.pending.values())

    def teardown(self) -> None:
        if not hasattr(self, "session"):
            return
        self.quiets(newest=False)
        for _ in range(2):
            self._break()
            self._connect()
            self._quiet()
        for kind in KINDS:
            there = {name: version for name, version in self.there[kind].items() if scope_of(name) in self.scopes}
            assert self._serves(kind, there)
            held = self.session.types[kind].held
            claims = held.claims()
            assert all(claims[name] == version for name, version in there.items() if version != "bad")
            assert not held._flying
            assert not held._races

    def _serves(self, kind: Kind, want: dict[str, str]) -> bool:
        """Whether the content is what the control plane wants; of what is bad an older version may still serve."""
        content = self.content[kind]
        good = {name: version for name, version in want.items() if version != "bad"}
        return set(content) <= set(want) and {name: content.get(name) for name in good} == good

    def _quiet(self, *, newest: bool = False) -> None:
        while any(self.pending.values()):
            for kind in KINDS:
                while self.pending[kind]:
                    self._settle(kind, -1 if newest and kind is Kind.SERVER else 0)
            self.speaks()
        self.speaks()
        assert not any(peer.owed for peer in self.peers.values())
        assert self.session.unanswered == 0


Conversation.TestCase.settings = settings(
    max_examples=200, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestConversation = pytest.mark.filterwarnings("default")(Conversation.TestCase)
