"""What an explanation is made from, and the explanation itself. Values only; used by admin.explain and its parts."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping

from arion_tds.backends.attempts import ClusterStatus
from arion_tds.backends.mcp.connection import UpstreamStatus
from arion_tds.catalog import Catalog
from arion_tds.history import History, Verdict
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.problems import Standing


class State(enum.StrEnum):
    """The one word for it."""

    SERVED = "served"
    RESTRICTED = "restricted"
    NOT_LISTED = "not_listed"
    UPSTREAM_DOWN = "upstream_down"
    OLDER_VERSION = "older_version"
    REJECTED = "rejected"
    OWNED_BY_ANOTHER = "owned_by_another"
    PENDING = "pending"
    LEFT_OUT = "left_out"
    REMOVED = "removed"
    IGNORED = "ignored"
    UNKNOWN = "unknown"
    UNKNOWN_SCOPE = "unknown_scope"
    CONTROL_PLANE_AWAY = "control_plane_away"


@dataclasses.dataclass(frozen=True, slots=True)
class Trying:
    """A server that could not be asked for its tools and is asked again: how often so far, and the last reason."""

    failures: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """The control plane as it is now. `last_error` "" when no stream has ended; `nacks`: the last NACK of each type."""

    address: str
    connected: bool
    settled: bool
    last_error: str = ""
    nacks: Mapping[Kind, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything that is known. `plane` None: no control plane is configured. `now`: seconds since the epoch.

    `version` tells which version the control plane is told is in use. `standing` are the parts of accepted resources
    that were left out. `trying` goes by (scope, namespace), `upstreams` by URL without its query, `clusters` by name.
    """

    catalogs: Mapping[str, Catalog]
    history: History
    version: Callable[[Kind, ResourceId], str | None]
    plane: Plane | None
    now: float
    standing: Iterable[Standing] = ()
    trying: Mapping[tuple[str, str], Trying] = dataclasses.field(default_factory=dict)
    upstreams: Mapping[str, UpstreamStatus] = dataclasses.field(default_factory=dict)
    clusters: Mapping[str, ClusterStatus] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """The resource that a tool comes from. `since`: when this version was first accepted; None: not remembered.

    `kind` is the message's name, or "static" for what stands in the config (then without version and time).
    """

    kind: str
    resource: str
    version: str | None = None
    since: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """`summary` is a sentence; `details` say what else is the case, `advice` what to do. `history`: oldest first.

    `listed`: in tools/list of a caller without restrictions; `callable`: a call gets as far as the backend.
    """

    scope: str
    name: str
    state: State
    summary: str
    listed: bool = False
    callable: bool = False
    origin: Origin | None = None
    details: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    history: tuple[Verdict, ...] = ()
    suggestions: tuple[str, ...] = ()


def origin(world: World, kind: Kind, name: ResourceId) -> Origin:
    """Where what is served under the name comes from: the control plane, or the config if it was never delivered."""
    accepted = world.history.serving(kind, name)
    version = world.version(kind, name)
    if version is None and accepted is None:
        return Origin("static", str(name))
    if accepted is None or version not in {None, accepted.version}:
        return Origin(kind.short, str(name), version)
    return Origin(kind.short, str(name), accepted.version, accepted.at)


def ago(seconds: float) -> str:
    """A span of time in one unit."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{int(seconds / size)} {unit}"
    return f"{max(0, round(seconds))} s"
