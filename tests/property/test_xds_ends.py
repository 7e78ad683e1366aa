"""Both ends of the wire without a wire: our session against the example control plane's, messages lost at every cut.

Whatever is updated, withdrawn, refused, cut, rescoped or broken in between, once all is quiet the gateway holds what
the control plane publishes for its scopes, or of a resource whose newest version it refuses one that it took before;
and it claims no version that it does not hold.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from arion_tds.model.delivery import CATALOG, Delivered, Delivery, DeliveryVerdict, Kind, ResourceId
from arion_tds.model.problem import Problem
from arion_tds.xds import ids
from arion_tds.xds.held import UNSETTLED
from arion_tds.xds.session import Session, Ticket
from arion_tds.xds.subscription import Request
from control_plane_example import session as plane
from control_plane_example.snapshot import Held, Key, Origin, Snapshot
from control_plane_example.subscription import Answer, Ask, Outgoing

FLEET = "arion"
SCOPES = ("a/m", "b/m")


class Ends:
    """A gateway's session and a control plane's, with what is on its way between them. One stream after the other."""

    def __init__(self, scopes: Iterable[str], *, wildcard: bool) -> None:
        self.client = Session(scopes, wildcard=wildcard)
        self.snapshot = Snapshot()
        self.snapshot.publish_fleet(FLEET)
        self.up: deque[Request] = deque()
        self.down: deque[Outgoing] = deque()
        self.server: plane.Session | None = None
        self.stream = 0
        self.answers: list[Answer] = []
        self.heard: dict[Kind, list[str]] = {}
        self.cut()

    def cut(self) -> None:
        """The stream ends with everything that is on its way, and a new one begins."""
        self.up.clear()
        self.down.clear()
        self.server = None
        self.stream += 1
        self.heard = {kind: [] for kind in CATALOG}
        self.client.close()
        self.client.open()

    def restart(self, scopes: Iterable[str], *, wildcard: bool) -> None:
        """The gateway's process ends, and a new one begins that knows nothing."""
        self.client = Session(scopes, wildcard=wildcard)
        self.cut()

    def publish(self, updates: Mapping[tuple[Kind, str], Held], removals: Iterable[tuple[Kind, str]] = ()) -> None:
        """Change what the control plane has."""
        changes = self.snapshot.apply(
            [(Key(FLEET, kind.value, name), held) for (kind, name), held in updates.items()],
            [Key(FLEET, kind.value, name) for kind, name in removals],
            Origin.PUT,
        )
        if self.server is not None and FLEET in changes:
            self.server.changed(changes[FLEET])

    def client_says(self) -> bool:
        """The gateway sends its next request. False: it has none."""
        request = self.client.next_request()
        if request is None:
            return False
        if request.nonce:
            assert request.nonce == self.heard[request.kind].pop(0), "answers go out in order, on their own stream only"
        self.up.append(request)
        return True

    def server_hears(self) -> bool:
        """A request arrives."""
        if not self.up:
            return False
        request = self.up.popleft()
        if self.server is None:
            self.server = plane.Session(self.stream, plane.Declared("node", FLEET, request.scopes))
        ask = Ask(
            request.kind.value,
            request.subscribe,
            request.unsubscribe,
            request.versions,
            request.nonce,
            request.error or None,
        )
        answer = self.server.request(ask, self.snapshot)
        assert not isinstance(answer, str), answer
        if answer is not None:
            self.answers.append(answer)
        return True

    def server_says(self) -> bool:
        """The control plane sends its next response."""
        outgoing = None if self.server is None else self.server.pull(self.snapshot)
        if outgoing is None:
            return False
        self.down.append(outgoing)
        return True

    def contradicts(self, kind: Kind) -> None:
        """The control plane sends a response that names everything it has twice."""
        if self.server is not None and kind.value in self.server.types:
            everything = tuple(self.snapshot.catalog(FLEET, kind.value).items())
            outgoing = Outgoing(kind.value, self.server.next_nonce(), everything * 2)
            self.server.record(outgoing)
            self.down.append(outgoing)

    def client_hears(self) -> Ticket | None:
        """A response arrives; its ticket. None: there is none."""
        if not self.down:
            return None
        outgoing = self.down.popleft()
        intake = self.client.begin(outgoing.type_url, outgoing.nonce)
        assert intake is not None
        for name, held in outgoing.resources:
            intake.update(name, held.version, outgoing.type_url, held.payload)
        for name in outgoing.removed:
            intake.remove(name)
        self.heard[intake.kind].append(outgoing.nonce)
        return self.client.receive(intake)

    def published(self, kind: Kind, scopes: Iterable[str]) -> dict[str, Held]:
        """What the control plane has of the scopes."""
        catalog = self.snapshot.catalog(FLEET, kind.value)
        return {name: held for name, held in catalog.items() if scope_of(name) in scopes}

    def owes(self) -> int:
        """Responses that the control plane has no answer to."""
        return 0 if self.server is None else sum(each.unanswered for each in self.server.types.values())


def scope_of(name: str) -> str:
    return "/".join(name.split("/", 2)[:2])


def until_quiet(*steps: Callable[[], bool]) -> None:
    """Take every step until none of them does anything any more."""
    for _ in range(10_000):
        moved = [step() for step in steps]
        if not any(moved):
            return
    raise AssertionError("the two ends talk for ever")


# The handler, as simple as the contract allows


@dataclasses.dataclass
class Catalog:
    """One scope's resources: what is in use by kind and name, and which response decided last."""

    used: dict[tuple[Kind, str], Held] = dataclasses.field(default_factory=dict)
    decided: dict[tuple[Kind, str], int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(eq=False)
class Work:
    """A delivery in the handler's hands, for the catalogs that there were when it came."""

    ticket: Ticket
    delivery: Delivery
    catalogs: dict[str, Catalog]

    def apply(self) -> DeliveryVerdict:
        """Take what is good, unless something newer has been taken already."""
        kind, seq = self.delivery.kind, self.ticket.seq
        rejected: list[Problem] = []
        for gone in self.delivery.removals:
            catalog = self.catalogs[gone.scope]
            if catalog.decided.get((kind, str(gone)), 0) < seq:
                catalog.decided[kind, str(gone)] = seq
                catalog.used.pop((kind, str(gone)), None)
        for update in self.delivery.updates:
            key, catalog = (kind, str(update.id)), self.catalogs[update.id.scope]
            if update.payload.startswith(b"bad"):
                rejected.append(Problem(str(update.id), "it is bad"))
            elif catalog.decided.get(key, 0) < seq:
                catalog.decided[key] = seq
                catalog.used[key] = Held(update.version, update.payload)
        return DeliveryVerdict(tuple(rejected))


KINDS = (Kind.TOOL, Kind.SERVER)
"""Tools are handled in order of arrival, servers as they come."""

kinds = st.sampled_from(KINDS)
names = st.sampled_from(["a/m/x.a", "a/m/x.b/c", "b/m/x.a", "b/m/x.a", "c/m/x.a"])
changes = st.dictionaries(names, st.sampled_from(["good", "good", "good", "bad", "gone"]), min_size=1)
scopes = st.sampled_from([SCOPES, SCOPES, SCOPES, SCOPES[:1], SCOPES[1:], ()])


class Conversation(RuleBasedStateMachine):
    """Each rule is one thing that happens somewhere; none waits for another."""

    @initialize(wildcard=st.booleans(), connected=st.booleans())
    def begin(self, wildcard: bool, connected: bool) -> None:
        self.wildcard = wildcard
        self.ends = Ends(SCOPES, wildcard=wildcard)
        self.catalogs = {scope: Catalog() for scope in SCOPES}
        self.work: list[Work] = []
        self.version = 0
        self.disk: dict[tuple[Kind, str], Held] = {}
        self.good: dict[tuple[Kind, str], set[str]] = {}
        self.broke = False
        for kind in KINDS:  # a run that never publishes should still have something to lose
            self.publishes(kind, dict.fromkeys(("a/m/x.a", "b/m/x.a"), "good"))
        if connected:
            self.settle_down()

    # The control plane

    @rule(kind=kinds, changes=changes)
    def publishes(self, kind: Kind, changes: dict[str, str]) -> None:
        """One change of the whole: some are added or replaced, some withdrawn."""
        updates: dict[tuple[Kind, str], Held] = {}
        for name, change in changes.items():
            if change == "gone":
                continue
            self.version += 1
            updates[kind, name] = Held(f"v{self.version}", f"{change} {self.version}".encode())
            if change == "good":
                self.good.setdefault((kind, name), set()).add(f"v{self.version}")
        self.ends.publish(updates, [(kind, name) for name, change in changes.items() if change == "gone"])

    @rule(kind=kinds)
    def contradicts_itself(self, kind: Kind) -> None:
        self.ends.contradicts(kind)

    # The gateway

    @rule(moves=st.lists(st.sampled_from(["client_says", "server_hears", "server_says", "client_hears"]), max_size=12))
    def messages_move(self, moves: list[str]) -> None:
        """A few of those that are on their way get further."""
        for move in moves:
            if move == "client_hears":
                self.hear()
            else:
                getattr(self.ends, move)()

    @rule()
    def messages_arrive(self) -> None:
        """All of them; what the handler has in hand stays there."""
        until_quiet(self.ends.client_says, self.ends.server_hears, self.ends.server_says, self.hear)

    def hear(self) -> bool:
        ticket = self.ends.client_hears()
        if ticket is None:
            return False
        if ticket.delivery is not None:
            self.work.append(Work(ticket, ticket.delivery, dict(self.catalogs)))
        return True

    @precondition(lambda self: self.work)
    @rule(data=st.data())
    def handler_is_done(self, data: st.DataObject) -> None:
        self.finish(data.draw(st.sampled_from(self.ready())))

    def finish(self, work: Work) -> None:
        self.work.remove(work)
        self.ends.client.settle(work.ticket, work.apply())

    def finish_next(self) -> bool:
        if not self.work:
            return False
        self.finish(self.work[0])
        return True

    def ready(self) -> list[Work]:
        """What may be done next: any server, but of tools the first alone."""
        tools = [work for work in self.work if work.delivery.kind is Kind.TOOL]
        return [work for work in self.work if work.delivery.kind is not Kind.TOOL or work is tools[0]]

    @precondition(lambda self: self.work)
    @rule(data=st.data(), applied=st.booleans())
    def handler_breaks(self, data: st.DataObject, applied: bool) -> None:
        work = data.draw(st.sampled_from(self.ready()))
        self.work.remove(work)
        if applied:
            work.apply()
        self.broke = True
        self.ends.client.settle(work.ticket, None)

    @rule(chosen=scopes)
    def scopes_change(self, chosen: tuple[str, ...]) -> None:
        self.catalogs = {scope: self.catalogs.get(scope) or Catalog() for scope in chosen}
        if self.ends.client.set_scopes(chosen):
            self.ends.cut()

    @rule(scope=st.sampled_from(SCOPES))
    def a_scope_goes_and_comes_back(self, scope: str) -> None:
        """Nothing can be said in between."""
        before = tuple(self.catalogs)
        self.scopes_change(tuple(other for other in before if other != scope))
        self.scopes_change(before)

    # Its process

    @rule(kind=kinds)
    def disk_catches_up(self, kind: Kind) -> None:
        """What is kept lags behind, by type or altogether, but a version stands beside its own content."""
        self.disk = {key: held for key, held in self.disk.items() if key[0] is not kind}
        self.disk |= {(kind, name): held for name, held in self.used(kind).items()}

    @rule(connected=st.booleans())
    def the_gateway_restarts(self, connected: bool) -> None:
        """What was kept is handed over before the first stream; its verdict may come any time later."""
        self.catalogs = {scope: Catalog() for scope in self.catalogs}
        self.work.clear()
        self.ends.restart(self.catalogs, wildcard=self.wildcard)
        for kind in KINDS:
            kept: list[Delivered] = []
            for (found, name), held in self.disk.items():
                parsed = ids.parse(name)
                if found is kind and isinstance(parsed, ResourceId) and parsed.scope in self.catalogs:
                    kept.append(Delivered(parsed, held.version, held.payload, kept=True))
            delivery = Delivery(kind, tuple(kept), ())
            self.work.append(Work(self.ends.client.restore(delivery), delivery, dict(self.catalogs)))
        if connected:
            while self.finish_next():
                pass

    # Between the two

    @rule()
    def cut(self) -> None:
        self.ends.cut()

    @rule()
    def all_is_quiet(self) -> None:
        self.settle_down()
        if self.broke:  # what a broken handler left is repaired by the next stream
            self.broke = False
            self.ends.cut()
            self.settle_down()
        self.both_agree()

    @rule()
    def a_new_stream_repairs_everything(self) -> None:
        self.settle_down()
        self.ends.cut()
        self.settle_down()
        self.both_agree()
        for kind in KINDS:
            used = self.used(kind)
            claims = self.ends.client.types[kind].held.claims()
            for name, held in self.ends.published(kind, self.catalogs).items():
                if not held.payload.startswith(b"bad"):
                    assert claims[name] == used[name].version == held.version
        self.broke = False

    def settle_down(self) -> None:
        ends = self.ends
        until_quiet(ends.client_says, ends.server_hears, ends.server_says, self.hear, self.finish_next)
        assert ends.owes() == 0
        assert not any(ends.heard.values())

    def used(self, kind: Kind) -> dict[str, Held]:
        return {
            name: held
            for catalog in self.catalogs.values()
            for (found, name), held in catalog.used.items()
            if found is kind
        }

    def both_agree(self) -> None:
        for kind in KINDS:
            used = self.used(kind)
            published = self.ends.published(kind, self.catalogs)
            for name, held in published.items():
                if not held.payload.startswith(b"bad"):
                    assert used[name] == held
                elif name in used:
                    assert used[name].version in self.good[kind, name]
            assert used.keys() <= published.keys()
            assert self.ends.client.types[kind].held.claims().keys() <= published.keys()

    @invariant()
    def no_claim_hides_a_difference(self) -> None:
        """What is claimed is in use, and what is in use, or may come to be, is claimed."""
        for kind in KINDS:
            used = self.used(kind)
            claims = self.ends.client.types[kind].held.claims()
            flying = {
                str(update.id)
                for work in self.work
                if work.delivery.kind is kind
                for update in work.delivery.updates
                if update.id.scope in self.catalogs
            }
            assert all(claims[name] == UNSETTLED for name in flying)
            for name, held in used.items():
                assert claims[name] in {held.version, UNSETTLED}
            assert all(version == UNSETTLED or name in used for name, version in claims.items())


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
