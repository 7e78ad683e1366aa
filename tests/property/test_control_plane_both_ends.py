"""Both ends of the stream, pure: the gateway's session against the control plane's, with two implementations' views.

Resources come, change and go; responses and requests are delayed, streams are cut with all that is on its way, bad
content is refused, scopes come and go. After quiet, the gateway has exactly the content that is published in its
scopes, but for what it refused, and of that nothing but what was good before.
"""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arion_tds.model.delivery import CATALOG, DeliveryVerdict, Kind
from arion_tds.model.problem import Problem
from arion_tds.xds.session import Session as Gateway
from arion_tds.xds.subscription import Request
from control_plane_example.session import Declared
from control_plane_example.session import Session as Stream
from control_plane_example.snapshot import Held, Key, Origin, Snapshot
from control_plane_example.subscription import Ask, Outgoing

KINDS = (Kind.TOOL, Kind.TOOLKIT)
NAMES = ("a/m/x", "a/m/y", "b/m/x", "c/m/x")
BAD = "bad"


class World:
    """The two ends and what is on its way between them."""

    def __init__(self, *, wildcard: bool) -> None:
        self.snapshot = Snapshot()
        self.snapshot.publish_fleet("arion")
        self.scopes = {"a/m"}
        self.gateway = Gateway(sorted(self.scopes), wildcard=wildcard)
        self.content: dict[Kind, dict[str, bytes]] = {kind: {} for kind in CATALOG}
        self.streams = 0
        self.open()

    def open(self) -> None:
        self.gateway.close()
        self.gateway.open()
        self.stream: Stream | None = None
        self.requests: deque[Request] = deque()
        self.responses: deque[Outgoing] = deque()

    def publish(self, kind: Kind, name: str, version: str | None) -> None:
        key = Key("arion", kind.value, name)
        if version is None:
            changes = self.snapshot.apply([], [key], Origin.PUT)
        else:
            changes = self.snapshot.apply([(key, Held(version, version.encode()))], [], Origin.PUT)
        if self.stream is not None:
            self.stream.changed(changes.get("arion", {}))

    def set_scopes(self, scopes: set[str]) -> None:
        for scope in self.scopes - scopes:
            for content in self.content.values():
                for name in [name for name in content if name.startswith(f"{scope}/")]:
                    del content[name]
        self.scopes = scopes
        if self.gateway.set_scopes(sorted(scopes)):
            self.open()

    def request_arrives(self) -> bool:
        while (said := self.gateway.next_request()) is not None:
            self.requests.append(said)
        if not self.requests:
            return False
        request = self.requests.popleft()
        if self.stream is None:
            assert request.scopes is not None
            self.streams += 1
            self.stream = Stream(self.streams, Declared("n", "arion", request.scopes))
        ask = Ask(
            request.kind.value, request.subscribe, request.unsubscribe, request.versions, request.nonce,
            request.error or None,
        )  # fmt: skip
        assert not isinstance(self.stream.request(ask, self.snapshot), str)
        return True

    def response_leaves(self) -> bool:
        out = None if self.stream is None else self.stream.pull(self.snapshot)
        if out is None:
            return False
        self.responses.append(out)
        return True

    def response_arrives(self) -> bool:
        if not self.responses:
            return False
        out = self.responses.popleft()
        intake = self.gateway.begin(out.type_url, out.nonce)
        assert intake is not None
        for name, held in out.resources:
            intake.update(name, held.version, out.type_url, held.payload)
        for name in out.removed:
            intake.remove(name)
        ticket = self.gateway.receive(intake)
        if ticket.delivery is not None:
            content, bad = self.content[ticket.kind], []
            for gone in ticket.delivery.removals:
                content.pop(str(gone), None)
            for update in ticket.delivery.updates:
                if update.payload == BAD.encode():
                    bad.append(Problem(str(update.id), "bad"))
                else:
                    content[str(update.id)] = update.payload
            self.gateway.settle(ticket, DeliveryVerdict(tuple(bad)))
        return True

    def quiet(self) -> None:
        for _ in range(1000):
            if not (self.request_arrives() | self.response_leaves() | self.response_arrives()):
                return
        raise AssertionError("the two never fall silent")


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("publish"), st.sampled_from(KINDS), st.sampled_from(NAMES), st.sampled_from(["1", "2", BAD, None])
        ),
        st.sampled_from([("request",), ("leave",), ("arrive",), ("cut",), ("quiet",)]),
        st.tuples(st.just("scopes"), st.sets(st.sampled_from(["a/m", "b/m", "d/m"]))),
    ),
    max_size=40,
)


RETURNS: list[tuple[object, ...]] = [
    ("publish", Kind.TOOL, "a/m/x", "1"),
    ("publish", Kind.TOOL, "a/m/y", "1"),
    *[("request",)] * 3,
    ("leave",),
    ("scopes", set()),
    ("publish", Kind.TOOL, "a/m/x", None),
    ("scopes", {"a/m"}),
]
"""A scope is left and returns while a response is on its way that was sent before, and holds what is gone since."""


@pytest.mark.parametrize("wildcard", [True, False])
@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
@example(steps=RETURNS)
def test_after_quiet_the_gateway_has_what_is_published_but_for_what_it_refused(
    steps: list[tuple[object, ...]], *, wildcard: bool
) -> None:
    world = World(wildcard=wildcard)
    for step in steps:
        match step:
            case ("publish", Kind() as kind, str() as name, version):
                assert version is None or isinstance(version, str)
                world.publish(kind, name, version)
            case ("request",):
                world.request_arrives()
            case ("leave",):
                world.response_leaves()
            case ("arrive",):
                world.response_arrives()
            case ("cut",):
                world.open()
            case ("scopes", set() as scopes):
                world.set_scopes({str(scope) for scope in scopes})
            case _:
                world.quiet()
    world.quiet()
    for kind in CATALOG:
        published = {
            name: held.version
            for name, held in world.snapshot.catalog("arion", kind.value).items()
            if name.rpartition("/")[0] in world.scopes
        }
        content = {name: payload.decode() for name, payload in world.content[kind].items()}
        good = {name: version for name, version in published.items() if version != BAD}
        assert {name: content.get(name) for name in good} == good
        assert set(content) <= set(published)
        assert BAD not in content.values()
