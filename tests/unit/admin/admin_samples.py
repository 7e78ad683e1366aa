"""A scope with content, and the world around it, for tests of the operator's pages."""

from __future__ import annotations

import dataclasses
from typing import Any

from arion_tds.admin.explain import explain
from arion_tds.admin.facts import Explanation, Plane, World
from arion_tds.backends.attempts import ClusterStatus, EndpointStatus
from arion_tds.backends.mcp.connection import UpstreamStatus
from arion_tds.catalog import Catalog
from arion_tds.history import History
from arion_tds.model.backend import McpBackend, RestBackend
from arion_tds.model.change import Change, PutServer, PutSource, PutTool
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.model.gateway import CodeMode, Gateway, Search
from arion_tds.model.names import Naming
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.template import Template, parse
from arion_tds.model.tool import Tool
from arion_tds.schema import EMPTY_OBJECT

NOW = 1_000_000.0
URL = "http://up.test/mcp"


def tool(qualified: str, **more: Any) -> Tool:
    """A REST tool on cluster `api`; `more` overrides fields."""
    namespace, _, name = qualified.partition(".")
    path = parse("/x")
    assert isinstance(path, Template)
    fields: dict[str, Any] = {
        "description": f"The tool {name}",
        "input_schema": EMPTY_OBJECT,
        "backend": RestBackend("GET", path, "api"),
        **more,
    }
    return Tool(namespace=namespace, name=name, **fields)


def source(namespace: str, *tools: str, **more: Any) -> PutSource:
    """An OpenAPI source with these tools (local names)."""
    definition = OpenApiSource(namespace=namespace, document=b"{}", cluster="api", **more)
    return PutSource(definition, tuple(tool(f"{namespace}.{name}") for name in tools))


def server(namespace: str, *tools: str) -> PutServer:
    """An MCP server at `URL` with these tools (local names)."""
    definition = McpServer(namespace=namespace, description="", url=URL)
    return PutServer(definition, tuple(tool(f"{namespace}.{name}", backend=McpBackend(URL, name)) for name in tools))


def upstream(**more: Any) -> UpstreamStatus:
    """An MCP server that was never spoken to."""
    fields: dict[str, Any] = {
        "url": URL, "state": "unknown",
        "era": None, "version": None, "server": "", "handshakes": 0, "calls_in_flight": 0, "calls": 0,
        "failures": 0, "listed_at": None, "listed_tools": 0, "last_error": None, "last_error_at": None, **more,
    }  # fmt: skip
    return UpstreamStatus(**fields)


def cluster(*, down: bool) -> ClusterStatus:
    """Cluster `api` with one endpoint."""
    error = "connection refused" if down else None
    return ClusterStatus("api", (EndpointStatus("http://10.0.0.1", down, error),), 0, 0, 0, 0)


class Stage:
    """One scope `s/c` and what happened to it; `ask` explains."""

    def __init__(
        self,
        *,
        naming: Naming = Naming.QUALIFIED,
        search: bool = False,
        code: bool = False,
        scope: str = "s/c",
        servers: tuple[McpServer, ...] = (),
    ) -> None:
        self.now = NOW - 100
        self.history = History(lambda: self.now)
        self.catalog = Catalog(
            Gateway(
                name=scope.split("/", maxsplit=1)[0],
                version="1",
                scope=scope,
                search=Search() if search else None,
                code_mode=CodeMode() if code else None,
                servers=servers,
            ),
            naming,
        )
        self.versions: dict[tuple[Kind, ResourceId], str] = {}
        self.world = World(
            catalogs={scope: self.catalog},
            history=self.history,
            version=lambda kind, name: self.versions.get((kind, name)),
            plane=Plane(address="plane:1", connected=True, settled=True),
            now=NOW,
            clusters={"api": cluster(down=False)},
        )

    def knows(self, **facts: Any) -> None:
        """Change what the world is like."""
        self.world = dataclasses.replace(self.world, **facts)

    async def put(self, kind: Kind, name: str, version: str, change: Change) -> None:
        """An accepted resource."""
        (verdict,) = await self.catalog.commit([change])
        assert verdict.problem is None, verdict.problem
        resource = ResourceId(self.catalog.scope, name)
        self.history.accepted(kind, resource, version)
        self.versions[kind, resource] = version

    async def put_tool(self, qualified: str, version: str = "1", **more: Any) -> None:
        """An accepted tool."""
        await self.put(Kind.TOOL, qualified, version, PutTool(tool(qualified, **more)))

    def refuse(self, kind: Kind, name: str, version: str, why: str) -> None:
        """A rejected resource."""
        self.history.rejected(kind, ResourceId(self.catalog.scope, name), version, why)

    def ask(self, name: str, **more: Any) -> Explanation:
        """The one explanation."""
        (found,) = explain(self.world, name, **more)
        return found
