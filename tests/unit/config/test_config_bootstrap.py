"""An Envoy bootstrap starts this gateway as it stands; what is not used of it is named, what cannot be is refused."""

from __future__ import annotations

import copy
import pathlib
from typing import Any

import pytest
import yaml

from arion_tds.config import judging
from arion_tds.errors import ConfigError

FILE = pathlib.Path(__file__).with_name("bootstrap.yaml")
MANAGER = "static_resources.listeners[0].filter_chains[0].filters[0].typed_config"


@pytest.fixture
def bootstrap() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def manager(bootstrap: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0][
        "typed_config"
    ]
    return found


def test_a_bootstrap_is_taken_as_it_is() -> None:
    config = judging.load(str(FILE))
    file = config.file
    assert (file.node.id, file.node.cluster, file.admin.address) == ("gateway-1", "arion", "127.0.0.1:9901")
    plane = file.control_plane
    assert plane is not None
    assert (plane.address, plane.connect_timeout, plane.subscription) == ("plane.example.com:18000", 2.0, "wildcard")
    assert plane.clusters
    assert plane.tls is not None
    assert (plane.tls.ca_file, plane.tls.server_name) == ("/etc/ca.pem", "plane.example.com")
    (listener,) = file.listeners
    assert (listener.name, listener.address) == ("tenant-a", "127.0.0.1:8080")
    assert config.gateways[0].scope == "tenant-a-mcp/main"
    weather, issuer = file.clusters
    assert weather.endpoints == ("http://10.0.0.1:4001", "http://[fd00::1]:4001")
    assert (weather.connect_timeout, weather.max_requests) == (0.25, 64)
    assert issuer.endpoints == ("https://issuer.example.com:443",)
    assert listener.jwt is not None
    assert listener.jwt.required
    corp = listener.jwt.providers["corp"]
    assert (corp.issuer, corp.audiences) == ("https://issuer.example.com", ("mcp",))
    assert corp.remote_jwks is not None
    assert (corp.remote_jwks.timeout, corp.remote_jwks.cache_duration) == (2.0, 300.0)
    assert corp.remote_jwks.ca_file == "/etc/issuer-ca.pem"


def test_every_part_that_is_not_used_is_named() -> None:
    unused = {one.partition(": is not used")[0] for one in judging.load(str(FILE)).warnings if "is not used" in one}
    assert unused == {
        "node.locality",
        "static_resources.listeners[0].per_connection_buffer_limit_bytes",
        f"{MANAGER}.route_config",
        f"{MANAGER}.http_filters[0]",
        f"{MANAGER}.http_filters[1].typed_config.providers.corp.payload_in_metadata",
        "static_resources.clusters[1].circuit_breakers.thresholds[0].max_pending_requests",
        "static_resources.clusters[2].dns_lookup_family",
    }


def test_keys_may_be_spelt_as_protobuf_writes_json(bootstrap: dict[str, Any]) -> None:
    def humped(value: Any) -> Any:
        if isinstance(value, list):
            return [humped(one) for one in value]
        if not isinstance(value, dict):
            return value
        made = {}
        for key, inner in value.items():
            first, *rest = key.split("_")
            made[key if "." in key or "@" in key else first + "".join(part.title() for part in rest)] = humped(inner)
        return made

    one, other = judging.judge(humped(bootstrap)), judging.judge(bootstrap)
    assert one.gateways == other.gateways
    without = {"listeners": {"__all__": {"mcp_gateway"}}}  # as it is written
    assert one.file.model_dump(exclude=without) == other.file.model_dump(exclude=without)


def test_a_mistake_in_the_gateway_is_said_with_the_bootstraps_path(bootstrap: dict[str, Any]) -> None:
    manager(bootstrap)["http_filters"][2]["typed_config"]["server_info"] = {"name": "", "version": "1"}
    bootstrap["static_resources"]["clusters"][1]["connect_timeout"] = "soon"
    with pytest.raises(ConfigError) as refused:
        judging.judge(bootstrap)
    said = str(refused.value)
    assert f"{MANAGER}.http_filters[2].typed_config.server_info.name" in said
    assert "static_resources.clusters[1].connect_timeout: 'soon' is not a duration" in said


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            ("dynamic_resources", "ads_config", "api_type"),
            "GRPC",
            "ads_config.api_type: is GRPC: the gateway speaks delta",
        ),
        (
            ("dynamic_resources", "ads_config", "grpc_services"),
            [{"envoy_grpc": {"cluster_name": "none"}}],
            "grpc_services[0].envoy_grpc.cluster_name: is 'none': no static cluster has that name",
        ),
        (("static_resources", "clusters", 1, "type"), "EDS", "clusters[1].type: is EDS: only clusters that name"),
        (("static_resources", "listeners"), [], "no listener has an McpGateway filter"),
        (("static_resources", "clusters"), {"a": 1}, "static_resources.clusters: must be a list, not dict"),
        (
            ("dynamic_resources", "cds_config"),
            {"path": "/cds.yaml"},
            "cds_config: clusters are taken from the ADS stream",
        ),
        (("admin",), "x", "admin: must be a mapping, not str"),
        (("admin", "address"), {"pipe": {"path": "/x"}}, "admin.address.pipe: only socket addresses"),
        (
            ("static_resources", "listeners", 0, "filter_chains", 0, "transport_socket"),
            {"name": "quic", "typed_config": {"@type": "x/QuicDownstreamTransport"}},
            "transport_socket: only a DownstreamTlsContext is understood",
        ),
    ],
)
def test_what_must_not_be_passed_over_is_refused(
    bootstrap: dict[str, Any], path: tuple[Any, ...], value: Any, said: str
) -> None:
    at: Any = bootstrap
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(ConfigError) as refused:
        judging.judge(bootstrap)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("rules", "required"),
    [
        ([], False),
        ([{"match": {"prefix": "/"}, "requires": {"allow_missing": {}}}], False),
        (
            [
                {
                    "match": {"prefix": "/"},
                    "requires": {"requires_any": {"requirements": [{"provider_name": "corp"}, {"allow_missing": {}}]}},
                }
            ],
            False,
        ),
        ([{"match": {"path": "/other"}, "requires": {"allow_missing": {}}}], True),
        ([{"match": {"prefix": "/"}, "requirement_name": "r"}], True),
    ],
)
def test_a_token_is_required_where_the_rules_say_so_or_say_more_than_is_understood(
    bootstrap: dict[str, Any], rules: list[Any], required: bool
) -> None:
    changed = copy.deepcopy(bootstrap)
    manager(changed)["http_filters"][1]["typed_config"]["rules"] = rules
    jwt = judging.judge(changed).file.listeners[0].jwt
    assert jwt is not None
    assert jwt.required is required
