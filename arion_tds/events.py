"""What operators' systems are told as it happens: verdicts, discovered tools, upstreams that fail and come back.

In: verdicts of the history, publications of catalogs, changes of state of MCP servers and endpoints. Out: events for
the webhook, whose names and data docs/events.md describes. Built by app; nothing here waits, and what is costly about
an event (tokens, JSON of all tools) is done by the webhook's thread.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from arion_tds import reasons
from arion_tds.catalog import Catalog
from arion_tds.history import History, Outcome, Verdict
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.registry.snapshot import Namespace, Owner
from arion_tds.search import tokens
from arion_tds.view import Entry, View
from arion_tds.webhook import Event, rfc3339


class EventType(enum.StrEnum):
    """Every type of event."""

    ACCEPTED = "tds.resource.accepted"
    REJECTED = "tds.resource.rejected"
    REMOVED = "tds.resource.removed"
    DISCOVERED = "mcp.tools.discovered"
    STATE_CHANGED = "upstream.state_changed"


_VERDICTS: Final = {outcome: EventType[outcome.name] for outcome in Outcome}


class Events:
    """Turns what happens into events."""

    def __init__(self, put: Callable[[Event], None], types: Iterable[EventType], clock: Callable[[], float]) -> None:
        """`types`: which events are wanted. `clock`: seconds since the epoch."""
        self._put = put
        self._types = frozenset(types)
        self._clock = clock
        self._followed: dict[Catalog, Callable[[], None]] = {}

    def hear(self, history: History) -> None:
        """Tell of every verdict from now on, the same one in a row once."""
        history.listen(self._verdict)

    def follow(self, catalogs: Sequence[Catalog]) -> None:
        """Tell of the tools of the MCP servers of these catalogs, those held already included, and of no others."""
        if EventType.DISCOVERED not in self._types:
            return
        for gone in self._followed.keys() - set(catalogs):
            self._followed.pop(gone)()
        for catalog in catalogs:
            if catalog not in self._followed:
                self._followed[catalog] = self._hear(catalog)

    def server(self, url: str, state: str, why: str) -> None:
        """An MCP server is in another state (`ok`, `failing`) than before."""
        self._state({"kind": "mcp_server", "name": url, "state": state}, why)

    def endpoint(self, cluster: str, origin: str, state: str, why: str) -> None:
        """An endpoint of a cluster is in another state (`up`, `down`) than before."""
        self._state({"kind": "endpoint", "cluster": cluster, "name": origin, "state": state}, why)

    def _state(self, data: dict[str, object], why: str) -> None:
        if EventType.STATE_CHANGED in self._types:
            if why:
                data["reason"] = why
            self._put(Event(EventType.STATE_CHANGED, str(data["name"]), self._clock(), data))

    def _verdict(self, kind: Kind, name: ResourceId, given: Verdict) -> None:
        of = _VERDICTS[given.outcome]
        if given.times > 1 or of not in self._types:
            return
        data: dict[str, object] = {"type": kind.short, "scope": name.scope, "name": name.name}
        if given.outcome is not Outcome.REMOVED:
            data["version"] = given.version
        if given.outcome is Outcome.REJECTED:
            data |= {"reason": given.reason, "class": reasons.classify(given.reason)}
        self._put(Event(of, str(name), given.at, data))

    def _hear(self, catalog: Catalog) -> Callable[[], None]:
        self._discovered(catalog, catalog.published.view, catalog.snapshot.namespaces)
        return catalog.published.listen(lambda old, new: self._published(catalog, old, new))

    def _published(self, catalog: Catalog, old: View, new: View) -> None:
        held = catalog.snapshot.namespaces
        touched: dict[str, None] = {}
        for name in new.touched:
            entry = new.tools.get(name) or old.tools.get(name)
            if entry is not None:
                touched[entry.tool.namespace] = None
        self._discovered(catalog, new, {name: held[name] for name in touched if name in held})

    def _discovered(self, catalog: Catalog, view: View, spaces: Mapping[str, Namespace]) -> None:
        at = self._clock()
        for name, held in spaces.items():
            if held.owner is Owner.SERVER and held.tools:
                entries = [view.qualified[tool.qualified] for tool in held.tools.values()]
                told, subject = _Discovered(catalog.scope, name, entries, at), f"{catalog.scope}/{name}"
                # A server that changes its list all the time must not fill the queue with its lists.
                self._put(Event(EventType.DISCOVERED, subject, at, told, key=f"{EventType.DISCOVERED} {subject}"))


class _Discovered:
    """The data of one discovery; made when it is sent, in a thread."""

    __slots__ = ("_at", "_entries", "_namespace", "_scope")

    def __init__(self, scope: str, namespace: str, entries: Sequence[Entry], at: float) -> None:
        self._scope = scope
        self._namespace = namespace
        self._entries = entries
        self._at = at

    def __call__(self) -> Mapping[str, object]:
        counts = tokens.count([tokens.text(entry.tool) for entry in self._entries])
        return {
            "scope": self._scope,
            "namespace": self._namespace,
            "tools": [
                {
                    "name": entry.tool.name,
                    "published_name": entry.published,
                    "description": entry.tool.description,
                    "input_schema": msgspec.Raw(entry.tool.input_schema.text),
                    "token_count": count,
                }
                for entry, count in zip(self._entries, counts, strict=True)
            ],
            "total_token_count": sum(counts),
            "token_count_exact": tokens.exact(),
            "token_encoding": tokens.ENCODING,
            "discovered_at": rfc3339(self._at),
        }
