"""A named upstream cluster as a value: endpoints, TLS, limits. From config (or later from CDS); used by clusters."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTls:
    """TLS towards https endpoints. Paths of PEM files; `sni` overrides the name that is sent and verified."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    sni: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """`endpoints` are origins (`http://host:port`, an optional base path is not allowed). Times in seconds."""

    name: str
    endpoints: tuple[str, ...]
    tls: ClusterTls | None = None
    connect_timeout: float = 5.0
    timeout: float | None = None
    max_requests: int = 1024
    max_connections: int = 256
    idle_timeout: float = 60.0
