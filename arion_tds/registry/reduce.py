"""The update/remove table of the contract: a snapshot and changes to the next snapshot, verdicts and a diff.

In: changes whose tools are known (decoded, expanded, discovered). Out: `Outcome`. Called by catalog only, one batch
after the other. A change applies as a whole or not at all; a refused one leaves no trace; the others of its batch
apply. Nothing of the given snapshot is altered: what a batch touches it copies first, namespace by namespace.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

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
    Verdict,
)
from arion_tds.model.names import Naming
from arion_tds.model.problem import Problem
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit
from arion_tds.registry import ownership
from arion_tds.registry.diff import Diff, diff
from arion_tds.registry.index import Draft, Index
from arion_tds.registry.snapshot import Namespace, Owner, Snapshot, find

ACCEPTED: Final = Verdict()
_NO_TOOLS: Final[Index[Tool]] = Index()


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """What differs between gateways: how names are published, which are taken, whether toolkits count (code mode)."""

    naming: Naming = Naming.QUALIFIED
    code_mode: bool = False
    reserved: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """`verdicts` stand in the order of the changes. `diff` leads from the old snapshot to this one."""

    snapshot: Snapshot
    verdicts: tuple[Verdict, ...]
    diff: Diff


def reduce(snapshot: Snapshot, changes: Sequence[Change], rules: Rules) -> Outcome:
    """Apply the changes: every removal first, then the updates, each group in the order given.

    A problem's `where` is the resource name: a qualified name, a namespace, or a toolkit's name.
    """
    work = _Work(snapshot, rules)
    verdicts = [ACCEPTED] * len(changes)
    updates: list[int] = []
    for at, change in enumerate(changes):
        if isinstance(change, Remove):
            verdicts[at] = work.remove(change)
        else:
            updates.append(at)
    for at in updates:
        verdicts[at] = work.put(changes[at])
    return work.finish(tuple(verdicts))


class _Work:
    """One batch in progress. `_own`: namespaces whose tools are copied. `_before`, `_after`: what was touched."""

    __slots__ = ("_after", "_before", "_index", "_namespaces", "_own", "_rules", "_snapshot", "_toolkits")

    def __init__(self, snapshot: Snapshot, rules: Rules) -> None:
        self._snapshot = snapshot
        self._rules = rules
        self._namespaces = Draft(snapshot.namespaces)
        self._index = Draft(snapshot.published)
        self._own: dict[str, Draft[Tool]] = {}
        self._before: dict[str, Tool | None] = {}
        self._after: dict[str, Tool | None] = {}
        self._toolkits: dict[str, Toolkit] | None = None

    def put(self, change: Change) -> Verdict:
        match change:
            case PutTool(tool):
                return self._put_tool(tool)
            case PutSource(source, tools):
                return self._put_owner(Owner.SOURCE, source, tools)
            case PutServer(server, tools):
                return self._put_owner(Owner.SERVER, server, tools)
            case PutToolkit(toolkit):
                if self._rules.code_mode:
                    self._own_toolkits()[toolkit.name] = toolkit
                return ACCEPTED
            case _:
                return self.remove(change)

    def remove(self, change: Remove) -> Verdict:
        match change:
            case RemoveTool(name):
                return self._remove_tool(name)
            case RemoveSource(name):
                return self._remove_owner(name, Owner.SOURCE, "OpenAPI source")
            case RemoveServer(name):
                return self._remove_owner(name, Owner.SERVER, "MCP server")
            case _:
                if not self._rules.code_mode:
                    return ACCEPTED
                if self._own_toolkits().pop(change.name, None) is None:
                    return _warning(f"toolkit {change.name!r} is not here: nothing to remove")
                return ACCEPTED

    def finish(self, verdicts: tuple[Verdict, ...]) -> Outcome:
        old = self._snapshot
        after = self._after
        pairs = ((before, after[qualified]) for qualified, before in self._before.items())
        toolkits = old.toolkits if self._toolkits is None or self._toolkits == old.toolkits else self._toolkits
        changed = diff(pairs, toolkits_changed=toolkits is not old.toolkits)
        for name, tools in self._own.items():
            self._namespaces.put(name, Namespace(Owner.TOOLS, tools.finish()))
        return Outcome(Snapshot(self._namespaces.finish(), toolkits, self._index.finish()), verdicts, changed)

    def _put_tool(self, tool: Tool) -> Verdict:
        qualified = tool.qualified
        refused = ownership.refusal(tool.namespace, self._namespaces.get(tool.namespace), Owner.TOOLS)
        if refused is not None:
            return _refused(qualified, refused)
        old = find(self._namespaces, qualified)
        if old == tool:
            return ACCEPTED
        moves = old is not None and old.namespace != tool.namespace  # the same name, split elsewhere
        if old is not None and moves:
            holder = self._namespaces[old.namespace]
            if holder.owner is not Owner.TOOLS:
                return _refused(qualified, _taken(old, holder))
        published = tool.published(self._rules.naming)
        other = self._index.get(published)
        if other is not None and other.qualified != qualified:
            return _refused(qualified, _same(qualified, other, published))
        if published in self._rules.reserved:
            return _refused(qualified, _own_name(qualified, published))
        if old is not None and moves:
            self._drop(old)
        self._note(qualified, old, tool)
        self._tools(tool.namespace).put(tool.name, tool)
        self._index.put(published, tool)
        return ACCEPTED

    def _put_owner(self, owner: Owner, definition: OpenApiSource | McpServer, tools: Sequence[Tool]) -> Verdict:
        namespace = definition.namespace
        held = self._namespaces.get(namespace)
        refused = ownership.refusal(namespace, held, owner) or self._clash(namespace, tools)
        if refused is not None:
            return _refused(namespace, refused)
        new = {tool.name: tool for tool in tools}
        old = held.tools if held is not None else {}
        for name, tool in old.items():
            if name not in new:
                self._forget(tool)
        for name, tool in new.items():
            before = old.get(name)
            if before is not None and before == tool:
                new[name] = before
                continue
            self._note(tool.qualified, before, tool)
            self._index.put(tool.published(self._rules.naming), tool)
        self._namespaces.put(namespace, Namespace(owner, new, definition))
        return ACCEPTED

    def _clash(self, namespace: str, tools: Sequence[Tool]) -> str | None:
        """Why these cannot be the namespace's tools: two would share a name, or another namespace has it already."""
        mine: dict[str, str] = {}
        for tool in tools:
            qualified = tool.qualified
            published = tool.published(self._rules.naming)
            if published in self._rules.reserved:
                return _own_name(qualified, published)
            twin = mine.setdefault(published, qualified)
            if twin is not qualified:
                return f"{twin!r} and {qualified!r} would both be published as {published!r}: rename one of them"
            other = self._index.get(published)
            if other is None or other.namespace == namespace:
                other = find(self._namespaces, qualified)
            if other is None or other.namespace == namespace:
                continue
            if other.qualified == qualified:
                return _taken(other, self._namespaces[other.namespace])
            return _same(qualified, other, published)
        return None

    def _remove_tool(self, name: str) -> Verdict:
        tool = find(self._namespaces, name)
        if tool is None:
            return _warning(f"tool {name!r} is not here: nothing to remove")
        holder = self._namespaces[tool.namespace]
        if holder.owner is not Owner.TOOLS:
            whose = ownership.title(tool.namespace, holder)
            return _warning(f"tool {name!r} comes from {whose} and is only removed with it: nothing changes")
        self._drop(tool)
        return ACCEPTED

    def _remove_owner(self, namespace: str, owner: Owner, kind: str) -> Verdict:
        held = self._namespaces.get(namespace)
        if held is None:
            return _warning(f"{kind} {namespace!r} is not here: nothing to remove")
        refused = ownership.refusal(namespace, held, owner)
        if refused is not None:
            return _warning(f"{kind} {namespace!r} is not here: {refused}, nothing to remove")
        for tool in held.tools.values():
            self._forget(tool)
        self._namespaces.drop(namespace)
        return ACCEPTED

    def _drop(self, tool: Tool) -> None:
        """Delete a tool of a namespace that tools own, and the namespace with its last tool."""
        self._forget(tool)
        tools = self._tools(tool.namespace)
        tools.drop(tool.name)
        if not tools:
            self._namespaces.drop(tool.namespace)
            del self._own[tool.namespace]

    def _forget(self, tool: Tool) -> None:
        self._note(tool.qualified, tool, None)
        self._index.drop(tool.published(self._rules.naming))

    def _note(self, qualified: str, before: Tool | None, after: Tool | None) -> None:
        if qualified not in self._after:
            self._before[qualified] = before
        elif self._before[qualified] == after:  # touched again, and now what it was
            after = self._before[qualified]
        self._after[qualified] = after

    def _tools(self, namespace: str) -> Draft[Tool]:
        """The tools of a namespace that tools own, as this batch's own; a new namespace when there is none."""
        own = self._own.get(namespace)
        if own is None:
            held = self._namespaces.get(namespace)
            tools = _NO_TOOLS if held is None else held.tools
            assert isinstance(tools, Index)  # noqa: S101 - what tools own, this class has made
            own = self._own[namespace] = Draft(tools)
            self._namespaces.put(namespace, Namespace(Owner.TOOLS, own))
        return own

    def _own_toolkits(self) -> dict[str, Toolkit]:
        if self._toolkits is None:
            self._toolkits = dict(self._snapshot.toolkits)
        return self._toolkits


def _refused(where: str, why: str) -> Verdict:
    return Verdict(Problem(where, why))


def _warning(text: str) -> Verdict:
    return Verdict(None, (text,))


def _taken(other: Tool, holder: Namespace) -> str:
    where = other.namespace
    return f"name {other.qualified!r} is taken: namespace {where!r} is owned by {ownership.title(where, holder)}"


def _own_name(qualified: str, published: str) -> str:
    return f"{qualified!r} would be published as {published!r}, which is a tool of the gateway itself: rename it"


def _same(qualified: str, other: Tool, published: str) -> str:
    return f"{qualified!r} and {other.qualified!r} would both be published as {published!r}: rename one of them"
