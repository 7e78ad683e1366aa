"""A delta xDS response as values, and the answer to it: the language between xds and ingest (and nothing protobuf)."""

from __future__ import annotations

import dataclasses
import enum
from typing import Final

from arion_tds.model.problem import Problem

PREFIX: Final = "type.googleapis.com/arion.extensions.filters.http.mcp.mcp_gateway.v3."


class Kind(enum.Enum):
    """The resource types; the value is the type URL. Those of the catalog, and those that say where clusters are."""

    TOOL = PREFIX + "Tool"
    SOURCE = PREFIX + "OpenApiToolSource"
    SERVER = PREFIX + "DynamicMcpServer"
    TOOLKIT = PREFIX + "Toolkit"
    CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
    ENDPOINTS = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

    def __init__(self, url: str) -> None:
        """`short`: the message's name, as logs and metrics say it. `scoped`: its resources belong to one gateway."""
        self.short = url.rpartition(".")[2]
        self.scoped = url.startswith(PREFIX)


CATALOG: Final = (Kind.TOOL, Kind.SOURCE, Kind.SERVER, Kind.TOOLKIT)
"""The types that every gateway asks for."""

CLUSTERS: Final = (Kind.CLUSTER, Kind.ENDPOINTS)
"""CDS and EDS: asked for where the config says so, before what names them."""


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceId:
    """`scope` is `<server>/<config>`, "" where the kind has none; `name` may hold further slashes."""

    scope: str
    name: str

    def __str__(self) -> str:
        return f"{self.scope}/{self.name}" if self.scope else self.name


@dataclasses.dataclass(frozen=True, slots=True)
class Delivered:
    """One resource of a response that concerns a scope of ours: its id, opaque version and the Any's value bytes.

    `kept`: it does not come from a response but from what an earlier life of the gateway kept on disk.
    """

    id: ResourceId
    version: str
    payload: bytes
    kept: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Delivery:
    """What one response asks for, filtered by scope and checked as a whole. Removals apply before updates."""

    kind: Kind
    updates: tuple[Delivered, ...]
    removals: tuple[ResourceId, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class DeliveryVerdict:
    """The answer: the resources that were refused (`where` is the full resource id). Everything else was applied."""

    rejected: tuple[Problem, ...] = ()
