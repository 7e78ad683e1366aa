"""One listener's keys in gateway.yaml, with its local MCP servers. Part of config.file."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from arion_tds.backends.mcp.stdio import StdioServer
from arion_tds.config.access import JwtConfig, LimitsConfig, ListenerTlsConfig
from arion_tds.config.values import Address, Model, Seconds, Secret
from arion_tds.model.names import Naming
from arion_tds.model.server import McpServer


class StdioServerConfig(Model):
    """An MCP server that runs as a child process. Never over xDS: a control plane must not start processes."""

    namespace: str = Field(min_length=1)
    """Its tools stand under this namespace."""
    description: str = "An MCP server over stdio"
    """For people."""
    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments; no shell is involved."""
    env: dict[str, str | Secret] = Field(default_factory=dict)
    """Variables beside PATH, HOME and the like, as text or as references."""
    cwd: str | None = None
    """Working directory; the gateway's when unset."""
    idle_timeout: Seconds = 180.0
    """A process without a call this long is ended; its tools stay listed and the next call starts it again."""
    cache_duration: Seconds | None = None
    """The list is fetched again after this; unset keeps it until the server announces a change."""

    def url(self, listener: str) -> str:
        """The key of its connection."""
        return f"stdio:{listener}/{self.namespace}"

    def settings(self) -> StdioServer:
        """As the value that the pool takes. OSError or KeyError when a secret is not there."""
        env = {name: one if isinstance(one, str) else one.read().decode() for name, one in self.env.items()}
        return StdioServer(command=self.command, env=env, cwd=self.cwd, idle_timeout=self.idle_timeout)

    def server(self, listener: str) -> McpServer:
        """As the value that the catalog takes."""
        return McpServer(
            namespace=self.namespace,
            description=self.description,
            url=self.url(listener),
            cache_duration=self.cache_duration,
        )


class ListenerConfig(Model):
    """One tenant's listener: our own settings beside the McpGateway message."""

    name: str = Field(min_length=1)
    """For logs and metrics; unique."""
    address: Address
    """`host:port`; port 0 takes any."""
    share_address: bool = False
    """Further gateways of this user may serve the address too: the system spreads new connections (SO_REUSEPORT)."""
    tool_names: Naming = Naming.QUALIFIED
    """`qualified` (`ns.name`), `portable` (`ns__name`) or `bare` (`name`)."""
    mcp_gateway: dict[str, Any]
    """The McpGateway message in proto JSON form: as in the wire contract (proto/)."""
    page_size: int = Field(default=1000, ge=1, le=10_000)
    """Tools of one `tools/list` page, at most: many clients never ask for a second one."""
    page_bytes: int = Field(default=2 << 20, ge=1024)
    """Bytes of definitions on one page, at most (one tool may have more)."""
    max_body_bytes: int = Field(default=4 << 20, ge=1024)
    """Largest request body; more gets 413."""
    max_streams: int = Field(default=10_000, ge=1)
    """Open notification streams; more get 503."""
    keepalive: Seconds = 15.0
    """Time between comments on open streams."""
    ttl: Seconds = 5.0
    """`ttlMs` of lists: how long a 2026-07-28 client may keep them."""
    instructions: str | None = None
    """Told to clients at initialize and discover."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of browsers beside the listener's own; `*` for all."""
    allowed_hosts: tuple[str, ...] = ()
    """Host headers beside the listener's own."""
    stdio_servers: tuple[StdioServerConfig, ...] = ()
    """MCP servers of this listener that run as child processes."""
    jwt: JwtConfig | None = None
    """Tokens that callers show; without it nobody is known."""
    limits: LimitsConfig = LimitsConfig()
    tls: ListenerTlsConfig | None = None
    """Plain text when unset."""
    drain_timeout: Seconds = 10.0
    """Calls under way get this long when the listener stops."""
