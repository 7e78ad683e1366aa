"""All types on one stream: who the client is, one Subscription per type, nonces, and the order of what is sent. Pure.

In: who opened the stream, its requests, what changed. Out: answers to report, and the next response, pulled.
Called by server, one per stream.

Order on the stream (make before break): clusters come before what names them (Envoy's listeners, tools), what toolkits
refer to before toolkits, every removal after every update, and removals the other way round: toolkits go first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from control_plane_example.documents import DEFAULT_FLEET, PREFIX, TYPE_URLS
from control_plane_example.snapshot import Snapshot
from control_plane_example.subscription import Answer, Ask, Outgoing, Subscription

ORDER: Final = (
    TYPE_URLS["Cluster"],
    TYPE_URLS["ClusterLoadAssignment"],
    TYPE_URLS["Listener"],
    TYPE_URLS["McpOpenApiSource"],
    TYPE_URLS["McpDynamicServer"],
    TYPE_URLS["McpTool"],
    TYPE_URLS["McpToolkit"],
)
MAX_TYPES: Final = 64
MAX_NAMES: Final = 1_000_000
"""Names that one stream may subscribe to, and types that it may ask for: the state of a stream is bounded."""


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """What the first request says about its sender. `scopes`: None when `node.metadata.scopes` is not there."""

    node_id: str = ""
    cluster: str = ""
    scopes: tuple[str, ...] | None = None

    @property
    def fleet(self) -> str:
        """What is served on the stream: the node's cluster, `arion` when it has none."""
        return self.cluster or DEFAULT_FLEET


class Session:
    """One stream. `number` makes its nonces different from those of every other stream."""

    def __init__(self, number: int, declared: Declared) -> None:
        self.number = number
        self.declared = declared
        self.fleet = declared.fleet
        self.types: dict[str, Subscription] = {}
        self._scopes = None if declared.scopes is None else frozenset(declared.scopes)
        self._nonces = 0

    def request(self, ask: Ask, snapshot: Snapshot) -> Answer | str | None:
        """Take a request in. Returns the answer it carries, None, or why the stream has to end."""
        if not ask.type_url:
            return "a request has no type_url: an aggregated stream needs one in every request"
        subscription = self.types.get(ask.type_url)
        if subscription is None:
            if len(self.types) >= MAX_TYPES:
                return f"more than {MAX_TYPES} resource types on one stream"
            # Clusters belong to no scope.
            scopes = self._scopes if ask.type_url.startswith(PREFIX) else None
            subscription = self.types[ask.type_url] = Subscription(ask.type_url, scopes)
        answer = subscription.request(ask, snapshot.catalog(self.fleet, ask.type_url))
        if sum(len(each.names) + len(each.globs) for each in self.types.values()) > MAX_NAMES:
            return f"more than {MAX_NAMES} subscribed names on one stream: subscribe to globs or to *"
        return answer

    def changed(self, changes: Mapping[str, set[str]]) -> bool:
        """Note changed names by type URL. Returns whether there may be something to send."""
        concerned = False
        for type_url, names in changes.items():
            subscription = self.types.get(type_url)
            if subscription is not None and subscription.changed(names):
                concerned = True
        return concerned

    def pull(self, snapshot: Snapshot) -> Outgoing | None:
        """The next response, which counts as sent, or None when there is nothing to say now."""
        order = [type_url for type_url in ORDER if type_url in self.types]
        order += [type_url for type_url in self.types if type_url not in ORDER]
        nonce = f"{self.number}-{self._nonces + 1}"
        for type_url in order:
            outgoing = self.types[type_url].pull_updates(snapshot.catalog(self.fleet, type_url), nonce)
            if outgoing is not None:
                self._nonces += 1
                return outgoing
        for type_url in reversed(order):
            outgoing = self.types[type_url].pull_removals(nonce)
            if outgoing is not None:
                self._nonces += 1
                return outgoing
        return None

    def next_nonce(self) -> str:
        """A nonce for a response that was not pulled."""
        self._nonces += 1
        return f"{self.number}-{self._nonces}"

    def record(self, outgoing: Outgoing) -> None:
        """Expect an answer to a response that was not pulled; one of a type that was not asked for has none."""
        subscription = self.types.get(outgoing.type_url)
        if subscription is not None:
            subscription.record(outgoing)
