"""Envoy's Cluster (CDS) to a PushedCluster: the parts that are served, and what is refused or ignored of the rest.

In: a resource name, payload bytes and data rules. Out: a `Judged` PushedCluster. Called by cds.

A field that says where requests go, how many, or how safely, is served or refused; one that only tunes is ignored with
a warning. TLS without a validation context verifies with the system's authorities, which is more than Envoy does.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from typing import Any, Final, Generic, TypeVar

from envoy.config.cluster.v3.cluster_pb2 import Cluster as Message
from envoy.extensions.upstreams.http.v3.http_protocol_options_pb2 import HttpProtocolOptions
from google.protobuf.message import DecodeError

from arion_tds.decode import cluster_checks, cluster_tls, endpoints, leftovers, policy
from arion_tds.decode.case import Case
from arion_tds.decode.rules import DataRules
from arion_tds.decode.table import reasons, sentence
from arion_tds.model.cluster import Cluster, LbPolicy, PushedCluster
from arion_tds.model.problem import Problem

_T = TypeVar("_T")

_SERVED: Final = frozenset({
    "name", "type", "eds_cluster_config", "connect_timeout", "lb_policy", "load_assignment", "health_checks",
    "circuit_breakers", "outlier_detection", "transport_socket", "typed_extension_protocol_options",
})  # fmt: skip
_IGNORED: Final = frozenset({
    "alt_stat_name", "per_connection_buffer_limit_bytes", "common_http_protocol_options", "http_protocol_options",
    "upstream_http_protocol_options", "max_requests_per_connection", "dns_refresh_rate", "dns_jitter",
    "dns_failure_refresh_rate", "respect_dns_ttl", "dns_lookup_family", "use_tcp_for_dns_lookups",
    "typed_dns_resolver_config", "wait_for_warm_on_init", "cleanup_interval", "least_request_lb_config",
    "round_robin_lb_config", "common_lb_config", "metadata", "protocol_selection", "upstream_connection_options",
    "close_connections_on_host_health_failure", "ignore_health_on_host_removal", "lrs_server",
    "lrs_report_endpoint_metrics", "track_timeout_budgets", "track_cluster_stats", "preconnect_policy",
})  # fmt: skip
_POLICIES: Final = {
    Message.ROUND_ROBIN: LbPolicy.ROUND_ROBIN,
    Message.LEAST_REQUEST: LbPolicy.LEAST_REQUEST,
    Message.RANDOM: LbPolicy.RANDOM,
}
_HTTP: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_CONNECTIONS: Final = 1024
"""Envoy's defaults for connections, and for requests."""


@dataclasses.dataclass(frozen=True, slots=True)
class Judged(Generic[_T]):
    """One resource's verdict: exactly one of `value` and `problem` is set. `problem.where` is the resource's name."""

    value: _T | None
    problem: Problem | None
    warnings: tuple[str, ...] = ()


def cluster(name: str, payload: bytes, rules: DataRules) -> Judged[PushedCluster]:
    """Judge a delivered Cluster."""
    case = Case(rules)
    value: PushedCluster | None = None
    try:
        message = Message.FromString(payload)
    except DecodeError:
        case.refuse("", "cannot be decoded as Cluster")
    else:
        value = _cluster(message, name, case)
    return _judged(name, value, case)


def assignment(name: str, payload: bytes, rules: DataRules) -> Judged[tuple[str, ...]]:
    """Judge a delivered ClusterLoadAssignment: its endpoints as `host:port`, possibly none."""
    case = Case(rules)
    value: tuple[str, ...] | None = None
    try:
        value = endpoints.parse(name, payload, case)
    except DecodeError:
        case.refuse("", "cannot be decoded as ClusterLoadAssignment")
    return _judged(name, value, case)


def _judged(name: str, value: _T | None, case: Case) -> Judged[_T]:
    warnings = tuple(sentence(warning) for warning in case.warnings)
    if case.problems or value is None:
        return Judged(None, Problem(name, reasons(case.problems)), warnings)
    return Judged(value, None, warnings)


def _cluster(message: Message, name: str, case: Case) -> PushedCluster | None:
    leftovers.judge(message, "", _SERVED, _IGNORED, case)
    if message.name != name:
        case.warn("name", f"of the payload is {message.name!r}, not the resource name: {name!r} is used")
    connect = 5.0
    if message.HasField("connect_timeout"):
        connect = policy.seconds(message.connect_timeout, "connect_timeout", case) or connect
    lb_policy = _POLICIES.get(message.lb_policy)
    if lb_policy is None:
        case.refuse("lb_policy", f"{_enum(Message.LbPolicy, message.lb_policy)} is not supported")
    _protocol(message, case)
    tls = cluster_tls.transport(message.transport_socket, case) if message.HasField("transport_socket") else None
    eds = _eds(message, name, case)
    hosts = _hosts(message, case)
    if tls is not None and tls.sni is None and (eds is not None or any(map(_is_ip, hosts))):
        case.refuse("transport_socket", "has no sni: a certificate can only be verified for a name")
    most_requests, most_connections = _breakers(message, case)
    health = cluster_checks.health(message, case)
    outlier = None
    if message.HasField("outlier_detection"):
        outlier = cluster_checks.outlier(message.outlier_detection, case)
    if case.problems or lb_policy is None:
        return None
    made = Cluster(
        name=name,
        endpoints=(),
        tls=tls,
        connect_timeout=connect,
        max_requests=most_requests,
        max_connections=most_connections,
        lb_policy=lb_policy,
        health_check=health,
        outlier=outlier,
        pushed=True,
    )
    pushed = PushedCluster(made, eds)
    return pushed if eds is not None else PushedCluster(pushed.with_endpoints(hosts))


def _eds(message: Message, name: str, case: Case) -> str | None:
    """The name of its endpoints, when those are pushed apart from it."""
    if message.WhichOneof("cluster_discovery_type") == "cluster_type":
        return None  # refused as a field
    if message.type != Message.EDS:
        if message.HasField("eds_cluster_config"):
            case.refuse("eds_cluster_config", "is for clusters of type EDS")
        return None
    source = message.eds_cluster_config.eds_config
    if source.WhichOneof("config_source_specifier") not in {"ads", "self"}:
        case.refuse("eds_cluster_config.eds_config", "must be `ads` or `self`: endpoints come on the same stream")
    if message.HasField("load_assignment"):
        case.refuse("load_assignment", "must not be set where the type is EDS")
    return message.eds_cluster_config.service_name or name


def _hosts(message: Message, case: Case) -> tuple[str, ...]:
    """The endpoints that stand in the cluster itself."""
    kind = message.type
    if kind == Message.EDS:
        return ()
    if kind == Message.ORIGINAL_DST:
        case.refuse("type", "ORIGINAL_DST is not supported")
        return ()
    if not message.HasField("load_assignment"):
        case.refuse("load_assignment", "is missing: it is required")
        return ()
    found = endpoints.hosts(message.load_assignment, "load_assignment", case)
    if not found and not case.problems:
        case.refuse("load_assignment", "has no endpoints: it needs at least one")
    for one in found:
        if (kind == Message.STATIC) is not _is_ip(one):
            want = "an IP address" if kind == Message.STATIC else "a host name"
            case.refuse(
                "load_assignment", f"{one} is not {want}, as the type {_enum(Message.DiscoveryType, kind)} has it"
            )
            break
    return found


def _protocol(message: Message, case: Case) -> None:
    for key, options in message.typed_extension_protocol_options.items():
        where = f"typed_extension_protocol_options[{key}]"
        if key != _HTTP:
            case.refuse(where, "is not supported, and the cluster would not be the same without it")
            continue
        parsed = HttpProtocolOptions()
        if not options.Unpack(parsed):
            case.refuse(where, f"is not {_HTTP}")
        elif parsed.explicit_http_config.WhichOneof("protocol_config") in {
            "http2_protocol_options",
            "http3_protocol_options",
        }:
            case.refuse(where, "asks for HTTP/2 or HTTP/3: HTTP/1.1 is spoken to clusters")
        else:
            leftovers.judge(parsed, where, ("explicit_http_config", "auto_config"), _OPTIONS, case)


_OPTIONS: Final = frozenset({
    "common_http_protocol_options", "upstream_http_protocol_options", "use_downstream_protocol_config",
    "header_validation_config", "outlier_detection", "hash_policy",
})  # fmt: skip


def _breakers(message: Message, case: Case) -> tuple[int, int]:
    """Requests and connections that there may be at once."""
    requests = connections = _CONNECTIONS
    leftovers.judge(message.circuit_breakers, "circuit_breakers", ("thresholds",), ("per_host_thresholds",), case)
    for at, threshold in enumerate(message.circuit_breakers.thresholds):
        where = f"circuit_breakers.thresholds[{at}]"
        if threshold.priority != 0:
            case.warn(where, "is for the priority HIGH, which no request has: ignored")
            continue
        served = ("priority", "max_connections", "max_requests")
        ignored = ("max_pending_requests", "max_retries", "retry_budget", "track_remaining", "max_connection_pools")
        leftovers.judge(threshold, where, served, ignored, case)
        if threshold.HasField("max_requests"):
            requests = _positive(threshold.max_requests.value, f"{where}.max_requests", case)
        if threshold.HasField("max_connections"):
            connections = _positive(threshold.max_connections.value, f"{where}.max_connections", case)
    return requests, connections


def _positive(value: int, where: str, case: Case) -> int:
    if value < 1:
        case.refuse(where, "is 0: nothing could be asked of the cluster")
    return value


def _is_ip(authority: str) -> bool:
    host = authority.rpartition(":")[0].removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _enum(kind: Any, value: int) -> str:  # noqa: ANN401 - protobuf's enum wrapper
    try:
        return str(kind.Name(value))
    except ValueError:
        return str(value)
