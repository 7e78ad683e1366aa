"""Every key of gateway.yaml with its type, default and limit. Judged and loaded by config.judging.

Unknown keys are mistakes: a misspelt limit must not silently be the default.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Literal

import pydantic
from pydantic import Field

from arion_tds.backends.mcp.address import parse as parse_addresses
from arion_tds.backends.mcp.pool import UpstreamsSettings
from arion_tds.backends.mcp.settings import UpstreamSettings
from arion_tds.config.values import Address, Model, Seconds, Secret
from arion_tds.errors import ConfigError
from arion_tds.model.cluster import Cluster, ClusterTls
from arion_tds.model.names import Naming
from arion_tds.openapi.limits import Limits as OpenApiLimits
from arion_tds.openapi.limits import Output


class NodeConfig(Model):
    """Who we are to the control plane; `cluster` is the fleet."""

    id: str = Field(default="arion-tds", min_length=1)
    cluster: str = Field(default="arion", min_length=1)


class TlsConfig(Model):
    """TLS towards somebody else: whom to trust, who we are, which name to ask for. PEM files."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None


class ControlPlaneConfig(Model):
    """Where the catalog comes from, and how patiently."""

    address: Address
    subscription: Literal["wildcard", "scope"] = "wildcard"
    tls: TlsConfig | None = None
    initial_fetch_timeout: Seconds = 15.0
    connect_timeout: Seconds = 10.0
    keepalive_time: Seconds = 10.0
    keepalive_timeout: Seconds = 5.0
    max_message_bytes: int = Field(default=64 << 20, ge=1 << 20)
    backoff_base: Seconds = 1.0
    backoff_max: Seconds = 30.0
    max_unanswered: int = Field(default=16, ge=1)


class AdminConfig(Model):
    """The operator's listener."""

    address: Address = "127.0.0.1:9901"


class SessionsConfig(Model):
    """Session ids are signed; replicas that share the key accept each other's. Without a key: random at start."""

    key: Secret | None = None
    lifetime: Seconds = 24 * 3600.0


class ListenerConfig(Model):
    """One tenant's listener: our own settings beside the McpGateway message."""

    name: str = Field(min_length=1)
    address: Address
    tool_names: Naming = Naming.QUALIFIED
    mcp_gateway: dict[str, Any]
    page_size: int = Field(default=100, ge=1, le=10_000)
    max_body_bytes: int = Field(default=4 << 20, ge=1024)
    max_streams: int = Field(default=10_000, ge=1)
    keepalive: Seconds = 15.0
    ttl: Seconds = 5.0
    instructions: str | None = None
    allowed_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    drain_timeout: Seconds = 10.0


class ClusterConfig(Model):
    """A named upstream."""

    name: str = Field(min_length=1)
    endpoints: tuple[str, ...] = Field(min_length=1)
    tls: TlsConfig | None = None
    connect_timeout: Seconds = 5.0
    timeout: Seconds | None = None
    max_requests: int = Field(default=1024, ge=1)
    max_connections: int = Field(default=256, ge=1)
    idle_timeout: Seconds = 60.0

    @pydantic.field_validator("endpoints")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for endpoint in value:
            scheme, separator, rest = endpoint.partition("://")
            if scheme not in {"http", "https"} or not separator or not rest or re.search(r"[/?#@\s]", rest):
                msg = f"{endpoint!r} is not an origin: write http://host:port or https://host:port without a path"
                raise ValueError(msg)
        return value

    def settings(self) -> Cluster:
        """As the value that backends take."""
        tls = self.tls
        return Cluster(
            name=self.name,
            endpoints=self.endpoints,
            tls=None
            if tls is None
            else ClusterTls(ca_file=tls.ca_file, cert_file=tls.cert_file, key_file=tls.key_file, sni=tls.server_name),
            connect_timeout=self.connect_timeout,
            timeout=self.timeout,
            max_requests=self.max_requests,
            max_connections=self.max_connections,
            idle_timeout=self.idle_timeout,
        )


class DataSourcesConfig(Model):
    """What a *delivered* DataSource may read from this machine. Default: nothing."""

    files: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()


class OpenApiConfig(Model):
    """How OpenAPI documents are expanded. `limits` by the names in docs/openapi.md."""

    output: Output = "loose"
    workers: int = Field(default=1, ge=1, le=16)
    limits: dict[str, float] = Field(default_factory=dict)

    @pydantic.field_validator("limits")
    @classmethod
    def _known(cls, value: dict[str, float]) -> dict[str, float]:
        known = {field.name for field in dataclasses.fields(OpenApiLimits)}
        for name, limit in value.items():
            if name not in known:
                msg = f"{name!r} is no limit: the limits are {', '.join(sorted(known))}"
                raise ValueError(msg)
            if limit <= 0:
                msg = f"{name} must be greater than 0"
                raise ValueError(msg)
        return value

    def settings(self) -> OpenApiLimits:
        """As the value that the expander takes."""
        whole = {name: limit if name == "max_wall_seconds" else int(limit) for name, limit in self.limits.items()}
        return OpenApiLimits(**whole)  # type: ignore[arg-type]


class McpServerConfig(Model):
    """Settings of one MCP server, by its URL, or of all that have none of their own."""

    url: str | None = None
    timeout: Seconds | None = None
    max_call_time: Seconds = 600.0
    max_concurrent_calls: int = Field(default=256, ge=1)
    max_response_bytes: int | None = Field(default=None, ge=1)
    connect_timeout: Seconds = 5.0
    handshake_timeout: Seconds = 10.0
    max_list_pages: int = Field(default=200, ge=1)
    max_list_tools: int = Field(default=10_000, ge=1)
    max_list_bytes: int = Field(default=32 << 20, ge=1024)
    headers: dict[str, Secret] = Field(default_factory=dict)
    trusted: bool = False
    tls: TlsConfig | None = None

    def settings(self, list_timeout: float) -> UpstreamSettings:
        """As the value that the upstream client takes. OSError or KeyError when a header's secret is not there."""
        tls = self.tls or TlsConfig()
        return UpstreamSettings(
            timeout=self.timeout,
            max_call_time=self.max_call_time,
            max_concurrent_calls=self.max_concurrent_calls,
            max_response_bytes=self.max_response_bytes,
            connect_timeout=self.connect_timeout,
            handshake_timeout=self.handshake_timeout,
            list_timeout=list_timeout,
            max_list_pages=self.max_list_pages,
            max_list_tools=self.max_list_tools,
            max_list_bytes=self.max_list_bytes,
            headers=tuple((name, secret.read().decode()) for name, secret in self.headers.items()),
            trusted=self.trusted,
            ca_file=tls.ca_file,
            cert_file=tls.cert_file,
            key_file=tls.key_file,
        )


class McpServersConfig(Model):
    """MCP servers that are called: where they may be, how they are spoken to."""

    discovery_timeout: Seconds = 10.0
    max_servers: int = Field(default=1024, ge=1)
    allow_addresses: tuple[str, ...] = ()
    deny_addresses: tuple[str, ...] = ()
    default: McpServerConfig = McpServerConfig()
    servers: tuple[McpServerConfig, ...] = ()

    def settings(self) -> UpstreamsSettings:
        """As the value that the pool takes. ConfigError names what cannot be used."""
        addresses = parse_addresses(self.allow_addresses, self.deny_addresses)
        if isinstance(addresses, list):
            raise ConfigError([f"mcp_servers.{problem}" for problem in addresses])
        try:
            return UpstreamsSettings(
                default=self.default.settings(self.discovery_timeout),
                servers={one.url or "": one.settings(self.discovery_timeout) for one in self.servers},
                addresses=addresses,
                max_servers=self.max_servers,
            )
        except (OSError, KeyError, UnicodeDecodeError) as error:
            raise ConfigError([f"mcp_servers: a header's secret cannot be read: {error}"]) from error


class LogConfig(Model):
    """Where and how much to say."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


class FileConfig(Model):
    """The whole file."""

    node: NodeConfig = NodeConfig()
    control_plane: ControlPlaneConfig | None = None
    admin: AdminConfig = AdminConfig()
    sessions: SessionsConfig = SessionsConfig()
    listeners: tuple[ListenerConfig, ...] = Field(min_length=1)
    clusters: tuple[ClusterConfig, ...] = ()
    data_sources: DataSourcesConfig = DataSourcesConfig()
    openapi: OpenApiConfig = OpenApiConfig()
    mcp_servers: McpServersConfig = McpServersConfig()
    log: LogConfig = LogConfig()
