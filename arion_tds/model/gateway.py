"""One gateway (the McpGateway message) as values: what a listener serves, before anything is delivered to it."""

from __future__ import annotations

import dataclasses
from typing import Final

from arion_tds.model.policy import DEFAULT_RESPONSE_BYTES, DEFAULT_TIMEOUT
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit

SEARCH_TOOLS: Final = "search_tools"
CALL_TOOL: Final = "call_tool"
"""The gateway's own tools under progressive disclosure. Only `bare` names of a catalog can be the same."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """RemoteEmbeddings: an OpenAI-compatible endpoint behind a cluster. `timeout` in seconds."""

    cluster: str
    model_id: str
    dimensions: int
    path: str = "/v1/embeddings"
    timeout: float = 5.0
    max_batch_size: int = 64


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """ToolSearch. Its presence turns progressive disclosure on."""

    max_allowable_results: int | None = None
    embeddings: Embeddings | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CodeMode:
    """CodeMode with its defaults filled in. Times in seconds, sizes in bytes."""

    execution_timeout: float = 30.0
    max_host_calls: int = 100
    max_concurrent_executions: int = 8
    max_output_bytes: int = 1 << 20
    memory_limit_bytes: int = 128 << 20
    max_concurrent_tool_calls: int = 8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """Server name and version, mode, limits, and the static content. `scope` is None without `tds`."""

    name: str
    version: str
    scope: str | None = None
    code_mode: CodeMode | None = None
    search: Search | None = None
    upstream_timeout: float = DEFAULT_TIMEOUT
    max_response_bytes: int = DEFAULT_RESPONSE_BYTES
    tools: tuple[Tool, ...] = ()
    sources: tuple[OpenApiSource, ...] = ()
    servers: tuple[McpServer, ...] = ()
    toolkits: tuple[Toolkit, ...] = ()

    @property
    def discloses(self) -> bool:
        """Whether most tools are found by search instead of being listed (code mode lists none in any case)."""
        return self.search is not None and self.code_mode is None

    @property
    def reserved(self) -> frozenset[str]:
        """Published names that no tool of the catalog may have: those of the gateway's own tools beside it."""
        return frozenset((SEARCH_TOOLS, CALL_TOOL)) if self.discloses else frozenset()
