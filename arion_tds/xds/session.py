"""All types on one stream: what to ask, what a response means, what to answer, and what outlives the stream.

In: responses (through an `Intake`), verdicts, changes of scope, the stream's beginnings and ends. Out: `Ticket`s for
the handler and `Request`s for the wire, pulled. Called by xds.stream. No step awaits; the state is owned by the
client's loop.

The rules (envoyproxy/envoy api-docs/xds_protocol.rst, "Incremental xDS"; gRFC A46 for partial acceptance):
- each response of a type that was asked for gets one answer, with its own nonce, in order of arrival within its type;
- a nonce dies with its stream; names and versions in use are said anew on the next one, versions in first requests;
- a response that is void as a whole changes nothing; otherwise the good is applied and the bad is named in the NACK;
- a version counts as in use when its verdict is in, never before.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from arion_tds.model.delivery import CATALOG, Delivery, DeliveryVerdict, Kind, ResourceId
from arion_tds.model.problem import Problem
from arion_tds.xds import ids
from arion_tds.xds.held import UNSETTLED, Held
from arion_tds.xds.response import Checked, Intake, ServerError, reason
from arion_tds.xds.subscription import Request, Subscription

INTERNAL_ERROR: Final = "internal error: the gateway failed to handle this response; its log says more"


@dataclasses.dataclass(slots=True, eq=False)
class Ticket:
    """A response that is being handled. `delivery` None: nothing is, or no longer, to be handed over.

    `errors` is what the server said it cannot give; `error`, once settled, the NACK's text, "" for an ACK. `restored`:
    no response brought it, but what an earlier life of the gateway kept. `first`: its type had none on this stream
    before, so that whatever the control plane still has and was refused comes (again) with it or after it. `malformed`
    names resources whose IDs nobody can place: they are rejected here and delivered to nobody.
    """

    kind: Kind
    delivery: Delivery | None
    errors: tuple[ServerError, ...]
    nonce: str
    seq: int
    generation: int
    checked: Checked | None
    error: str = ""
    restored: bool = False
    first: bool = False
    malformed: tuple[Problem, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether the verdict is in."""
        return self.checked is None


@dataclasses.dataclass(slots=True)
class Tally:
    """Counts of one type since the client was made. `last_nack` is the text of the last NACK sent."""

    responses: int = 0
    acks: int = 0
    nacks: int = 0
    dropped: int = 0
    last_nack: str = ""


class TypeState:
    """One type: its subscription, versions, counts, and the answers that the current stream still owes."""

    __slots__ = ("answered", "heard", "held", "owed", "restoring", "since", "subscription", "tally", "unsettled")

    def __init__(self, wanted: tuple[str, ...], scopes: Iterable[str], *, scoped: bool) -> None:
        self.subscription = Subscription(wanted)
        self.held = Held(scopes, scoped=scoped)
        self.owed: deque[Ticket] = deque()
        self.tally = Tally()
        self.answered = False
        self.heard = False
        self.unsettled = 0
        self.restoring = 0
        self.since = 0

    def take(self, ticket: Ticket, checked: Checked) -> None:
        """A response has been read."""
        self.tally.responses += 1
        self.owed.append(ticket)
        self.unsettled += 1
        self.held.touch(checked.names, ticket.seq)
        self.held.touch(checked.gone, ticket.seq)

    def restore(self, ticket: Ticket, checked: Checked) -> None:
        """Kept content is being applied."""
        self.restoring += 1
        self.held.touch(checked.names, ticket.seq)

    def finish(self, ticket: Ticket, error: str) -> None:
        """Its verdict is in. The payloads go: the answer may have to wait behind an older one."""
        ticket.checked = ticket.delivery = None
        ticket.error = error
        if ticket.restored:
            self.restoring -= 1
            return
        self.unsettled -= 1
        # One that came before the newest scope says nothing about it.
        self.answered = self.answered or ticket.generation >= self.since

    def answer(self) -> Request | None:
        """The next answer in order of arrival, when it is known."""
        if not self.owed or not self.owed[0].settled:
            return None
        ticket = self.owed.popleft()
        if ticket.error:
            self.tally.nacks += 1
            self.tally.last_nack = ticket.error
        else:
            self.tally.acks += 1
        return Request(ticket.kind, nonce=ticket.nonce, error=ticket.error)


class Session:
    """The client's whole protocol state. Survives streams: `open` begins one, `close` ends it."""

    def __init__(self, scopes: Iterable[str], *, wildcard: bool, kinds: Sequence[Kind] = CATALOG) -> None:
        """`wildcard`: subscribe to `*` and declare the scopes in the node; else subscribe to each scope's glob.

        `kinds` in the order in which they are asked for. Clusters are always asked for with `*`; of endpoints those
        that `want` names, as CDS and EDS have it.
        """
        self._wildcard = wildcard
        self._scopes: dict[str, None] = dict.fromkeys(scopes)
        self._generation = 0
        self.types = {kind: TypeState(self._names(kind), self._scopes_of(kind), scoped=kind.scoped) for kind in kinds}
        self._turn: deque[Kind] = deque(kinds)
        self._open = False
        self._node_sent = False
        self._left: set[str] = set()
        self._seq = 0
        self.dropped = 0

    @property
    def unanswered(self) -> int:
        """Responses of this stream without an answer on the wire, plus those of older ones still being handled."""
        settled = sum(ticket.settled for state in self.types.values() for ticket in state.owed)
        return settled + self.unsettled

    @property
    def unsettled(self) -> int:
        """Responses, of any stream, whose verdict is not in."""
        return sum(state.unsettled for state in self.types.values())

    @property
    def complete(self) -> bool:
        """Whether every type's first response was settled and no handler is still at work on another."""
        return all(
            (state.answered or not state.subscription.wanted) and not state.unsettled and not state.restoring
            for state in self.types.values()
        )

    @property
    def has_names(self) -> bool:
        """Whether there is anything to ask for."""
        return bool(self._scopes)

    def set_scopes(self, scopes: Iterable[str]) -> bool:
        """Consume exactly these. True: the stream must be opened anew.

        That is when its node declares too few; and when a scope returns that was left on this stream: a response sent
        before the server heard of that may still be on its way, and could bring back what is gone since.
        """
        new = dict.fromkeys(scopes)
        gone = [scope for scope in self._scopes if scope not in new]
        come = [scope for scope in new if scope not in self._scopes]
        if not gone and not come:
            return False
        self._generation += 1
        self._scopes = new
        if self._open and self._node_sent:
            self._left.update(gone)
        for kind, state in self.types.items():
            if not kind.scoped:
                continue
            for scope in gone:
                state.held.drop_scope(scope)
            for scope in come:
                state.held.add_scope(scope, self._generation)
            if come:
                state.answered, state.since = False, self._generation
            if not self._wildcard:
                state.subscription.want(self._names(kind))
        anew = bool(come) if self._wildcard else not self._left.isdisjoint(come)
        return anew and self._open and self._node_sent

    def want(self, kind: Kind, names: Iterable[str]) -> None:
        """Ask for exactly these resources of a kind without scopes; the caller has dropped what it had of others."""
        state = self.types[kind]
        wanted = dict.fromkeys(names)
        state.held.drop([name for name in state.subscription.wanted if name not in wanted])
        state.subscription.want(wanted)

    def unsettle(self, scope: str) -> None:
        """Have all of the scope said anew, on the next stream: what was applied may come to something else by now."""
        for state in self.types.values():
            state.held.unsettle(scope)

    def open(self) -> None:
        """A new stream begins."""
        self._open = True
        self._node_sent = False
        self._left.clear()
        for state in self.types.values():
            state.owed.clear()
            state.heard = False
            state.subscription.open()

    def close(self) -> None:
        """The stream is gone, and with it every answer that it was owed."""
        self._open = False
        for state in self.types.values():
            state.owed.clear()

    def next_request(self) -> Request | None:
        """The next thing to say on the stream, or None: subscriptions of every type first, then answers in turn."""
        if not self._open:
            return None
        for kind, state in self.types.items():
            first = not state.subscription.asked
            pulled = state.subscription.pull()
            if pulled is not None:
                versions = state.held.claims() if first else {}
                return Request(kind, *pulled, versions=versions, scopes=self._node())
        for kind in self._turn:
            answer = self.types[kind].answer()
            if answer is not None:
                # The type that was just served goes last, so that a busy one does not starve the others.
                self._turn.remove(kind)
                self._turn.append(kind)
                return answer
        return None

    def begin(self, type_url: str, nonce: str) -> Intake | None:
        """Start to read a response. None: its type was not asked for; it is dropped, counted and not answered."""
        state = next((state for kind, state in self.types.items() if kind.value == type_url), None)
        if state is None or not state.subscription.asked:
            self.dropped += 1
            if state is not None:
                state.tally.dropped += 1
            return None
        kind = Kind(type_url)
        return Intake(kind, nonce, self._scopes_of(kind), state.held, self._generation)

    def receive(self, intake: Intake) -> Ticket:
        """The response has been read: it is now owed an answer, and the handler its delivery, if there is one."""
        checked = intake.checked()
        self._seq += 1
        delivery = checked.delivery if checked.delivery.updates or checked.delivery.removals else None
        ticket = Ticket(intake.kind, delivery, checked.errors, intake.nonce, self._seq, intake.generation, checked)
        state = self.types[intake.kind]
        if not checked.fault:
            ticket.first, state.heard = not state.heard, True
            ticket.malformed = checked.problems
        state.take(ticket, checked)
        if delivery is None:
            self.settle(ticket, DeliveryVerdict())
        return ticket

    def restore(self, delivery: Delivery) -> Ticket:
        """Updates that an earlier life of the gateway kept go to the handler; to be called before the first stream.

        No stream is owed an answer for them, and no type counts as answered. Until their verdict is in they are claimed
        as what nobody has, so that the control plane says what has become of each; then with their versions.
        """
        names = tuple(str(update.id) for update in delivery.updates)
        checked = Checked(delivery, names, (), (), (), "", len(names))
        self._seq += 1
        ticket = Ticket(delivery.kind, delivery, (), "", self._seq, self._generation, checked, restored=True)
        self.types[delivery.kind].restore(ticket, checked)
        return ticket

    def settle(self, ticket: Ticket, verdict: DeliveryVerdict | None) -> None:
        """The handler's verdict, at once."""
        for _ in self.settling(ticket, verdict):
            pass

    def settling(self, ticket: Ticket, verdict: DeliveryVerdict | None) -> Iterator[None]:
        """The handler's verdict, one resource a step, so that a long one can be taken in slices. A second one is void.

        Recorded whether or not the stream of the response still is. None: the handler broke, and what it had applied by
        then is not known, so no version of it is claimed.
        """
        checked = ticket.checked
        if checked is None:
            return
        state = self.types[ticket.kind]
        bad = {problem.where for problem in verdict.rejected} if verdict else set()
        for id, name, version in _outcomes(checked):  # noqa: A001
            if name in bad:
                state.held.keep(name)
            else:
                outcome = version if verdict else UNSETTLED
                state.held.settle(id, outcome, ticket.seq, ticket.generation)
            yield
        state.finish(ticket, _answer(checked, verdict))

    def claim(self, kind: Kind, id: ResourceId, version: str) -> None:  # noqa: A002  (the noun is called an ID)
        """A resource that was rejected has been taken after all: its version is in use from now on."""
        self.types[kind].held.claim(id, version)

    def _node(self) -> tuple[str, ...] | None:
        if self._node_sent:
            return None
        self._node_sent = True
        return tuple(self._scopes)

    def _names(self, kind: Kind) -> tuple[str, ...]:
        if kind is Kind.ENDPOINTS:
            return ()
        if kind is Kind.CLUSTER or self._wildcard:
            return (ids.WILDCARD,)
        return tuple(ids.glob(scope) for scope in self._scopes)

    def _scopes_of(self, kind: Kind) -> dict[str, None]:
        return self._scopes if kind.scoped else ids.NO_SCOPE


def _answer(checked: Checked, verdict: DeliveryVerdict | None) -> str:
    """The NACK's text, or "" for an ACK."""
    if checked.fault:
        return f"response refused as a whole, nothing of it was applied: {checked.fault}"
    if verdict is None:
        return INTERNAL_ERROR
    problems = checked.problems + verdict.rejected
    return reason(problems, checked.entries) if problems else ""


def _outcomes(checked: Checked) -> Iterator[tuple[ResourceId, str, str | None]]:
    """ID, as a name too, and version (None: gone) of everything that was delivered, if all of it is applied."""
    delivery = checked.delivery
    for update, name in zip(delivery.updates, checked.names, strict=True):
        yield update.id, name, update.version
    for removed, name in zip(delivery.removals, checked.gone, strict=True):
        yield removed, name, None
