"""What many tools repeat is held once."""

from __future__ import annotations

from decode_samples import SCOPE, a_tool, rest, rest_tool

from arion_tds.decode.rules import INLINE_ONLY
from arion_tds.decode.table import decode
from arion_tds.model.backend import RestBackend
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.pb import mcp_gateway_pb2 as pb


def guarded(message: pb.Tool) -> None:
    claim = message.rbac.permissions.add().jwt_claim
    claim.field, claim.value = "role", "reader"
    message.rest_backend.upstream_policy.timeout.seconds = 7
    message.rest_backend.upstream_policy.retry_policy.retry_on = "5xx"


def test_equal_policies_cluster_and_namespace_of_two_tools_are_the_same_objects() -> None:
    one, other = a_tool(rest(guarded)), a_tool(rest(guarded))
    assert one.rbac is not None
    assert one.rbac is other.rbac
    assert one.namespace is other.namespace
    assert isinstance(one.backend, RestBackend)
    assert isinstance(other.backend, RestBackend)
    assert one.backend.policy.retry is not None
    assert one.backend.policy is other.backend.policy
    assert one.backend.cluster is other.backend.cluster
    assert one.backend.method is other.backend.method


def test_a_tool_keeps_the_string_of_its_resource_name() -> None:
    name = ".".join(("weather", "get_forecast"))
    decoded = decode(Kind.TOOL, ResourceId(SCOPE, name), rest_tool().SerializeToString(), INLINE_ONLY)
    assert a_tool(decoded).qualified is name
