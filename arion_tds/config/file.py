"""Every key of gateway.yaml with its type, default and limit. Judged and loaded by config.judging.

Unknown keys are mistakes: a misspelt limit must not silently be the default.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Final, Literal

import pydantic
from pydantic import Field

from arion_tds.backends.mcp.address import parse as parse_addresses
from arion_tds.backends.mcp.pool import UpstreamsSettings
from arion_tds.backends.mcp.settings import UpstreamSettings
from arion_tds.backends.mcp.stdio import StdioServer
from arion_tds.config import sharing
from arion_tds.config.access import AuditConfig
from arion_tds.config.lifetime import CacheConfig, ReloadConfig
from arion_tds.config.listener import ListenerConfig
from arion_tds.config.observing import AccessLogConfig, EventsConfig, MetricsConfig, TracingConfig
from arion_tds.config.values import Address, Model, Pause, Seconds, Secret
from arion_tds.errors import ConfigError
from arion_tds.model.cluster import Cluster, ClusterTls
from arion_tds.openapi.limits import Limits as OpenApiLimits
from arion_tds.openapi.limits import Output

MIN_TOKEN: Final = 16
"""Bytes of an admin token, at least."""


class NodeConfig(Model):
    """Who we are to the control plane; `cluster` is the fleet."""

    id: str = Field(default="arion-tds", min_length=1)
    """Name of this process for the control plane."""
    cluster: str = Field(default="arion", min_length=1)
    """The fleet that the control plane selects content by."""


class TlsConfig(Model):
    """TLS towards somebody else: whom to trust, who we are, which name to ask for. PEM files."""

    ca_file: str | None = None
    """Certificates to trust; the system's when unset."""
    cert_file: str | None = None
    """Our certificate, where the other side asks for one."""
    key_file: str | None = None
    """Its private key."""
    server_name: str | None = None
    """Name to ask for and to verify instead of the host."""


class ControlPlaneConfig(Model):
    """Where the catalog comes from, and how patiently."""

    address: Address
    """`host:port` of its gRPC listener."""
    subscription: Literal["wildcard", "scope"] = "wildcard"
    """`wildcard` asks for `*` of each type, `scope` for `<server>/<config>/*` of each scope."""
    tls: TlsConfig | None = None
    """Plain text when unset."""
    initial_fetch_timeout: Seconds = 15.0
    """Readiness waits this long, while a stream is up, for types that the control plane does not answer."""
    connect_timeout: Seconds = 10.0
    """For one connection."""
    keepalive_time: Seconds = 10.0
    """Silence after which the connection is pinged."""
    keepalive_timeout: Seconds = 5.0
    """Wait for the ping's answer before the connection is given up."""
    max_message_bytes: int = Field(default=64 << 20, ge=1 << 20)
    """Largest response that is read."""
    backoff_base: Seconds = 1.0
    """First pause between streams."""
    backoff_max: Seconds = 30.0
    """Longest pause between streams."""
    max_unanswered: int = Field(default=16, ge=1)
    """Responses in hand before reading stops."""
    clusters: bool = False
    """Also ask for clusters and their endpoints (CDS, EDS), which stand beside those of the config."""


class AdminConfig(Model):
    """The operator's listener."""

    address: Address = "127.0.0.1:9901"
    """Where the operator's pages are; loopback unless told otherwise."""
    token: Secret | None = None
    """Must be shown for every page but /healthz and /readyz: as a bearer token, or as the password of Basic."""

    def secret(self) -> bytes | None:
        """The token. ConfigError when it cannot be read, or is so short that it can be guessed."""
        if self.token is None:
            return None
        try:
            found = self.token.read()
        except (OSError, KeyError) as error:
            raise ConfigError([f"admin.token cannot be read: {error}"]) from error
        if len(found) < MIN_TOKEN:
            raise ConfigError([f"admin.token is shorter than {MIN_TOKEN} bytes: use a random one"])
        return found


class RotationConfig(Model):
    """Certificates, keys and key sets that are replaced while the gateway runs."""

    interval: Seconds = 5.0
    """Their files are looked at this often."""


class SessionsConfig(Model):
    """Session ids are signed; replicas that share the key accept each other's. Without a key: random at start."""

    key: Secret | None = None
    """Signs session ids; at least 16 bytes. Random at start when unset: then a restart ends every session."""
    lifetime: Seconds = 24 * 3600.0
    """Of a session id."""


class ClusterConfig(Model):
    """A named upstream."""

    name: str = Field(min_length=1)
    """What tools name."""
    endpoints: tuple[str, ...] = Field(min_length=1)
    """Origins, taken in turn."""
    tls: TlsConfig | None = None
    """For https endpoints."""
    connect_timeout: Seconds = 5.0
    """For one connection."""
    timeout: Seconds | None = None
    """Of a call, unless the tool says otherwise; the gateway's `upstream_timeout` when unset."""
    max_requests: int = Field(default=1024, ge=1)
    """Calls under way; more get `overflow`."""
    max_connections: int = Field(default=256, ge=1)
    """Open connections."""
    idle_timeout: Seconds = 60.0
    """An unused connection is kept this long."""
    max_response_header_bytes: int = Field(default=1 << 16, ge=1024)
    """Largest headers of an answer; each counts 32 bytes beside its name and value."""

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
            max_response_header_bytes=self.max_response_header_bytes,
        )


class DataSourcesConfig(Model):
    """What a *delivered* DataSource may read from this machine. Default: nothing."""

    files: tuple[str, ...] = ()
    """Absolute paths; one that ends in `/` allows all below it."""
    environment: tuple[str, ...] = ()
    """Names of variables."""


class OpenApiConfig(Model):
    """How OpenAPI documents are expanded. `limits` by the names in docs/openapi.md."""

    output: Output = "loose"
    """Response schemas: `loose` (real answers pass), `strict` (as the document says) or `off`."""
    workers: int = Field(default=1, ge=1, le=16)
    """Processes that expand documents."""
    limits: dict[str, float] = Field(default_factory=dict)
    """By the names in docs/openapi.md."""

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
    """Which server; unset in `default`."""
    timeout: Seconds | None = None
    """Of a call, started anew by progress; the gateway's `upstream_timeout` when unset."""
    max_call_time: Seconds = 600.0
    """Of a call, progress or not."""
    max_concurrent_calls: int = Field(default=256, ge=1)
    """Calls under way; more get `overflow`."""
    max_response_bytes: int | None = Field(default=None, ge=1)
    """Largest answer; the gateway's `max_upstream_response_bytes` when unset."""
    max_response_header_bytes: int = Field(default=1 << 16, ge=1024)
    """Largest headers of an answer; each counts 32 bytes beside its name and value."""
    connect_timeout: Seconds = 5.0
    """For one connection."""
    handshake_timeout: Seconds = 10.0
    """For finding out the era and initialize."""
    max_list_pages: int = Field(default=200, ge=1)
    """Pages of its tool list."""
    max_list_tools: int = Field(default=10_000, ge=1)
    """Tools of its tool list."""
    max_list_bytes: int = Field(default=32 << 20, ge=1024)
    """Bytes of its tool list."""
    headers: dict[str, Secret] = Field(default_factory=dict)
    """Sent with every request, never shown."""
    trusted: bool = False
    """Skips the address rules."""
    tls: TlsConfig | None = None
    """For https URLs."""

    def settings(self, list_timeout: float) -> UpstreamSettings:
        """As the value that the upstream client takes. OSError or KeyError when a header's secret is not there."""
        tls = self.tls or TlsConfig()
        return UpstreamSettings(
            timeout=self.timeout,
            max_call_time=self.max_call_time,
            max_concurrent_calls=self.max_concurrent_calls,
            max_response_bytes=self.max_response_bytes,
            max_response_header_bytes=self.max_response_header_bytes,
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
    """A pushed server must list its tools within this."""
    max_servers: int = Field(default=1024, ge=1)
    """Servers in use at once."""
    allow_addresses: tuple[str, ...] = ()
    """Networks, host names and suffixes (`.corp.example`) that are allowed whatever the deny rules say."""
    deny_addresses: tuple[str, ...] = ()
    """Networks, host names and suffixes that are refused, beside link-local and metadata addresses."""
    default: McpServerConfig = McpServerConfig()
    """For servers that are not in `servers`."""
    servers: tuple[McpServerConfig, ...] = ()
    """By URL."""

    def settings(self, processes: Mapping[str, StdioServer]) -> UpstreamsSettings:
        """As the value that the pool takes. ConfigError names what cannot be used."""
        addresses = parse_addresses(self.allow_addresses, self.deny_addresses)
        if isinstance(addresses, list):
            raise ConfigError([f"mcp_servers.{problem}" for problem in addresses])
        try:
            return UpstreamsSettings(
                default=self.default.settings(self.discovery_timeout),
                servers={one.url or "": one.settings(self.discovery_timeout) for one in self.servers},
                processes=processes,
                addresses=addresses,
                max_servers=self.max_servers,
            )
        except (OSError, KeyError, UnicodeDecodeError) as error:
            raise ConfigError([f"mcp_servers: a header's secret cannot be read: {error}"]) from error


class LogConfig(Model):
    """Where and how much to say."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """From which on."""
    format: Literal["text", "json"] = "text"
    """`text` for people, `json` for machines."""


class FileConfig(Model):
    """The whole file."""

    node: NodeConfig = NodeConfig()
    workers: int | None = Field(default=None, ge=1, le=sharing.MOST)
    """Processes that serve the same addresses (docs/workers.md). Unset: the cores, up to 4; 1 where a port is 0."""
    worker_timeout: Pause = 30.0
    """One of several workers that stands still this long is killed and replaced; at least 1 s, or 0: never."""
    control_plane: ControlPlaneConfig | None = None
    """Needed when a listener uses `tds`."""
    admin: AdminConfig = AdminConfig()
    sessions: SessionsConfig = SessionsConfig()
    rotation: RotationConfig = RotationConfig()
    listeners: tuple[ListenerConfig, ...] = Field(min_length=1)
    """At least one."""
    clusters: tuple[ClusterConfig, ...] = ()
    data_sources: DataSourcesConfig = DataSourcesConfig()
    openapi: OpenApiConfig = OpenApiConfig()
    mcp_servers: McpServersConfig = McpServersConfig()
    log: LogConfig = LogConfig()
    access_log: AccessLogConfig | None = None
    """None is written when unset."""
    audit_log: AuditConfig | None = None
    """None is written when unset."""
    events: EventsConfig | None = None
    """None are sent when unset."""
    tracing: TracingConfig | None = None
    """No spans are made when unset; callers' trace contexts go on to upstreams all the same."""

    metrics: MetricsConfig = MetricsConfig()
    cache: CacheConfig | None = None
    """Without it a restarted gateway serves nothing until its control plane answers."""
    reload: ReloadConfig = ReloadConfig()
    drain_delay: Pause = 0.0
    """Told to stop, the gateway is not ready but serves on for this long, so that load balancers look elsewhere."""

    @pydantic.field_validator("worker_timeout")
    @classmethod
    def _patient(cls, value: float) -> float:
        if 0 < value < 1:
            raise ValueError("must be 0 (never) or 1s at least: a busy worker also stands still for a moment")
        return value
