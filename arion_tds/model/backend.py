"""Where a tool's calls go: to a REST path of a cluster, an OpenAPI operation, or an MCP server."""

from __future__ import annotations

import dataclasses

from arion_tds.model.policy import DEFAULT_POLICY, HttpPolicy
from arion_tds.model.template import Template


@dataclasses.dataclass(frozen=True, slots=True)
class QueryParam:
    """One query parameter: wire name and the dot path of the argument. Absent argument: left out."""

    name: str
    source: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class JsonBody:
    """`body_json`: the argument at this dot path is the JSON body."""

    source: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class RestBackend:
    """RestBackend of the wire, compiled. `body` is a template, an argument, or nothing."""

    method: str
    path: Template
    cluster: str
    query: tuple[QueryParam, ...] = ()
    body: Template | JsonBody | None = None
    policy: HttpPolicy = DEFAULT_POLICY


@dataclasses.dataclass(frozen=True, slots=True)
class McpBackend:
    """A tool of an MCP server. `tool` is the server's own name for it; `server` the key of its connection (its URL)."""

    server: str
    tool: str


@dataclasses.dataclass(frozen=True, slots=True)
class OperationBackend:
    """An OpenAPI operation. `binding` is opaque here: made by openapi.expand, read by openapi.request."""

    binding: object
    cluster: str
    policy: HttpPolicy = DEFAULT_POLICY


Backend = RestBackend | McpBackend | OperationBackend
