"""What a listener serves at one moment: every tool with its ready bytes, in published order. Immutable once published.

In: the registry's diff and the listener's naming. Out: a `View` that a request takes once and passes down, and
`Published`, the place where the current one stands and where listeners hear that it changed.
Called by ingest (the only writer), server, calls, admin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from arion_tds import listing
from arion_tds.listing import ListChange, Lists
from arion_tds.model.caller import Caller
from arion_tds.model.names import Naming
from arion_tds.model.rbac import Rbac
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit
from arion_tds.registry.index import Draft, Index
from arion_tds.schema import Schema

_encode = msgspec.json.Encoder().encode
_OBJECT: Final = b'"type":"object"'


class Entry:
    """One published tool: its definition as JSON for each protocol era (the same object where they do not differ)."""

    __slots__ = ("legacy", "modern", "published", "tokens", "tool")

    def __init__(self, tool: Tool, published: str) -> None:
        """`published` is the name clients see. Both definitions are complete JSON objects.

        `tokens`: what the tool costs a context, once `counting` has counted it; -1 until then.
        """
        self.tool = tool
        self.published = published
        self.tokens = -1
        begin = b'{"name":' + _encode(published) + b',"description":' + _encode(tool.description) + b',"inputSchema":'
        inputs, outputs = tool.input_schema, tool.output_schema
        head = begin + inputs.text
        if outputs is None:
            self.modern = self.legacy = head + tool.extra + b"}"
        else:
            middle = head + b',"outputSchema":'
            self.modern = middle + outputs.text + tool.extra + b"}"
            # Before 2026-07-28 an outputSchema that is not an object makes clients refuse the whole list.
            self.legacy = self.modern if _is_object(outputs) else head + tool.extra + b"}"
            outputs.read_from(self.modern, len(middle))
        inputs.read_from(self.modern, len(begin))

    def same(self, other: Entry) -> bool:
        """Whether clients of either era see the same definition."""
        return self.modern == other.modern and self.legacy == other.legacy


def _is_object(schema: Schema) -> bool:
    if schema.text.startswith(b"{" + _OBJECT):
        return True
    value = schema.value()
    return isinstance(value, dict) and value.get("type") == "object"


class View:
    """Immutable. `tools` by published name, `qualified` by qualified name, `order` the listed published names, sorted.

    `revision` counts publications of the scope; `list_revision` only those after which `tools/list` answers something
    else than before (what list_changed is sent for). `restricted` counts the tools with RBAC: at 0 every caller sees
    the same. `list_change` says whom the last change of the list concerns. `touched` are the published names that this
    View has otherwise than the one before: added, replaced or removed. Nothing in here is altered after publication.
    """

    __slots__ = (
        "__weakref__",
        "_lists",
        "list_change",
        "list_revision",
        "order",
        "qualified",
        "restricted",
        "revision",
        "toolkits",
        "tools",
        "touched",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - private to this module: `empty` and `replace`
        self,
        tools: Index[Entry],
        qualified: Index[Entry],
        lists: Lists,
        toolkits: Mapping[str, Toolkit],
        revision: int,
        list_revision: int,
        restricted: int,
        touched: Collection[str] = (),
        list_change: ListChange = listing.NO_CHANGE,
    ) -> None:
        """Made by `empty` and `replace` alone."""
        self.tools = tools
        self.qualified = qualified
        self._lists = lists
        self.order = lists.order
        self.toolkits = toolkits
        self.revision = revision
        self.list_revision = list_revision
        self.restricted = restricted
        self.touched = touched
        self.list_change = list_change

    def find(self, name: str) -> Entry | None:
        """The tool of that name in either spelling: published or qualified."""
        found = self.tools.get(name)
        return found if found is not None else self.qualified.get(name)

    def listed(self, caller: Caller) -> Sequence[str] | None:
        """The listed names that this caller may see, sorted; the same sequence for all with the same permissions.

        None when there are too many policies to keep lists by (`listing.MAX_GUARDS`): filter `order` then.
        """
        if not self.restricted:
            return self.order
        lists = self._lists
        return None if lists.guards is None else lists.of(caller.denied(lists.guards))

    def replace(
        self,
        gone: Iterable[Tool],
        come: Iterable[Entry],
        toolkits: Mapping[str, Toolkit],
        *,
        eager_only: bool,
        counted: bool = False,
    ) -> View:
        """A new View: without `gone`, with `come`. `eager_only` lists eager tools alone (progressive disclosure).

        `counted`: clients are not shown tools but how many each namespace has, and the toolkits (code mode); what
        changes their list is then that.
        """
        tools = Draft(self.tools)
        # Where the published name is the qualified one, one index serves both.
        qualified = tools if self.qualified is self.tools else Draft(self.qualified)
        unlisted: dict[str, Entry] = {}
        restricted = self.restricted
        touched: set[str] = set()
        for tool in gone:
            entry = qualified.drop(tool.qualified)
            restricted -= entry.tool.rbac is not None
            if tools is not qualified:
                tools.drop(entry.published)
            touched.add(entry.published)
            if entry.tool.eager or not eager_only:
                unlisted[entry.published] = entry
        listed: dict[str, Entry] = {}
        for entry in come:
            tools.put(entry.published, entry)
            touched.add(entry.published)
            if tools is not qualified:
                qualified.put(entry.tool.qualified, entry)
            restricted += entry.tool.rbac is not None
            if entry.tool.eager or not eager_only:
                listed[entry.published] = entry
        held = tools.finish()
        named = held if qualified is tools else qualified.finish()
        change = _change(unlisted, listed)
        order = listing.reorder(self.order, unlisted.keys(), listed.keys()) if change else self.order
        lists = self._lists
        if change or restricted or self.restricted:
            left, joined = _moves(self.tools, held, touched)
            rbacs = {name: entry.tool.rbac for name, entry in listed.items()}
            lists = lists.replace(order, left, joined, unlisted.keys(), rbacs)
        if counted:
            change = _counts(unlisted, listed, toolkits=toolkits is not self.toolkits and toolkits != self.toolkits)
        list_revision = self.list_revision + bool(change)
        return View(held, named, lists, toolkits, self.revision + 1, list_revision, restricted, touched, change)


def _change(unlisted: Mapping[str, Entry], listed: Mapping[str, Entry]) -> ListChange:
    """What differs between the two, by policy."""
    shown: set[Rbac | None] = set()
    moved: set[tuple[Rbac | None, Rbac | None]] = set()
    for name, old in unlisted.items():
        new = listed.get(name)
        if new is None:
            shown.add(old.tool.rbac)
        elif not old.same(new):
            shown |= {old.tool.rbac, new.tool.rbac}
        elif old.tool.rbac != new.tool.rbac:
            moved.add((old.tool.rbac, new.tool.rbac))
    shown.update(entry.tool.rbac for name, entry in listed.items() if name not in unlisted)
    return ListChange(frozenset(shown), frozenset(moved)) if shown or moved else listing.NO_CHANGE


def _counts(unlisted: Mapping[str, Entry], listed: Mapping[str, Entry], *, toolkits: bool) -> ListChange:
    """Whose numbers of tools by namespace differ, by policy; toolkits are everybody's."""
    left = Counter((entry.tool.namespace, entry.tool.rbac) for entry in unlisted.values())
    joined = Counter((entry.tool.namespace, entry.tool.rbac) for entry in listed.values())
    shown = {rbac for (_, rbac), count in ((joined - left) + (left - joined)).items() if count}
    return ListChange(frozenset(shown | {None} if toolkits else shown))


def _moves(
    old: Mapping[str, Entry], new: Mapping[str, Entry], touched: Iterable[str]
) -> tuple[list[tuple[Rbac, str]], list[tuple[Rbac, str]]]:
    """Which names left a policy, and which joined one."""
    left: list[tuple[Rbac, str]] = []
    joined: list[tuple[Rbac, str]] = []
    for name in touched:
        before, after = old.get(name), new.get(name)
        was = None if before is None else before.tool.rbac
        becomes = None if after is None else after.tool.rbac
        if was != becomes:
            if was is not None:
                left.append((was, name))
            if becomes is not None:
                joined.append((becomes, name))
    return left, joined


def empty(naming: Naming) -> View:
    """The View of a scope that holds nothing yet."""
    tools: Index[Entry] = Index()
    return View(tools, tools if naming is Naming.QUALIFIED else Index(), listing.EMPTY, {}, 0, 0, 0)


def entry(tool: Tool, naming: Naming) -> Entry:
    """The tool as a listener of that naming publishes it (the costly part of publication: JSON is made here)."""
    return Entry(tool, tool.published(naming))


class Published:
    """The current View of one scope. Owned by the ingest task; read and listened to by everybody in the same loop."""

    def __init__(self, scope: str, naming: Naming) -> None:
        """`scope` is `<server>/<config>`, or the server name for a gateway without TDS."""
        self.scope = scope
        self.view: View = empty(naming)
        self._listeners: dict[object, Callable[[View, View], None]] = {}

    def publish(self, view: View) -> None:
        """Make `view` current and tell every listener (old view, new view)."""
        old, self.view = self.view, view
        for told in list(self._listeners.values()):
            told(old, view)

    def listen(self, told: Callable[[View, View], None]) -> Callable[[], None]:
        """Call `told(old, new)` on every publication, synchronously, until the returned function is called."""
        token = object()
        self._listeners[token] = told
        return lambda: self._listeners.pop(token, None) and None
