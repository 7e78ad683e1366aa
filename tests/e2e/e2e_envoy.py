"""Real Envoy, from PyPI, installed once and started with a bootstrap that has everything come over delta ADS.

`Envoy` is the process and its admin page; `Naming` says how it asks: for `*`, or for the glob of a collection.
`cluster`, `endpoints` and `listener` are documents' specs. Used by test_envoy.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from e2e_processes import ROOT, Process, eventually, free_ports

Spec = dict[str, Any]

ADS: Spec = {"ads": {}, "resource_api_version": "V3"}
HTTP2 = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
FILTERS = "envoy.extensions.filters"
MANAGER = f"{FILTERS}.network.http_connection_manager.v3.HttpConnectionManager"
ROUTER = f"{FILTERS}.http.router.v3.Router"
MODES = ("*", "xdstp://arion")


@dataclasses.dataclass(frozen=True)
class Naming:
    """`authority` is `*`, or the start of the names of two collections, which are then asked for by glob."""

    authority: str

    @property
    def wild(self) -> bool:
        """Whether Envoy asks for everything there is."""
        return self.authority == "*"

    def cluster(self, name: str) -> str:
        """What a cluster is called on the wire."""
        return name if self.wild else f"{self.authority}/envoy.config.cluster.v3.Cluster/edge/{name}"

    def listener(self, name: str) -> str:
        """What a listener is called on the wire."""
        return name if self.wild else f"{self.authority}/envoy.config.listener.v3.Listener/edge/{name}"

    def resources(self) -> Spec:
        """`dynamic_resources` of the bootstrap, without the stream."""
        found: Spec = {"cds_config": ADS, "lds_config": ADS}
        if not self.wild:
            found["cds_resources_locator"] = self.cluster("*")
            found["lds_resources_locator"] = self.listener("*")
        return found


class Envoy:
    """One Envoy process. Who starts it kills it."""

    def __init__(self, folder: Path, commands: Path, control_plane: str, naming: Naming) -> None:
        (port,) = free_ports(1)
        self.admin = f"http://127.0.0.1:{port}"
        path = folder / "envoy.json"
        path.write_text(json.dumps(_bootstrap(port, control_plane, naming)), encoding="utf-8")
        self.process = Process(
            folder / "envoy.log",
            str(commands / "envoy"), "-c", str(path), "--concurrency", "1", "--disable-hot-restart", "-l", "warning",
        )  # fmt: skip

    async def dynamic(self, section: str) -> dict[str, Spec]:
        """`dynamic_active_clusters` or `dynamic_listeners` of /config_dump by resource name."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.admin}/config_dump") as response:
            configs = (await response.json())["configs"]
        inner = {"dynamic_active_clusters": "cluster", "dynamic_listeners": "active_state"}[section]
        found = [one for config in configs for one in config.get(section, ()) if inner in one]
        return {one["name"] if inner == "active_state" else one[inner]["name"]: one[inner] for one in found}

    async def serves(self, section: str, *names: str) -> dict[str, Spec]:
        """Wait until it has exactly these; what it has of them."""

        async def look() -> dict[str, Spec]:
            found = await self.dynamic(section)
            assert set(found) == set(names), self.process.log()
            return found

        return await eventually(look)


def installed() -> Path:
    """The folder with the command; skips where pip has no Envoy for this machine."""
    script, wanted = ROOT / "scripts" / "python_packages.py", ROOT / "tests" / "e2e" / "envoy.txt"
    done = subprocess.run([sys.executable, script, wanted], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"Envoy cannot be installed: {done.stderr.strip()[-500:]}")
    return Path(done.stdout.strip())


def cluster(name: str, port: int | None = None, **more: Any) -> Spec:
    """A cluster with one endpoint, or (`port` None) one that asks for the endpoints called `backends`."""
    common: Spec = {"name": name, "connect_timeout": "1s", **more}
    if port is None:
        return {**common, "type": "EDS", "eds_cluster_config": {"eds_config": ADS, "service_name": "backends"}}
    return {**common, "type": "STATIC", "load_assignment": endpoints(name, port)}


def endpoints(name: str, port: int) -> Spec:
    """A ClusterLoadAssignment with one endpoint."""
    return {"cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(port)}}]}]}


def listener(name: str, port: int, target: str) -> Spec:
    """A listener that sends every request to the cluster."""
    hosts = [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": target}}]}]
    manager = {
        "@type": f"type.googleapis.com/{MANAGER}",
        "stat_prefix": "in",
        "route_config": {"name": "all", "virtual_hosts": hosts},
        "http_filters": [{"name": "router", "typed_config": {"@type": f"type.googleapis.com/{ROUTER}"}}],
    }
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    return {"name": name, "address": _address(port), "filter_chains": [chain]}


def _address(port: int) -> Spec:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _bootstrap(admin: int, control_plane: str, naming: Naming) -> Spec:
    http2 = {
        "@type": f"type.googleapis.com/{HTTP2}",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    plane = cluster("control_plane", int(control_plane.rpartition(":")[2]))
    ads = {
        "api_type": "DELTA_GRPC",
        "transport_api_version": "V3",
        "grpc_services": [{"envoy_grpc": {"cluster_name": "control_plane"}}],
    }
    return {
        "node": {"id": "envoy-1", "cluster": "arion"},
        "admin": {"address": _address(admin)},
        "dynamic_resources": {"ads_config": ads, **naming.resources()},
        "static_resources": {"clusters": [{**plane, "typed_extension_protocol_options": {HTTP2: http2}}]},
    }
