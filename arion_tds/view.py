"""What a listener serves at one moment: every tool with its ready bytes, in published order. Immutable once published.

In: the registry's diff and the listener's naming. Out: a `View` that a request takes once and passes down, and
`Published`, the place where the current one stands and where listeners hear that it changed.
Called by ingest (the only writer), server, calls, admin.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from arion_tds.model import names
from arion_tds.model.names import Naming
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit

_encode = msgspec.json.Encoder().encode
_OBJECT: Final = b'"type":"object"'


class Entry:
    """One published tool: its definition as JSON for each protocol era (the same object where they do not differ)."""

    __slots__ = ("legacy", "modern", "published", "tool")

    def __init__(self, tool: Tool, published: str) -> None:
        """`published` is the name clients see. Both definitions are complete JSON objects."""
        self.tool = tool
        self.published = published
        head = (
            b'{"name":'
            + _encode(published)
            + b',"description":'
            + _encode(tool.description)
            + b',"inputSchema":'
            + tool.input_schema.text
        )
        if tool.output_schema is None:
            self.modern = self.legacy = head + tool.extra + b"}"
            return
        self.modern = head + b',"outputSchema":' + tool.output_schema.text + tool.extra + b"}"
        # Before 2026-07-28 an outputSchema that is not an object makes clients refuse the whole list.
        self.legacy = self.modern if _is_object(tool) else head + tool.extra + b"}"


def _is_object(tool: Tool) -> bool:
    schema = tool.output_schema
    if schema is None:
        return False
    if schema.text.startswith(b"{" + _OBJECT):
        return True
    value = schema.value()
    return isinstance(value, dict) and value.get("type") == "object"


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """Part of a list: definitions joined by commas, and the published name after which the next page starts."""

    body: bytes
    after: str | None


class View:
    """Immutable. `tools` by published name, `qualified` by qualified name, `order` the listed published names, sorted.

    `changed` counts publications of the scope. Nothing in here may be altered after publication.
    """

    __slots__ = ("changed", "order", "qualified", "toolkits", "tools")

    def __init__(
        self,
        tools: dict[str, Entry],
        qualified: dict[str, Entry],
        order: list[str],
        toolkits: Mapping[str, Toolkit],
        changed: int,
    ) -> None:
        self.tools: Mapping[str, Entry] = tools
        self.qualified: Mapping[str, Entry] = qualified
        self.order: Sequence[str] = order
        self.toolkits = toolkits
        self.changed = changed

    def find(self, name: str) -> Entry | None:
        """The tool of that name in either spelling: published or qualified."""
        found = self.tools.get(name)
        return found if found is not None else self.qualified.get(name)

    def page(self, after: str | None, limit: int, *, legacy: bool) -> Page:
        """Up to `limit` listed definitions after the name (which need not exist any more). None: from the start."""
        start = 0 if after is None else bisect.bisect_right(self.order, after)
        chosen = self.order[start : start + limit]
        tools = self.tools
        if legacy:
            body = b",".join([tools[name].legacy for name in chosen])
        else:
            body = b",".join([tools[name].modern for name in chosen])
        return Page(body, chosen[-1] if start + limit < len(self.order) else None)

    def replace(
        self, gone: Iterable[Tool], come: Iterable[Entry], toolkits: Mapping[str, Toolkit], *, eager_only: bool
    ) -> View:
        """A new View: without `gone`, with `come`. `eager_only` lists eager tools alone (progressive disclosure)."""
        tools = dict(self.tools)
        qualified = dict(self.qualified)
        unlisted: set[str] = set()
        for tool in gone:
            entry = qualified.pop(tool.qualified)
            tools.pop(entry.published, None)
            unlisted.add(entry.published)
        listed: list[str] = []
        for entry in come:
            tools[entry.published] = entry
            qualified[entry.tool.qualified] = entry
            if entry.tool.eager or not eager_only:
                listed.append(entry.published)
        return View(tools, qualified, _reorder(self.order, unlisted, listed), toolkits, self.changed + 1)


def _reorder(order: Sequence[str], unlisted: set[str], listed: list[str]) -> list[str]:
    new = list(order)
    if len(unlisted) + len(listed) <= 16:
        for name in unlisted:
            at = bisect.bisect_left(new, name)
            if at < len(new) and new[at] == name:
                del new[at]
        for name in listed:
            bisect.insort(new, name)
        return new
    if unlisted:
        new = [name for name in new if name not in unlisted]
    new.extend(listed)
    new.sort()
    return new


EMPTY: Final = View({}, {}, [], {}, 0)


def entry(tool: Tool, naming: Naming) -> Entry:
    """The tool as a listener of that naming publishes it (the costly part of publication: JSON is made here)."""
    return Entry(tool, names.published(naming, tool.namespace, tool.name))


class Published:
    """The current View of one scope. Owned by the ingest task; read and listened to by everybody in the same loop."""

    def __init__(self, scope: str) -> None:
        """`scope` is `<server>/<config>`, or the server name for a gateway without TDS."""
        self.scope = scope
        self.view: View = EMPTY
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
