"""OpenAPI sources, MCP servers and toolkits: one test for every rule of the contract."""

from __future__ import annotations

import pytest
from decode_samples import SCOPE, a_server, a_source, a_toolkit, deliver, server, source, toolkit, why
from google.protobuf.message import Message

from arion_tds.decode.rules import INLINE_ONLY
from arion_tds.decode.table import decode
from arion_tds.model.delivery import CATALOG, Kind, ResourceId
from arion_tds.model.policy import HttpPolicy
from arion_tds.model.rbac import Permission, Rbac
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.toolkit import Toolkit
from arion_tds.pb import mcp_gateway_pb2 as pb


@pytest.mark.parametrize("kind", list(CATALOG))
def test_bytes_that_are_no_message_are_refused(kind: Kind) -> None:
    decoded = decode(kind, ResourceId(SCOPE, "a.b"), b"\xff\xff", INLINE_ONLY)
    assert why(decoded) == f"cannot be decoded as {kind.short}"


def test_a_source_becomes_a_value_with_all_that_it_says() -> None:
    message = source()
    message.upstream_policy.timeout.FromSeconds(3)
    message.rbac.permissions.add().jwt_claim.CopyFrom(pb.JwtClaimMatcher(field="group", value="staff"))
    message.tool_disclosure_mode = pb.EAGER
    message.path_prefix = "/v2"
    message.skip_unsupported_operations = True
    message.include_operations.append("listPets")
    message.exclude_operations.append("dropPets")
    decoded = deliver(message, "pets")

    assert decoded.warnings == ()
    assert a_source(decoded) == OpenApiSource(
        namespace="pets",
        document=b'{"openapi":"3.1.0"}',
        cluster="pets_api",
        policy=HttpPolicy(timeout=3.0),
        rbac=Rbac(deny=False, permissions=(Permission("group", "staff"),)),
        eager=True,
        path_prefix="/v2",
        skip_unsupported=True,
        include=("listPets",),
        exclude=("dropPets",),
    )


def test_a_path_prefix_that_is_set_and_empty_is_not_one_that_is_unset() -> None:
    message = source()
    assert a_source(deliver(message, "pets")).path_prefix is None
    message.path_prefix = ""
    assert a_source(deliver(message, "pets")).path_prefix == ""


def test_a_server_becomes_a_value_with_all_that_it_says() -> None:
    message = server()
    message.description = "Notes"
    message.cache_duration.FromSeconds(60)
    message.rbac.action = pb.ToolRbac.DENY
    message.rbac.permissions.add().jwt_header.CopyFrom(pb.JwtHeaderMatcher(field="key_id", value="old"))
    message.tool_disclosure_mode = pb.EAGER
    decoded = deliver(message, "notes")

    assert decoded.warnings == ()
    assert a_server(decoded) == McpServer(
        namespace="notes",
        description="Notes",
        url="https://notes.test/mcp",
        cache_duration=60.0,
        rbac=Rbac(deny=True, permissions=(Permission("key_id", "old", header=True),)),
        eager=True,
    )


def test_a_toolkit_becomes_a_value_with_qualified_names() -> None:
    decoded = deliver(toolkit(), "trip")
    assert decoded.warnings == ()
    assert a_toolkit(decoded) == Toolkit(
        name="trip",
        description="Plan a trip",
        instructions="Look at the weather first.",
        tools=("weather.get_forecast", "maps.route"),
    )


@pytest.mark.parametrize("message", [source(), server()], ids=["source", "server"])
def test_the_resource_name_wins_over_the_payloads_namespace_with_a_warning(message: Message) -> None:
    decoded = deliver(message, "other")
    value = decoded.value
    assert isinstance(value, OpenApiSource | McpServer)
    assert value.namespace == "other"
    (warning,) = decoded.warnings
    assert warning.endswith("not the resource name: 'other' is used")


def test_the_resource_name_wins_over_a_toolkits_name() -> None:
    assert a_toolkit(deliver(toolkit(), "other/one")).name == "other/one"


@pytest.mark.parametrize("message", [source(), server()], ids=["source", "server"])
@pytest.mark.parametrize("namespace", ["a b", "a\tb", "ä", "x" * 129])
def test_a_namespace_that_no_valid_name_could_begin_with_is_refused(message: Message, namespace: str) -> None:
    assert "namespace cannot be served: name " in why(deliver(message, namespace))


def test_a_namespace_with_unusual_characters_is_served_with_a_warning() -> None:
    decoded = deliver(source(), "team/pets")
    assert a_source(decoded).namespace == "team/pets"
    assert any("outside [A-Za-z0-9_.-]" in warning for warning in decoded.warnings)


def test_a_source_without_document_or_cluster_is_refused() -> None:
    message = source()
    message.ClearField("spec")
    message.ClearField("cluster")
    assert why(deliver(message, "pets")).split("; ") == [
        "spec is missing: it is required",
        "cluster is empty: it is required",
    ]


def test_an_empty_operation_filter_is_refused() -> None:
    message = source()
    message.include_operations.extend(["a", ""])
    assert why(deliver(message, "pets")) == "include_operations[1] is empty: it is required"


def test_sources_and_servers_are_held_to_the_same_rbac_and_times_as_tools() -> None:
    message = source()
    message.rbac.SetInParent()
    message.upstream_policy.timeout.FromSeconds(0)
    refused = why(deliver(message, "pets"))
    assert "rbac.permissions is empty" in refused
    assert "upstream_policy.timeout is 0 s: it must be more than zero" in refused

    other = server()
    other.rbac.permissions.add()
    other.cache_duration.FromSeconds(-1)
    refused = why(deliver(other, "notes"))
    assert "rbac.permissions[0] names neither" in refused
    assert "cache_duration is -1 s: it must be more than zero" in refused


def test_a_server_without_url_is_refused() -> None:
    message = server()
    message.ClearField("url")
    assert why(deliver(message, "notes")) == "url is empty: it is required"


def test_a_server_over_sse_is_refused_and_the_reason_says_what_is_served() -> None:
    message = server()
    message.ClearField("transport")
    assert why(deliver(message, "notes")) == "transport is Sse (the default when unset): only StreamableHttp is served"


@pytest.mark.parametrize("count", [0, 1])
def test_a_toolkit_of_fewer_than_two_tools_is_refused(count: int) -> None:
    message = toolkit()
    del message.tools[count:]
    assert why(deliver(message, "trip")) == f"tools has {count} of at least two tools"


def test_a_toolkit_tool_without_namespace_or_name_is_refused() -> None:
    message = toolkit()
    message.tools[0].namespace = ""
    message.tools[1].name = ""
    assert why(deliver(message, "trip")).split("; ") == [
        "tools[0].namespace is empty: it is required",
        "tools[1].name is empty: it is required",
    ]


def test_a_tool_twice_in_a_toolkit_counts_once_with_a_warning() -> None:
    message = toolkit()
    message.tools.add().CopyFrom(message.tools[0])
    decoded = deliver(message, "trip")
    assert a_toolkit(decoded).tools == ("weather.get_forecast", "maps.route")
    assert decoded.warnings == ("tools[2] names 'weather.get_forecast' again",)
