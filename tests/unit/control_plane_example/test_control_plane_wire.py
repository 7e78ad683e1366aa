"""Two encoders, one wire: what we build with envoy_data_plane is what protobuf's classes read, and the other way."""

from __future__ import annotations

import datetime
import warnings

import pytest
from envoy.config.core.v3 import base_pb2
from envoy.config.route.v3 import route_components_pb2
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf import any_pb2

from arion_tds.pb import mcp_gateway_pb2 as pb
from control_plane_example import documents, wire
from control_plane_example.documents import Fault, Held
from control_plane_example.session import Declared
from control_plane_example.subscription import Ask, Outgoing

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from envoy_data_plane.envoy.config.core.v3 import DataSource
    from envoy_data_plane.envoy.config.route.v3 import RetryPolicy, RetryPolicyRetryBackOff


def encoded(kind: str, spec: dict[str, object]) -> Held:
    held = documents.encode(kind, spec)
    assert not isinstance(held, Fault), held
    return held


RBAC = {"action": "DENY", "permissions": [{"jwt_claim": {"field": "role", "value": "guest"}}]}


def rbac() -> pb.ToolRbac:
    made = pb.ToolRbac(action=pb.ToolRbac.DENY)
    made.permissions.add().jwt_claim.MergeFrom(pb.JwtClaimMatcher(field="role", value="guest"))
    return made


def test_a_tool_is_what_hand_written_assignments_make_of_it() -> None:
    held = encoded(
        "McpTool",
        {
            "namespace": "n", "name": "t", "description": "d", "embedding": [0.5, -1.25], "disclosure_mode": "EAGER",
            "inputSchema": {"inline_string": "{}"}, "output_schema": {"filename": "out.json"}, "rbac": RBAC,
            "rest_backend": {
                "method": "POST", "path": "/a/{{b}}", "cluster": "c", "bodyTemplate": {"inline_bytes": "eyJ9"},
                "query_params": [{"name": "q", "source": "a.b"}],
                "upstream_policy": {
                    "authority": "example.org", "timeout": "1.5s",
                    "retry_policy": {"retry_on": "5xx", "num_retries": 3, "per_try_timeout": "0.250s"},
                },
            },
        },
    )  # fmt: skip
    tool = pb.Tool(namespace="n", name="t", description="d", embedding=[0.5, -1.25], disclosure_mode=pb.EAGER)
    tool.input_schema.inline_string = "{}"
    tool.output_schema.filename = "out.json"
    tool.rbac.CopyFrom(rbac())
    rest = tool.rest_backend
    rest.method, rest.path, rest.cluster = "POST", "/a/{{b}}", "c"
    rest.body_template.inline_bytes = b'{"}'
    rest.query_params.add(name="q", source="a.b")
    rest.upstream_policy.authority = "example.org"
    rest.upstream_policy.timeout.FromTimedelta(datetime.timedelta(seconds=1.5))
    policy = rest.upstream_policy.retry_policy
    policy.retry_on = "5xx"
    policy.num_retries.value = 3
    policy.per_try_timeout.FromMilliseconds(250)
    assert pb.Tool.FromString(held.payload) == tool
    # The fields that are Envoy's, through the other implementation: the same bytes.
    assert bytes(DataSource(inline_string="{}")) == tool.input_schema.SerializeToString()
    assert bytes(DataSource(filename="out.json")) == tool.output_schema.SerializeToString()
    assert bytes(DataSource(inline_bytes=b'{"}')) == rest.body_template.SerializeToString()
    ours = RetryPolicy(retry_on="5xx", num_retries=3, per_try_timeout=datetime.timedelta(milliseconds=250))
    assert bytes(ours) == policy.SerializeToString()


def test_the_other_three_messages_are_what_hand_written_assignments_make_of_them() -> None:
    held = encoded(
        "McpOpenApiSource",
        {
            "spec": {"environment_variable": "SPEC"}, "namespace": "n", "cluster": "c", "path_prefix": "", "rbac": RBAC,
            "tool_disclosure_mode": 1, "skip_unsupported_operations": True, "include_operations": ["a"],
            "excludeOperations": ["b", "c"],
        },
    )  # fmt: skip
    source = pb.OpenApiToolSource(
        namespace="n", cluster="c", path_prefix="", rbac=rbac(), tool_disclosure_mode=pb.EAGER,
        skip_unsupported_operations=True, include_operations=["a"], exclude_operations=["b", "c"],
    )  # fmt: skip
    source.spec.environment_variable = "SPEC"
    read = pb.OpenApiToolSource.FromString(held.payload)
    assert read == source
    assert read.HasField("path_prefix")
    assert bytes(DataSource(environment_variable="SPEC")) == source.spec.SerializeToString()

    held = encoded(
        "McpDynamicServer",
        {"namespace": "n", "url": "http://u", "transport": "StreamableHttp", "cache_duration": "60s", "rbac": RBAC},
    )
    server = pb.DynamicMcpServer(
        namespace="n", url="http://u", transport=pb.McpServerBackend.StreamableHttp, rbac=rbac()
    )
    server.cache_duration.FromSeconds(60)
    assert pb.DynamicMcpServer.FromString(held.payload) == server

    spec = {"name": "k", "description": "d", "instructions": "i", "tools": [{"namespace": "a", "name": "b"}]}
    kit = pb.Toolkit(name="k", description="d", instructions="i", tools=[pb.ToolkitToolRef(namespace="a", name="b")])
    assert pb.Toolkit.FromString(encoded("McpToolkit", spec).payload) == kit


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (DataSource(inline_string="ü" * 300), base_pb2.DataSource(inline_string="ü" * 300)),
        (DataSource(inline_bytes=b""), base_pb2.DataSource(inline_bytes=b"")),
        (DataSource(), base_pb2.DataSource()),
    ],
)
def test_a_data_source_has_the_same_bytes_in_both(ours: DataSource, theirs: base_pb2.DataSource) -> None:
    assert bytes(ours) == theirs.SerializeToString()
    assert DataSource.parse(theirs.SerializeToString()) == ours


def test_a_retry_policy_has_the_same_bytes_in_both() -> None:
    ours = RetryPolicy(
        retry_on="reset,connect-failure",
        num_retries=0,
        retriable_status_codes=[502, 503],
        retry_back_off=RetryPolicyRetryBackOff(
            base_interval=datetime.timedelta(milliseconds=25), max_interval=datetime.timedelta(seconds=2)
        ),
    )
    theirs = route_components_pb2.RetryPolicy(retry_on="reset,connect-failure", retriable_status_codes=[502, 503])
    theirs.num_retries.value = 0
    theirs.retry_back_off.base_interval.FromMilliseconds(25)
    theirs.retry_back_off.max_interval.FromSeconds(2)
    # Field order on the wire is the encoder's choice; what is read from it is not.
    assert route_components_pb2.RetryPolicy.FromString(bytes(ours)) == theirs
    assert RetryPolicy.parse(theirs.SerializeToString()) == ours


def test_a_response_is_read_by_the_other_implementation() -> None:
    outgoing = Outgoing("type/T", "1-1", (("s/c/a", Held("v", b"\x0a\x01n")), ("s/c/b", Held("", b""))), ("s/c/x",))
    read = discovery_pb2.DeltaDiscoveryResponse.FromString(wire.encode(wire.response(outgoing, "me")))
    expected = discovery_pb2.DeltaDiscoveryResponse(type_url="type/T", nonce="1-1", removed_resources=["s/c/x"])
    expected.control_plane.identifier = "me"
    expected.resources.add(name="s/c/a", version="v", resource=any_pb2.Any(type_url="type/T", value=b"\x0a\x01n"))
    expected.resources.add(name="s/c/b", resource=any_pb2.Any(type_url="type/T"))
    assert read == expected


def test_streams_that_are_sent_the_same_differ_in_the_nonce_alone_and_little_is_remembered() -> None:
    encoder = wire.Encoder("me")
    held = tuple((f"s/c/{number}", Held("v", bytes(wire.KEPT_BYTES // 4))) for number in range(8))
    outgoing = [Outgoing("type/T", f"{stream}-1", (one,)) for one in held for stream in (1, 2)]
    outgoing += [Outgoing("type/T", "n" * 200, held), Outgoing("type/T", "", held[:1])]
    for one in outgoing:
        assert wire.DeltaDiscoveryResponse.parse(encoder.response(one)) == wire.response(one, "me")
        assert sum(map(len, encoder._bodies.values())) == encoder._size <= wire.KEPT_BYTES


def test_a_request_of_the_other_implementation_is_read() -> None:
    request = discovery_pb2.DeltaDiscoveryRequest(
        type_url="type/T",
        resource_names_subscribe=["*"],
        resource_names_unsubscribe=["s/c/x"],
        initial_resource_versions={"s/c/a": "1", "s/c/b": ""},
        response_nonce="1-1",
    )
    request.node.id, request.node.cluster = "gateway-1", "edge"
    request.node.metadata.update({"scopes": ["s/c", "s/d"], "other": {"x": 1}})
    read = wire.parse(request.SerializeToString())
    assert wire.ask(read) == Ask("type/T", ("*",), ("s/c/x",), {"s/c/a": "1", "s/c/b": ""}, "1-1")
    assert wire.declared(read.node) == Declared("gateway-1", "edge", ("s/c", "s/d"))
    request.error_detail.code = 3
    assert wire.ask(wire.parse(request.SerializeToString())).error == "code 3 without a message"


@pytest.mark.parametrize(
    ("scopes", "read"), [([], ()), ("s/c", None), (None, None), ([1, "s/c", {}], ("s/c",)), ({"a": 1}, None)]
)
def test_scopes_that_are_no_list_narrow_nothing(scopes: object, read: tuple[str, ...] | None) -> None:
    request = discovery_pb2.DeltaDiscoveryRequest()
    request.node.metadata.update({"scopes": scopes})
    assert wire.declared(wire.parse(request.SerializeToString()).node).scopes == read
    assert wire.declared(None) == Declared()
