"""Changes to one scope, and verdicts on them: the language between decode, ingest and the registry.

A delivered or static resource becomes one change. A source or server becomes one only after its tools are known
(expanded, discovered), so that the registry applies it as a whole or not at all.
"""

from __future__ import annotations

import dataclasses

from arion_tds.model.problem import Problem
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit


@dataclasses.dataclass(frozen=True, slots=True)
class PutTool:
    """Add the tool or replace the one of its name."""

    tool: Tool


@dataclasses.dataclass(frozen=True, slots=True)
class PutSource:
    """The source owns its namespace; the namespace's tools become exactly `tools`."""

    source: OpenApiSource
    tools: tuple[Tool, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class PutServer:
    """The server owns its namespace; the namespace's tools become exactly `tools`."""

    server: McpServer
    tools: tuple[Tool, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class PutToolkit:
    """Add or replace the toolkit (code mode; ignored in tools mode)."""

    toolkit: Toolkit


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveTool:
    """Delete a provided tool. `name` is the resource name (qualified)."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveSource:
    """Delete the source of the namespace and every tool derived from it."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveServer:
    """Delete the server of the namespace and every tool discovered from it."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveToolkit:
    """Delete the toolkit."""

    name: str


Put = PutTool | PutSource | PutServer | PutToolkit
Remove = RemoveTool | RemoveSource | RemoveServer | RemoveToolkit
Change = Put | Remove


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one change: accepted (`problem` None) or rejected, and what to warn about either way."""

    problem: Problem | None = None
    warnings: tuple[str, ...] = ()
