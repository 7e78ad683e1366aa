"""What an MCP front is told (settings) and what it is given (ports). Values and Protocols only.

`FrontSettings` comes from the listener's config. `CallPort`, `SearchPort`, `AccessPort` and `Observer` are what the app
plugs in; `ExtraTool` is the seam for tools that the gateway itself serves (search, code mode). Used by all of server.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from arion_tds.model.caller import Caller, Denial
from arion_tds.model.context import CallContext
from arion_tds.model.rbac import Rbac
from arion_tds.model.result import CallResult, RpcError
from arion_tds.server.activated import Activated
from arion_tds.server.limits import LimitSettings
from arion_tds.view import Entry, View

DEFAULT_SEARCH_RESULTS: Final = 10
"""Results of a search that names no `limit`."""

DEFAULT_FOUND_TOOLS: Final = 5
"""The same for the search tool, whose results a model reads whole."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FrontSettings:
    """One listener's settings. Times in seconds, sizes in bytes.

    `page_size` and `page_bytes` end a list page, whichever is reached first; a page has one tool at least.
    `loopback`: the listener is reachable from this machine only, so Host and Origin must name it. `allowed_hosts`
    (when given, checked on any listener) and `allowed_origins` add to what is accepted; an origin is written
    `https://host[:port]`, or `*`. `sse_after` is the silence after which a call's answer becomes an event stream, so
    that keep-alive comments can be sent. `max_search_results` caps what a search may ask for. `max_packed_bytes`: list
    pages kept compressed, counted as they were before. `protected_resource`: the document of RFC 9728, served to
    everybody.
    """

    name: str
    version: str
    instructions: str | None = None
    page_size: int = 1000
    page_bytes: int = 2 << 20
    max_body_bytes: int = 4 << 20
    body_timeout: float = 30.0
    ttl_ms: int = 5000
    cache_scope: str = "public"
    keepalive: float = 15.0
    sse_after: float = 10.0
    write_timeout: float = 30.0
    max_streams: int = 10_000
    notify_interval: float = 0.1
    max_search_results: int = 100
    max_packed_bytes: int = 32 << 20
    allowed_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    loopback: bool = False
    protected_resource: bytes | None = None
    limits: LimitSettings = dataclasses.field(default_factory=LimitSettings)


class CallPort(Protocol):
    """Runs a tool: the pipeline behind the front."""

    async def call(
        self, view: View, entry: Entry, arguments: dict[str, Any], context: CallContext
    ) -> CallResult | RpcError:
        """Call the tool. Every expected fault is a returned value."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Ranked entries with their scores, how many matched in all, how they were ranked, and words that were respelt.

    `tokens`: what each hit costs a context, in the same order; nothing where that is not known. `degraded`: why the
    ranking is a lesser one than configured. `namespaces`: tools in each, where an overview was asked for.
    """

    hits: Sequence[tuple[Entry, float]]
    total: int
    ranking: str
    corrected: Mapping[str, str] = dataclasses.field(default_factory=dict)
    tokens: Sequence[int] = ()
    degraded: str | None = None
    namespaces: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SearchAsk:
    """One search. An empty query lists in name order. `namespaces` None: all. `overview`: say which there are."""

    query: str
    namespaces: tuple[str, ...] | None
    limit: int
    offset: int
    overview: bool = False


Allows = Callable[[Rbac | None], bool]
"""Whether a caller may use, and therefore see, a tool with this rbac."""


class SearchPort(Protocol):
    """Ranks the tools of a View."""

    async def search(self, view: View, ask: SearchAsk, allows: Allows) -> Found:
        """The best `limit` entries after the first `offset`, of those that the caller may see (`allows`)."""
        ...


class AccessPort(Protocol):
    """Verifies credentials, once per request."""

    async def admit(self, headers: Mapping[str, str]) -> Caller | Denial:
        """Who sent these headers (looked up case-insensitively), or why the request is refused."""
        ...


class Observer(Protocol):
    """Hears what the front did, for metrics. Must not raise or block."""

    def answered(self, method: str, status: int, seconds: float, *, modern: bool) -> None:
        """One POST was answered. `method` is one that is served, or "other"."""
        ...

    def streams(self, count: int) -> None:
        """So many notification streams are open now."""
        ...

    def dropped(self, what: str) -> None:
        """Something was thrown away because a client reads too slowly."""
        ...

    def refused(self, what: str) -> None:
        """Somebody was turned away for load, rate or slowness."""
        ...


class Unobserved:
    """An observer that listens to nothing."""

    def answered(self, method: str, status: int, seconds: float, *, modern: bool) -> None:
        """Nothing."""

    def streams(self, count: int) -> None:
        """Nothing."""

    def dropped(self, what: str) -> None:
        """Nothing."""

    def refused(self, what: str) -> None:
        """Nothing."""


ExtraHandler = Callable[[View, dict[str, Any], CallContext], Awaitable[CallResult | RpcError]]


@dataclasses.dataclass(frozen=True, slots=True)
class ExtraTool:
    """A tool of the gateway itself: its complete definitions per era, and who answers it.

    `describe` gives the definition (for both eras) where it depends on the View and on who asks.
    """

    modern: bytes
    legacy: bytes
    handler: ExtraHandler
    describe: Callable[[View, Allows], bytes] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class MethodsConfig:
    """`extra_tools` by name are listed before the others. `catalog` False: they are all that is listed and called.

    `activated`: tools that are listed for one handshake session only, after the extra tools.
    """

    extra_tools: Mapping[str, ExtraTool] = dataclasses.field(default_factory=dict)
    catalog: bool = True
    activated: Activated | None = None
