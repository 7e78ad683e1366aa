"""Envoy's Cluster and ClusterLoadAssignment: what is served, what is refused by name, what is ignored with a word."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from envoy.config.cluster.v3.cluster_pb2 import Cluster as Message
from envoy.config.endpoint.v3.endpoint_pb2 import ClusterLoadAssignment
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2 as _tls  # noqa: F401 - known to the JSON parser
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2 as _http  # noqa: F401
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from arion_tds.decode import cluster as decoder
from arion_tds.decode.cluster import Judged
from arion_tds.decode.rules import INLINE_ONLY, DataRules
from arion_tds.model.cluster import Cluster, ClusterTls, HealthCheck, LbPolicy, Outlier, PushedCluster

TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def at(address: str, port: int = 80, **more: Any) -> dict[str, Any]:
    return {"endpoint": {"address": {"socket_address": {"address": address, "port_value": port}}}, **more}


def load(*endpoints: dict[str, Any], **group: Any) -> dict[str, Any]:
    return {"cluster_name": "c", "endpoints": [{"lb_endpoints": list(endpoints), **group}]}


def spec(**more: Any) -> dict[str, Any]:
    return {"name": "c", "type": "STATIC", "load_assignment": load(at("10.0.0.1")), **more}


def judge(value: dict[str, Any], rules: DataRules = INLINE_ONLY) -> Judged[PushedCluster]:
    message = json_format.ParseDict(value, Message())
    return decoder.cluster("c", message.SerializeToString(), rules)


def good(value: dict[str, Any], rules: DataRules = INLINE_ONLY) -> PushedCluster:
    judged = judge(value, rules)
    assert judged.problem is None, judged.problem
    assert judged.value is not None
    return judged.value


def refused(value: dict[str, Any], rules: DataRules = INLINE_ONLY) -> str:
    judged = judge(value, rules)
    assert judged.value is None
    assert judged.problem is not None
    assert judged.problem.where == "c"
    return judged.problem.why


def tls(**context: Any) -> dict[str, Any]:
    return {"name": "tls", "typed_config": {"@type": TLS, **context}}


def test_a_static_cluster_with_envoys_defaults() -> None:
    found = good(spec(load_assignment=load(at("10.0.0.1", 8080), at("::1"), at("10.0.0.1", 8080))))
    assert found == PushedCluster(
        Cluster(name="c", endpoints=("http://10.0.0.1:8080", "http://[::1]:80"), max_connections=1024, pushed=True)
    )


@pytest.mark.parametrize("kind", ["STRICT_DNS", "LOGICAL_DNS"])
def test_dns_clusters_name_hosts(kind: str) -> None:
    assert good(spec(type=kind, load_assignment=load(at("api.example")))).cluster.endpoints == (
        "http://api.example:80",
    )
    assert "10.0.0.1:80 is not a host name" in refused(spec(type=kind))
    assert "api.example:80 is not an IP address" in refused(spec(load_assignment=load(at("api.example"))))


def test_an_eds_cluster_says_under_which_name_its_endpoints_come() -> None:
    eds = {"name": "c", "type": "EDS", "eds_cluster_config": {"eds_config": {"ads": {}}}}
    assert good(eds).eds == "c"
    eds["eds_cluster_config"]["service_name"] = "weather/eu"  # type: ignore[index]
    found = good(eds)
    assert (found.eds, found.cluster.endpoints) == ("weather/eu", ())
    assert found.with_endpoints(("h:1",)).endpoints == ("http://h:1",)
    assert "`ads` or `self`" in refused({**eds, "eds_cluster_config": {"eds_config": {"path": "/x"}}})
    assert "must not be set" in refused({**eds, "load_assignment": load(at("10.0.0.1"))})
    assert "is for clusters of type EDS" in refused(spec(eds_cluster_config={"eds_config": {"ads": {}}}))


def test_policies_limits_checks_and_ejection() -> None:
    found = good(
        spec(
            connect_timeout="0.250s",
            lb_policy="LEAST_REQUEST",
            circuit_breakers={"thresholds": [{"max_requests": 7, "max_connections": 3}, {"priority": "HIGH"}]},
            health_checks=[
                {
                    "timeout": "1s",
                    "interval": "5s",
                    "unhealthy_threshold": 3,
                    "healthy_threshold": 2,
                    "http_health_check": {
                        "path": "/up",
                        "host": "h",
                        "expected_statuses": [{"start": 200, "end": 300}],
                    },
                }
            ],
            outlier_detection={"consecutive_5xx": 3, "base_ejection_time": "10s", "max_ejection_percent": 50},
        )
    ).cluster
    assert (found.connect_timeout, found.lb_policy) == (0.25, LbPolicy.LEAST_REQUEST)
    assert (found.max_requests, found.max_connections) == (7, 3)
    assert found.health_check == HealthCheck(
        path="/up", interval=5, timeout=1, unhealthy_threshold=3, healthy_threshold=2, host="h", statuses=((200, 300),)
    )
    assert found.outlier == Outlier(consecutive_5xx=3, base_ejection_time=10, max_ejection_percent=50)
    assert good(spec(outlier_detection={})).cluster.outlier == Outlier()
    assert good(spec(outlier_detection={"enforcing_consecutive_5xx": 0})).cluster.outlier is None


def test_tls_verifies_with_given_or_system_authorities_and_needs_a_name(tmp_path: Path) -> None:
    dns = {"type": "STRICT_DNS", "load_assignment": load(at("api.example", 443))}
    found = good(spec(**dns, transport_socket=tls(sni="other.example")))
    assert found.cluster.endpoints == ("https://api.example:443",)
    assert found.cluster.tls == ClusterTls(sni="other.example")
    assert any("system's" in warning for warning in judge(spec(**dns, transport_socket=tls())).warnings)
    common = {"validation_context": {"trusted_ca": {"inline_string": PEM}}}
    assert good(spec(**dns, transport_socket=tls(common_tls_context=common))).cluster.tls == ClusterTls(ca_data=PEM)
    assert "has no sni" in refused(spec(transport_socket=tls()))
    eds = {"name": "c", "type": "EDS", "eds_cluster_config": {"eds_config": {"ads": {}}}, "transport_socket": tls()}
    assert "has no sni" in refused(eds)

    file = tmp_path / "c.pem"
    file.write_text(PEM)
    certificate = {"certificate_chain": {"filename": str(file)}, "private_key": {"filename": str(file)}}
    own = {"tls_certificates": [certificate]}
    assert "does not allow" in refused(spec(**dns, transport_socket=tls(common_tls_context=own)))
    rules = DataRules(files=(str(file),), read_file=lambda path: Path(path).read_bytes())
    found = good(spec(**dns, transport_socket=tls(common_tls_context=own)), rules)
    assert found.cluster.tls == ClusterTls(cert_file=str(file), key_file=str(file))
    inline = {"tls_certificates": [{**certificate, "private_key": {"inline_string": "key"}}]}
    assert "must be a `filename`" in refused(spec(**dns, transport_socket=tls(common_tls_context=inline)), rules)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"lb_policy": "RING_HASH"}, "lb_policy RING_HASH is not supported"),
        ({"lb_policy": "MAGLEV"}, "MAGLEV"),
        ({"type": "ORIGINAL_DST", "load_assignment": None}, "ORIGINAL_DST"),
        ({"cluster_type": {"name": "x"}, "type": None}, "cluster_type is not supported"),
        ({"load_assignment": None}, "load_assignment is missing"),
        ({"load_assignment": {"cluster_name": "c"}}, "has no endpoints"),
        ({"load_assignment": load(at("10.0.0.1"), priority=1)}, "priority is not supported"),
        ({"load_assignment": load(at("10.0.0.1", load_balancing_weight=1), at("10.0.0.2", load_balancing_weight=9))},
         "different weights"),
        ({"load_assignment": load({"endpoint": {"address": {"pipe": {"path": "/s"}}}})}, "must be a socket_address"),
        ({"load_assignment": load(at("10.0.0.1", 0))}, "not a port"),
        ({"load_assignment": load(at("a b"))}, "neither an IP address nor a host name"),
        ({"load_assignment": load(at("h/../x"))}, "neither"),
        ({"load_assignment": load(at("user@h"))}, "neither"),
        ({"lb_subset_config": {"fallback_policy": "ANY_ENDPOINT"}}, "lb_subset_config is not supported"),
        ({"transport_socket_matches": [{"name": "x"}]}, "transport_socket_matches is not supported"),
        ({"upstream_bind_config": {"source_address": {"address": "10.0.0.9", "port_value": 0}}}, "bind_config"),
        ({"http2_protocol_options": {}}, "http2_protocol_options is not supported"),
        ({"typed_extension_protocol_options": {OPTIONS: {"@type": f"type.googleapis.com/{OPTIONS}",
         "explicit_http_config": {"http2_protocol_options": {}}}}}, "HTTP/1.1 is spoken"),
        ({"filters": [{"name": "x"}]}, "filters is not supported"),
        ({"connect_timeout": "0s"}, "connect_timeout is 0 s"),
        ({"circuit_breakers": {"thresholds": [{"max_requests": 0}]}}, "nothing could be asked"),
        ({"health_checks": [{"timeout": "1s", "interval": "1s", "unhealthy_threshold": 1, "healthy_threshold": 1,
          "tcp_health_check": {}}]}, "must be an http_health_check"),
        ({"health_checks": [{"http_health_check": {"path": "up"}}]}, "must begin with a slash"),
        ({"transport_socket": {"name": "x", "typed_config": {"@type":
          "type.googleapis.com/google.protobuf.Duration", "value": "1s"}}}, "only UpstreamTlsContext and RawBuffer"),
        ({"transport_socket": tls(auto_host_sni=True, sni="h")}, "auto_host_sni is not supported"),
        ({"transport_socket": tls(sni="h", common_tls_context={"validation_context": {
          "match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": "x"}}]}})}, "match_typed"),
        ({"transport_socket": tls(sni="h", common_tls_context={"tls_params": {
          "tls_minimum_protocol_version": "TLSv1_3"}})}, "tls_params is not supported"),
        ({"transport_socket": tls(sni="h", common_tls_context={"alpn_protocols": ["h2"]})}, "leave out http/1.1"),
    ],
)  # fmt: skip
def test_what_would_change_where_traffic_goes_or_how_safely_is_refused_by_name(more: dict[str, Any], said: str) -> None:
    value = copy.deepcopy({**spec(), **more})
    assert said in refused({key: one for key, one in value.items() if one is not None})


@pytest.mark.parametrize(
    "more",
    [
        {"alt_stat_name": "x"},
        {"common_lb_config": {"healthy_panic_threshold": {"value": 0}}},
        {"dns_lookup_family": "V4_ONLY"},
        {"outlier_detection": {"consecutive_gateway_failure": 3}},
        {"circuit_breakers": {"thresholds": [{"max_retries": 3}]}},
        {"load_assignment": load(at("10.0.0.1"), locality={"region": "eu"})},
    ],
)
def test_what_only_tunes_is_ignored_with_a_word(more: dict[str, Any]) -> None:
    judged = judge(spec(**more))
    assert judged.problem is None
    assert any("not supported: ignored" in warning for warning in judged.warnings), judged.warnings


def assigned(value: dict[str, Any], name: str = "c") -> Judged[tuple[str, ...]]:
    message = json_format.ParseDict(value, ClusterLoadAssignment())
    return decoder.assignment(name, message.SerializeToString(), INLINE_ONLY)


def test_endpoints_that_are_said_to_be_ill_are_left_out_and_none_are_fine() -> None:
    value = load(
        at("10.0.0.1"), at("10.0.0.2", health_status="UNHEALTHY"), at("10.0.0.3", health_status="DRAINING"),
        at("10.0.0.4", health_status="HEALTHY"), at("api.example", 8080),
    )  # fmt: skip
    assert assigned(value).value == ("10.0.0.1:80", "10.0.0.4:80", "api.example:8080")
    assert assigned({"cluster_name": "c"}).value == ()
    other = assigned({"cluster_name": "d"})
    assert (other.value, "resource name" in other.warnings[0]) == ((), True)
    assert assigned(load(at("10.0.0.1"), priority=1)).problem is not None


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_break_the_decoder(payload: bytes) -> None:
    for judged in (decoder.cluster("c", payload, INLINE_ONLY), decoder.assignment("c", payload, INLINE_ONLY)):
        assert (judged.value is None) is not (judged.problem is None)
