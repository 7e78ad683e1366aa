"""The whole write path against the update/remove table: control plane, session, ingest, catalog, View and search.

Both ends of the wire talk as in test_xds_ends; between them stands the real ingest over a real catalog, only that how
long a document or a server takes is the test's to say. Every commit is repeated on the registry's naive model. Once all
is quiet, what is served is what was last accepted, what is refused stands in the problems with its version, and View,
pages and search show one and the same set of tools.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from test_registry import Model
from test_xds_ends import Ends, until_quiet

from arion_tds import view as views
from arion_tds.catalog import Catalog
from arion_tds.decode.rules import DataRules
from arion_tds.finding import Finder
from arion_tds.history import History
from arion_tds.ingest import Ingest
from arion_tds.metrics import Metrics
from arion_tds.model import names
from arion_tds.model.backend import McpBackend
from arion_tds.model.change import Change, Remove, Verdict
from arion_tds.model.delivery import CATALOG, Delivered, Kind
from arion_tds.model.derived import Derived
from arion_tds.model.gateway import CodeMode, Gateway
from arion_tds.model.names import Naming
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.problems import Problems, Standing
from arion_tds.registry.reduce import Rules
from arion_tds.registry.snapshot import Owner
from arion_tds.schema import EMPTY_OBJECT
from arion_tds.server.settings import SearchAsk
from arion_tds.xds.held import UNSETTLED
from arion_tds.xds.session import Ticket
from control_plane_example import documents
from control_plane_example.snapshot import Held

SCOPE = "a/m"
ENVELOPES = {Kind.TOOL: "McpTool", Kind.SOURCE: "McpOpenApiSource", Kind.SERVER: "McpDynamicServer"}
RESOURCES = {
    Kind.TOOL: ["n.x", "n.y", "o.x"],
    Kind.SOURCE: ["n", "o"],
    Kind.SERVER: ["n", "o"],
    Kind.TOOLKIT: ["k"],
}


def word(number: int) -> str:
    """A word of its own for each version, none the beginning of another."""
    return "".join("bcdfghjklm"[int(digit)] for digit in f"{number:05}")


def spec(kind: Kind, name: str, text: str, tools: Sequence[str], fate: str) -> dict[str, Any]:
    """A resource that says `text`. `fate`: good, bad (cannot be decoded), broken (its tools cannot be had)."""
    bad = fate == "bad"
    content = json.dumps({"text": text, "tools": tools, "broken": fate == "broken"})
    match kind:
        case Kind.TOOL:
            namespace, _, local = name.partition(".")
            backend = {"method": "GET", "path": "/x", "cluster": "" if fate != "good" else "c"}
            return {"namespace": namespace, "name": local, "description": text, "rest_backend": backend}
        case Kind.SOURCE:
            return {"namespace": name, "cluster": "" if bad else text, "spec": {"inline_string": content}}
        case Kind.SERVER:
            url = "" if bad else "http://u.test/mcp"
            return {"namespace": name, "description": content, "transport": "StreamableHttp", "url": url}
        case Kind.TOOLKIT:
            refs = [{"namespace": "n", "name": "x"}, {"namespace": "o", "name": "x"}]
            return {"name": name, "instructions": text, "tools": refs if fate == "good" else refs[:1]}


def derived(namespace: str, content: str) -> Derived:
    """What becomes of a source's document or a server's description."""
    value = json.loads(content)
    if value["broken"]:
        return Derived(problem="it is broken")
    made = [
        Tool(
            namespace=namespace,
            name=name,
            description=value["text"],
            input_schema=EMPTY_OBJECT,
            backend=McpBackend("http://u.test", name),
        )
        for name in value["tools"]
    ]
    return Derived(tuple(made))


class Slow:
    """Documents and servers that take as long as the test says."""

    def __init__(self) -> None:
        self.gates: list[asyncio.Future[None]] = []

    async def expand(self, source: OpenApiSource) -> Derived:
        await self.wait()
        return derived(source.namespace, source.document.decode())

    async def wait(self) -> None:
        gate = asyncio.get_running_loop().create_future()
        self.gates.append(gate)
        await gate

    def release(self, at: int) -> bool:
        """One of those that wait goes on. False: none waits."""
        self.gates = [gate for gate in self.gates if not gate.done()]
        if not self.gates:
            return False
        self.gates[at % len(self.gates)].set_result(None)
        return True


class Followed:
    """Which servers ingest says are to be kept fresh."""

    def __init__(self, slow: Slow) -> None:
        self.servers: dict[str, McpServer] = {}
        self._slow = slow

    async def discover(self, server: McpServer) -> Derived:
        await self._slow.wait()
        return derived(server.namespace, server.description)

    def follow(self, catalog: Catalog, server: McpServer) -> None:
        assert catalog.scope == SCOPE
        self.servers[server.namespace] = server

    def refused(self, server: McpServer) -> None:
        """What was begun for it ends elsewhere."""

    def pending(self, catalog: Catalog, server: McpServer, update: Delivered | None) -> None:
        """Retries are not part of this model."""

    def dropped(self, server: McpServer) -> None:
        """Nor are connections."""

    def superseded(self, scope: str, namespace: str) -> None:
        """Nor is their end."""

    def forget(self, scope: str, namespace: str) -> None:
        assert scope == SCOPE
        self.servers.pop(namespace, None)


@dataclasses.dataclass(frozen=True)
class Accepted:
    """The newest response that left its mark on a resource: by arrival, with its version (None: gone)."""

    seq: int
    version: str | None


kinds = st.sampled_from([Kind.TOOL, Kind.TOOL, Kind.SOURCE, Kind.SERVER, Kind.SOURCE, Kind.TOOLKIT])
fates = st.sampled_from(["good", "good", "good", "good", "bad", "broken", "gone"])
local = st.lists(st.sampled_from(["x", "y", "z"]), unique=True, max_size=3)


class GatewayUnderChange(RuleBasedStateMachine):
    """Each rule is one thing that happens somewhere; none waits for another."""

    def __init__(self) -> None:
        super().__init__()
        logging.getLogger("arion_tds").setLevel(logging.CRITICAL)  # thousands of refusals are meant
        self.loop = asyncio.new_event_loop()
        self.tasks: list[asyncio.Task[None]] = []

    def teardown(self) -> None:
        try:
            for task in self.tasks:
                task.cancel()
            if self.tasks:
                self.loop.run_until_complete(asyncio.wait(self.tasks))
        finally:
            self.loop.close()
            logging.getLogger("arion_tds").setLevel(logging.NOTSET)

    @initialize(
        naming=st.sampled_from([Naming.QUALIFIED, Naming.QUALIFIED, Naming.BARE]),
        code_mode=st.booleans(),
        wildcard=st.booleans(),
        static=st.booleans(),
        settled=st.booleans(),
    )
    def begin(self, naming: Naming, code_mode: bool, wildcard: bool, static: bool, settled: bool) -> None:
        self.ends = Ends([SCOPE], wildcard=wildcard)
        tools = derived("n", json.dumps({"text": "static", "tools": ["x"], "broken": False})).tools if static else ()
        mode = CodeMode() if code_mode else None
        self.catalog = Catalog(Gateway(name="a", version="1", scope=SCOPE, code_mode=mode, tools=tools), naming)
        self.model = Model(Rules(naming=naming, code_mode=code_mode))
        self.catalog.commit = self.repeated(self.catalog.commit)  # type: ignore[method-assign]
        self.problems = Problems(lambda: 0.0)
        self.slow = Slow()
        self.followed = Followed(self.slow)
        self.ingest = Ingest(
            {SCOPE: self.catalog},
            DataRules(),
            self.slow.expand,
            self.followed,
            self.problems,
            History(lambda: 0.0),
            Metrics(),
        )
        assert self.loop.run_until_complete(self.ingest.load(self.catalog)) == []
        self.number = 0
        self.accepted: dict[tuple[Kind, str], Accepted] = {}
        for kind, which in ((Kind.TOOL, 0), (Kind.SOURCE, 1)):  # n.x and o: something to lose from the start
            self.publishes(kind, which, "good", ["x", "y"])
        if settled:
            self.settle_down(0)

    def repeated(self, commit: Callable[..., Any]) -> Callable[..., Any]:
        """The catalog's commit, and after each the same on the model."""

        async def both(changes: Sequence[Change], **more: Any) -> tuple[Verdict, ...]:
            verdicts: tuple[Verdict, ...] = await commit(changes, **more)
            if not verdicts:
                return verdicts
            expected = [""] * len(changes)
            for removing in (True, False):
                for at, change in enumerate(changes):
                    if isinstance(change, Remove) is removing:
                        expected[at] = self.model.apply(change)
            found = ["rejected" if one.problem else "warned" if one.warnings else "ok" for one in verdicts]
            assert found == expected
            return verdicts

        return both

    # The control plane

    @rule(kind=kinds, which=st.integers(0, 2), fate=fates, tools=local)
    def publishes(self, kind: Kind, which: int, fate: str, tools: list[str]) -> None:
        name = RESOURCES[kind][which % len(RESOURCES[kind])]
        key = (kind, f"{SCOPE}/{name}")
        if fate == "gone":
            self.ends.publish({}, [key])
            return
        self.number += 1
        held = documents.encode(ENVELOPES.get(kind, "McpToolkit"), spec(kind, name, word(self.number), tools, fate))
        assert isinstance(held, Held), held
        self.ends.publish({key: Held(f"v{self.number}", held.payload)})

    @rule(
        kind=st.sampled_from([Kind.SOURCE, Kind.SERVER]),
        which=st.integers(0, 1),
        several=st.lists(fates, min_size=2, max_size=4),
    )
    def publishes_faster_than_it_is_handled(self, kind: Kind, which: int, several: list[str]) -> None:
        """One resource again and again; each version arrives while the one before is still being handled."""
        for fate in several:
            self.publishes(kind, which, fate, ["x"])
            self.messages_arrive(3)

    # The gateway

    def hear(self) -> bool:
        ticket = self.ends.client_hears()
        if ticket is None:
            return False
        if ticket.delivery is not None:
            self.tasks.append(self.loop.create_task(self.handle(ticket)))
        return True

    async def handle(self, ticket: Ticket) -> None:
        delivery = ticket.delivery
        assert delivery is not None
        verdict = await self.ingest.deliver(delivery)
        rejected = {problem.where for problem in verdict.rejected}
        outcomes = [(str(one.id), one.version) for one in delivery.updates if str(one.id) not in rejected]
        for name, version in [*outcomes, *((str(gone), None) for gone in delivery.removals)]:
            before = self.accepted.get((delivery.kind, name))
            if before is None or before.seq < ticket.seq:
                self.accepted[delivery.kind, name] = Accepted(ticket.seq, version)
        self.ends.client.settle(ticket, verdict)

    def turn(self, turns: int = 1) -> bool:
        """The event loop goes round. False: there was nothing to do."""
        busy = bool(self.tasks)

        async def round_and_round() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self.loop.run_until_complete(round_and_round())
        for task in self.tasks:
            if task.done():
                task.result()
        self.tasks = [task for task in self.tasks if not task.done()]
        return busy

    @rule(moves=st.lists(st.sampled_from(["client_says", "server_hears", "server_says", "client_hears", "turn"])))
    def things_move(self, moves: list[str]) -> None:
        """A few messages get further, and the gateway's loop goes round."""
        for move in moves:
            if move == "client_hears":
                self.hear()
            elif move == "turn":
                self.turn()
            else:
                getattr(self.ends, move)()

    @rule(turns=st.integers(0, 8))
    def messages_arrive(self, turns: int) -> None:
        """All of them; documents and servers take longer."""
        until_quiet(self.ends.client_says, self.ends.server_hears, self.ends.server_says, self.hear)
        self.turn(turns)

    @precondition(lambda self: self.slow.gates)
    @rule(at=st.integers(0, 5), turns=st.integers(0, 8))
    def a_document_or_server_is_done(self, at: int, turns: int) -> None:
        self.slow.release(at)
        self.turn(turns)

    # Between the two

    @rule()
    def cut(self) -> None:
        self.ends.cut()

    @rule()
    def all_is_quiet(self) -> None:
        self.settle_down(0)
        self.check()

    @rule()
    def all_is_quiet_but_what_came_last_is_done_first(self) -> None:
        self.settle_down(-1)
        self.check()

    @rule()
    def a_new_stream_repairs_what_crossed(self) -> None:
        self.settle_down(0)
        self.ends.cut()
        self.settle_down(0)
        self.check()
        for kind in CATALOG:
            claims = self.ends.client.types[kind].held.claims()
            refused = self.refused(kind)
            for name, held in self.ends.published(kind, [SCOPE]).items():
                if name not in refused:
                    assert claims[name] == held.version

    def settle_down(self, at: int) -> None:
        ends = self.ends
        until_quiet(
            ends.client_says,
            ends.server_hears,
            ends.server_says,
            self.hear,
            lambda: self.turn(20),
            lambda: self.slow.release(at),
        )
        assert ends.owes() == 0

    # What must hold then

    def check(self) -> None:
        self.check_catalog()
        self.check_search()
        for kind in CATALOG:
            self.check_resources(kind)
        owned = {name: held for name, held in self.catalog.snapshot.namespaces.items() if held.owner is Owner.SERVER}
        assert {name: held.definition for name, held in owned.items()} == self.followed.servers

    def check_catalog(self) -> None:
        """View, order and definitions are those of the model."""
        view, naming = self.catalog.published.view, self.catalog.naming
        expected = {names.published(naming, one.namespace, one.name): one for one in self.model.tools.values()}
        assert {name: entry.tool for name, entry in view.tools.items()} == expected
        assert {name: entry.tool for name, entry in view.qualified.items()} == self.model.tools
        assert list(view.order) == sorted(expected)
        assert dict(view.toolkits) == self.model.toolkits
        assert {name: held.owner for name, held in self.catalog.snapshot.namespaces.items()} == self.model.owners
        made = [views.entry(expected[name], naming) for name in sorted(expected)]
        held = [view.tools[name] for name in view.order]
        assert [(one.legacy, one.modern) for one in held] == [(one.legacy, one.modern) for one in made]

    def check_search(self) -> None:
        """An empty query finds everything, a version's own word those tools alone that say it."""
        assert self.found("") == set(self.model.tools)
        for text in {one.description for one in self.model.tools.values()}:
            assert self.found(text) == {name for name, one in self.model.tools.items() if one.description == text}

    def found(self, query: str) -> set[str]:
        ask = SearchAsk(query=query, namespaces=None, limit=100, offset=0)
        finder = Finder(self.catalog)
        result = self.loop.run_until_complete(finder.search(self.catalog.published.view, ask, lambda _: True))
        assert result.total == len(result.hits)
        return {entry.tool.qualified for entry, _ in result.hits}

    def check_resources(self, kind: Kind) -> None:
        """Each published resource serves in its version, or stands refused in that version and its last good serves."""
        published = self.ends.published(kind, [SCOPE])
        refused = self.refused(kind)
        for name in refused.keys() - published.keys():
            # Of a resource that we never claimed no server says on a new stream that it is gone: its refusal stands on.
            assert self.ends.stream > 1
            assert self.used(kind, name.removeprefix(f"{SCOPE}/")) is None
        claims = self.ends.client.types[kind].held.claims()
        assert claims.keys() <= published.keys()
        for resource in RESOURCES[kind]:
            name = f"{SCOPE}/{resource}"
            last = self.accepted.get((kind, name))
            used = self.used(kind, resource)
            if last is not None:
                assert used == (None if last.version is None else word(int(last.version[1:])))
            if name in published and name not in refused:
                assert last is not None
                assert last.version == published[name].version
            elif name in published:
                assert refused[name].version == published[name].version
            if used is not None and last is not None:
                assert claims[name] in {last.version, UNSETTLED}

    def refused(self, kind: Kind) -> dict[str, Standing]:
        return {one.name: one for one in self.problems.standing() if one.kind == kind.short}

    def used(self, kind: Kind, name: str) -> str | None:
        """The text of the resource that is in use; of a static one or in the wrong mode: as if it were the last."""
        snapshot = self.catalog.snapshot
        match kind:
            case Kind.TOOL:
                held = snapshot.namespaces.get(name.partition(".")[0])
                found = None if held is None or held.owner is not Owner.TOOLS else snapshot.find(name)
                return None if found is None else found.description
            case Kind.TOOLKIT:
                if self.catalog.gateway.code_mode is None:
                    last = self.accepted.get((kind, f"{SCOPE}/{name}"))
                    return None if last is None or last.version is None else word(int(last.version[1:]))
                kit = snapshot.toolkits.get(name)
                return None if kit is None else kit.instructions
            case _:
                owner = snapshot.namespaces.get(name)
                if owner is None or owner.owner is not (Owner.SOURCE if kind is Kind.SOURCE else Owner.SERVER):
                    return None
                definition = owner.definition
                assert definition is not None
                if isinstance(definition, OpenApiSource):
                    return definition.cluster
                text: str = json.loads(definition.description)["text"]
                return text


TestGatewayUnderChange = GatewayUnderChange.TestCase
TestGatewayUnderChange.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
