"""One type's subscription on the stream: what we want, what the server was told, and the next request between them.

In: wanted names (`*`, or `<server>/<config>/*`). Out: `Request` values, pulled. Called by xds.session.

The difference is derived, not queued (Envoy's subscription_state): names subscribed and unsubscribed in one request
are disjoint by construction, and what was asked and withdrawn before anything was sent is never sent. A name that was
unwanted and is wanted again, its content dropped in between, goes out as two requests, since a server need not resend
what it thinks we hold (envoyproxy/go-control-plane#431, #1450).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from arion_tds.model.delivery import Kind


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A DeltaDiscoveryRequest as values. `nonce` empty: spontaneous. `error` non-empty: a NACK of INVALID_ARGUMENT.

    `versions` is `initial_resource_versions`. `scopes` is not None in the first request of a stream only: the node
    goes with it, and declares these scopes.
    """

    kind: Kind
    subscribe: tuple[str, ...] = ()
    unsubscribe: tuple[str, ...] = ()
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    nonce: str = ""
    error: str = ""
    scopes: tuple[str, ...] | None = None


class Subscription:
    """Names of one type. Owned by its session."""

    __slots__ = ("_dirty", "_forgotten", "_told", "_wanted", "asked")

    def __init__(self, wanted: Iterable[str]) -> None:
        """`wanted`: the names to subscribe on the first stream."""
        self._wanted: dict[str, None] = dict.fromkeys(wanted)
        self._told: set[str] = set()
        self._forgotten: set[str] = set()
        self._dirty = True
        self.asked = False
        """Whether the server was asked for this type on the current stream."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """The names, in the order in which they were first wanted."""
        return tuple(self._wanted)

    def open(self) -> None:
        """A new stream: nothing of the old one is known to the server."""
        self._told.clear()
        self._forgotten.clear()
        self._dirty = True
        self.asked = False

    def want(self, names: Iterable[str]) -> None:
        """Make `names` the whole subscription. Content of a name that is left out is taken to be dropped at once."""
        new = dict.fromkeys(names)
        self._forgotten |= {name for name in self._wanted if name not in new and name in self._told}
        self._wanted = {name: None for name in self._wanted if name in new} | new
        self._dirty = True

    def pull(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """What the next request must (subscribe, unsubscribe), or None when the server knows all of it.

        The first request of a type on a stream is never one without names: that would mean `*`.
        """
        if not self._dirty:
            return None
        leave = tuple(sorted(name for name in self._told if name not in self._wanted or name in self._forgotten))
        join = tuple(name for name in self._wanted if name not in self._told)
        self._told.difference_update(leave)
        self._told.update(join)
        self._forgotten.clear()
        self._dirty = any(name in self._wanted for name in leave)
        if not join and not leave:
            return None
        self.asked = True
        return join, leave
