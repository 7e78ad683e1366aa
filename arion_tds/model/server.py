"""A DynamicMcpServer as a value: an MCP server whose tools are discovered."""

from __future__ import annotations

import dataclasses

from arion_tds.model.rbac import Rbac


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """`url` is the server's streamable HTTP endpoint, or `stdio:…` where it is a child process of the gateway.

    `cache_duration` in seconds; None keeps the first list.
    """

    namespace: str
    description: str
    url: str
    cache_duration: float | None = None
    rbac: Rbac | None = None
    eager: bool = False

    @property
    def is_local(self) -> bool:
        """Whether it is a child process: it has a command and no URL of its own."""
        return self.url.startswith("stdio:")
