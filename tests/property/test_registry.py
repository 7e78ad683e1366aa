"""The registry against the contract's update/remove table, written down once more in the plainest way.

The model holds two dicts and is copied whole for every change; whatever random batches do, both agree on what is
served, on who owns what, on every verdict, and the diff leads from each state to the next.
"""

from __future__ import annotations

import dataclasses

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from arion_tds.model import names
from arion_tds.model.backend import McpBackend
from arion_tds.model.change import (
    Change,
    PutServer,
    PutSource,
    PutTool,
    PutToolkit,
    Remove,
    RemoveServer,
    RemoveSource,
    RemoveTool,
    RemoveToolkit,
)
from arion_tds.model.names import Naming
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit
from arion_tds.registry import snapshot as snapshots
from arion_tds.registry.reduce import Rules, reduce
from arion_tds.registry.snapshot import Owner
from arion_tds.schema import EMPTY_OBJECT

NAMESPACES = ["a", "a.b"]  # a.b.x is b.x of a, or x of a.b
LOCAL = ["x", "b.x", "b_x"]


def make(namespace: str, name: str, text: str) -> Tool:
    return Tool(
        namespace=namespace,
        name=name,
        description=text,
        input_schema=EMPTY_OBJECT,
        backend=McpBackend("http://u.test", name),
    )


@dataclasses.dataclass
class Model:
    """`tools`: qualified name to tool; `owners`: namespace to owner, kept for sources and servers without tools too."""

    rules: Rules
    tools: dict[str, Tool] = dataclasses.field(default_factory=dict)
    owners: dict[str, Owner] = dataclasses.field(default_factory=dict)
    toolkits: dict[str, Toolkit] = dataclasses.field(default_factory=dict)

    def apply(self, change: Change) -> str:
        """`ok`, `warned` or `rejected`; a rejected change is undone."""
        before = dict(self.tools), dict(self.owners), dict(self.toolkits)
        result = self._change(change)
        if result == "ok" and not self._consistent():
            result = "rejected"
        if result == "rejected":
            self.tools, self.owners, self.toolkits = before
        return result

    def _consistent(self) -> bool:
        """No two tools are published under one name."""
        published = {names.published(self.rules.naming, tool.namespace, tool.name) for tool in self.tools.values()}
        return len(published) == len(self.tools)

    def _change(self, change: Change) -> str:
        match change:
            case PutTool(tool):
                return self._put_tool(tool)
            case RemoveTool(name):
                return self._remove_tool(name)
            case PutSource(source, tools):
                return self._put_all(source.namespace, Owner.SOURCE, tools)
            case PutServer(server, tools):
                return self._put_all(server.namespace, Owner.SERVER, tools)
            case RemoveSource(name):
                return self._remove_all(name, Owner.SOURCE)
            case RemoveServer(name):
                return self._remove_all(name, Owner.SERVER)
            case PutToolkit(toolkit):
                if self.rules.code_mode:
                    self.toolkits[toolkit.name] = toolkit
                return "ok"
            case RemoveToolkit(name):
                if not self.rules.code_mode:
                    return "ok"
                return "ok" if self.toolkits.pop(name, None) else "warned"

    def _put_tool(self, tool: Tool) -> str:
        if self.owners.get(tool.namespace, Owner.TOOLS) is not Owner.TOOLS:
            return "rejected"
        former = self.tools.get(tool.qualified)
        if former is not None and self.owners[former.namespace] is not Owner.TOOLS:
            return "rejected"
        self.tools[tool.qualified] = tool
        self._settle()
        self.owners[tool.namespace] = Owner.TOOLS
        return "ok"

    def _remove_tool(self, name: str) -> str:
        tool = self.tools.get(name)
        if tool is None or self.owners[tool.namespace] is not Owner.TOOLS:
            return "warned"
        del self.tools[name]
        self._settle()
        return "ok"

    def _put_all(self, namespace: str, owner: Owner, tools: tuple[Tool, ...]) -> str:
        if self.owners.get(namespace, owner) is not owner:
            return "rejected"
        self._clear(namespace)
        for tool in tools:
            if tool.qualified in self.tools:
                return "rejected"
            self.tools[tool.qualified] = tool
        self.owners[namespace] = owner
        return "ok"

    def _remove_all(self, namespace: str, owner: Owner) -> str:
        if self.owners.get(namespace) is not owner:
            return "warned"
        self._clear(namespace)
        del self.owners[namespace]
        return "ok"

    def _clear(self, namespace: str) -> None:
        self.tools = {name: tool for name, tool in self.tools.items() if tool.namespace != namespace}

    def _settle(self) -> None:
        """The last tool of a namespace frees it."""
        alive = {tool.namespace for tool in self.tools.values()}
        self.owners = {name: owner for name, owner in self.owners.items() if owner is not Owner.TOOLS or name in alive}


NAMESPACE = st.sampled_from(NAMESPACES)
TEXT = st.sampled_from(["1", "2"])
TOOL = st.builds(make, NAMESPACE, st.sampled_from(LOCAL), TEXT)


@st.composite
def owned(draw: st.DrawFn) -> PutSource | PutServer:
    namespace = draw(NAMESPACE)
    local = draw(st.lists(st.sampled_from(LOCAL), unique=True, max_size=3))
    tools = tuple(make(namespace, name, draw(TEXT)) for name in local)
    if draw(st.booleans()):
        return PutSource(OpenApiSource(namespace=namespace, document=b"{}", cluster="c"), tools)
    return PutServer(McpServer(namespace=namespace, description="", url="http://u.test"), tools)


def kit(name: str, text: str) -> Toolkit:
    return Toolkit(name=name, description=text, instructions="", tools=("a.x", "c.x"))


QUALIFIED = st.builds(names.qualified, NAMESPACE, st.sampled_from(LOCAL))
CHANGE = st.one_of(
    st.builds(PutTool, TOOL),
    st.builds(PutTool, TOOL),  # twice as often: only tools move between splits of one name
    owned(),
    st.builds(RemoveTool, QUALIFIED),
    st.builds(RemoveSource, NAMESPACE),
    st.builds(RemoveServer, NAMESPACE),
    st.builds(PutToolkit, st.builds(kit, st.sampled_from("kl"), TEXT)),
    st.builds(RemoveToolkit, st.sampled_from("kl")),
)


class Registry(RuleBasedStateMachine):
    """Random batches to the registry and to the model."""

    @initialize(naming=st.sampled_from(Naming), code_mode=st.booleans())
    def begin(self, naming: Naming, *, code_mode: bool) -> None:
        self.rules = Rules(naming=naming, code_mode=code_mode)
        self.model = Model(self.rules)
        self.snapshot = snapshots.EMPTY
        self.served: dict[str, Tool] = {}

    @rule(changes=st.lists(CHANGE, max_size=6))
    def batch(self, changes: list[Change]) -> None:
        expected = [""] * len(changes)
        for removing in (True, False):
            for at, change in enumerate(changes):
                if isinstance(change, Remove) is removing:
                    expected[at] = self.model.apply(change)

        before = {name: dict(held.tools) for name, held in self.snapshot.namespaces.items()}
        outcome = reduce(self.snapshot, changes, self.rules)

        assert {name: dict(held.tools) for name, held in self.snapshot.namespaces.items()} == before
        found = [
            "rejected" if verdict.problem else "warned" if verdict.warnings else "ok" for verdict in outcome.verdicts
        ]
        assert found == expected
        self.follow(outcome.diff.added, outcome.diff.removed, outcome.diff.replaced)
        assert outcome.diff.toolkits_changed == (self.snapshot.toolkits != outcome.snapshot.toolkits)
        self.snapshot = outcome.snapshot

    def follow(
        self, added: tuple[Tool, ...], removed: tuple[Tool, ...], replaced: tuple[tuple[Tool, Tool], ...]
    ) -> None:
        """Apply the diff to what was served; every entry must be a real change."""
        for tool in removed:
            assert self.served.pop(tool.qualified) == tool
        for old, new in replaced:
            assert old != new
            assert self.served[old.qualified] == old
            assert old.qualified == new.qualified
            self.served[new.qualified] = new
        for tool in added:
            assert tool.qualified not in self.served
            self.served[tool.qualified] = tool

    @invariant()
    def both_hold_the_same(self) -> None:
        held = self.snapshot.namespaces
        tools = {tool.qualified: tool for space in held.values() for tool in space.tools.values()}
        assert tools == self.model.tools == self.served
        assert sum(len(space.tools) for space in held.values()) == len(tools) == self.snapshot.count
        assert {name: space.owner for name, space in held.items()} == self.model.owners
        assert dict(self.snapshot.toolkits) == self.model.toolkits

    @invariant()
    def every_tool_is_found_by_both_its_names(self) -> None:
        for tool in self.model.tools.values():
            assert self.snapshot.find(tool.qualified) is self.snapshot.namespaces[tool.namespace].tools[tool.name]
            assert self.snapshot.published.get(
                names.published(self.rules.naming, tool.namespace, tool.name)
            ) == tool  # fmt: skip


TestRegistry = Registry.TestCase
TestRegistry.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
