"""A named upstream cluster as a value: endpoints, TLS, limits. From config or from CDS and EDS; used by clusters."""

from __future__ import annotations

import dataclasses
import enum


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTls:
    """TLS towards https endpoints. Paths of PEM files; `sni` overrides the name that is sent and verified.

    `ca_data`: authorities as PEM text, in place of a file.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    sni: str | None = None
    ca_data: str | None = None


class LbPolicy(enum.Enum):
    """Which endpoint is asked next: by turns, the one with fewer requests of two, or any."""

    ROUND_ROBIN = "round robin"
    LEAST_REQUEST = "least request"
    RANDOM = "random"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """An HTTP request that a healthy endpoint answers. Times in seconds; `statuses` are ranges, the end excluded."""

    path: str
    interval: float
    timeout: float
    unhealthy_threshold: int
    healthy_threshold: int
    host: str | None = None
    statuses: tuple[tuple[int, int], ...] = ((200, 201),)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """When an endpoint that answers badly is passed over, and for how long (times how often it was). Seconds."""

    consecutive_5xx: int = 5
    base_ejection_time: float = 30.0
    max_ejection_time: float = 300.0
    max_ejection_percent: int = 10


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """`endpoints` are origins (`http://host:port`, an optional base path is not allowed). Times in seconds.

    `pushed`: it comes from the control plane, and may be without endpoints.
    """

    name: str
    endpoints: tuple[str, ...]
    tls: ClusterTls | None = None
    connect_timeout: float = 5.0
    timeout: float | None = None
    max_requests: int = 1024
    max_connections: int = 256
    idle_timeout: float = 60.0
    max_response_header_bytes: int = 1 << 16
    lb_policy: LbPolicy = LbPolicy.ROUND_ROBIN
    health_check: HealthCheck | None = None
    outlier: Outlier | None = None
    pushed: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class PushedCluster:
    """A Cluster resource. `eds`: the name under which its endpoints are pushed; None: `cluster` has them."""

    cluster: Cluster
    eds: str | None = None

    def with_endpoints(self, pushed: tuple[str, ...]) -> Cluster:
        """The cluster at these `host:port`s."""
        scheme = "http" if self.cluster.tls is None else "https"
        return dataclasses.replace(self.cluster, endpoints=tuple(f"{scheme}://{one}" for one in pushed))
