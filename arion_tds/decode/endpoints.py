"""Envoy's ClusterLoadAssignment (EDS, or inside a Cluster) to `host:port`s. Called by cluster.

An endpoint that the control plane says is unhealthy is left out. Weights and priorities decide where traffic goes, so
they are refused where they are not all the same; locality is ignored.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from envoy.config.core.v3.address_pb2 import SocketAddress
from envoy.config.core.v3.health_check_pb2 import DEGRADED, HEALTHY, UNKNOWN
from envoy.config.endpoint.v3.endpoint_components_pb2 import LbEndpoint
from envoy.config.endpoint.v3.endpoint_pb2 import ClusterLoadAssignment

from arion_tds.decode import leftovers
from arion_tds.decode.case import Case

MAX_ENDPOINTS: Final = 10_000
_GOOD: Final = frozenset({UNKNOWN, HEALTHY, DEGRADED})
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z")


def parse(name: str, payload: bytes, case: Case) -> tuple[str, ...]:
    """The endpoints of a delivered resource. Raises DecodeError for bytes that are none."""
    message = ClusterLoadAssignment.FromString(payload)
    if message.cluster_name != name:
        case.warn("cluster_name", f"is {message.cluster_name!r}, not the resource name: {name!r} is used")
    return hosts(message, "", case)


def hosts(message: ClusterLoadAssignment, path: str, case: Case) -> tuple[str, ...]:
    """Every endpoint that may be asked, once, in their order."""
    leftovers.judge(message, path, ("cluster_name", "endpoints"), ("policy",), case)
    prefix = f"{path}." if path else ""
    found: dict[str, None] = {}
    weights: set[int] = set()
    count = 0
    for at, group in enumerate(message.endpoints):
        where = f"{prefix}endpoints[{at}]"
        leftovers.judge(
            group, where, ("lb_endpoints",), ("locality", "metadata", "proximity", "load_balancing_weight"), case
        )
        for position, one in enumerate(group.lb_endpoints):
            count += 1
            if count > MAX_ENDPOINTS:
                case.refuse(path or "endpoints", f"has more than {MAX_ENDPOINTS} endpoints")
                return ()
            weights.add(one.load_balancing_weight.value or 1)
            authority = _authority(one, f"{where}.lb_endpoints[{position}]", case)
            if authority is not None and one.health_status in _GOOD:
                found[authority] = None
    if len(weights) > 1:
        case.refuse(f"{prefix}endpoints", "have different weights (load_balancing_weight), which are not supported")
    return tuple(found)


def _authority(one: LbEndpoint, where: str, case: Case) -> str | None:
    leftovers.judge(one, where, ("endpoint", "health_status", "load_balancing_weight"), ("metadata",), case)
    if not one.HasField("endpoint"):
        case.refuse(f"{where}.endpoint", "is missing: it is required")
        return None
    leftovers.judge(one.endpoint, f"{where}.endpoint", ("address",), ("hostname", "health_check_config"), case)
    address = one.endpoint.address
    if address.WhichOneof("address") != "socket_address":
        case.refuse(f"{where}.endpoint.address", "must be a socket_address")
        return None
    socket = address.socket_address
    where = f"{where}.endpoint.address.socket_address"
    leftovers.judge(socket, where, ("protocol", "address", "port_value"), ("ipv4_compat",), case)
    if socket.protocol != SocketAddress.TCP:
        case.refuse(f"{where}.protocol", "must be TCP")
    if not 1 <= socket.port_value <= 65535:
        case.refuse(f"{where}.port_value", f"is {socket.port_value}: not a port")
        return None
    return _joined(socket.address, socket.port_value, where, case)


def _joined(host: str, port: int, where: str, case: Case) -> str | None:
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        if len(host) <= 253 and _HOST.match(host):
            return f"{host}:{port}"
        case.refuse(f"{where}.address", f"is {host[:64]!r}: neither an IP address nor a host name")
        return None
    return f"[{ip}]:{port}" if ip.version == 6 else f"{ip}:{port}"
