"""Whatever comes in, decoding answers with a value or a problem and never raises."""

from __future__ import annotations

import pytest
from decode_samples import SCOPE, mcp_tool, rest_tool, server, source, toolkit
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from arion_tds.decode.document import document
from arion_tds.decode.gateway import gateway
from arion_tds.decode.rules import INLINE_ONLY
from arion_tds.decode.table import decode
from arion_tds.model.delivery import CATALOG, Kind, ResourceId
from arion_tds.pb import mcp_gateway_pb2 as pb

PAYLOADS = [message.SerializeToString() for message in (rest_tool(), mcp_tool(), source(), server(), toolkit())]
FIELDS = sorted(
    {
        spelling
        for message in pb.DESCRIPTOR.message_types_by_name.values()
        for field in message.fields
        for spelling in (field.name, field.json_name)
    }
    | {"retry_on", "retry_back_off", "inline_string", "filename", "typed_config", "name"}
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["1s", "EAGER"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("kind", list(CATALOG))
@settings(max_examples=25, deadline=None)
@given(payload=st.sampled_from(PAYLOADS), at=st.integers(0, 200), byte=st.integers(0, 255), name=st.text(max_size=8))
def test_a_broken_payload_is_a_value_or_one_problem(kind: Kind, payload: bytes, at: int, byte: int, name: str) -> None:
    at %= len(payload)
    broken = payload[:at] + bytes([byte]) + payload[at + 1 :]
    decoded = decode(kind, ResourceId(SCOPE, name), broken, INLINE_ONLY)
    assert (decoded.value is None) != (decoded.problem is None)


@settings(max_examples=40, deadline=None)
@given(block=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5))
def test_a_random_block_is_a_gateway_or_problems(block: dict[str, object]) -> None:
    made, problems, _ = gateway(block, INLINE_ONLY, "x")
    assert (made is None) == bool(problems)


@settings(max_examples=40, deadline=None)
@given(kind=st.sampled_from(["McpTool", "McpOpenApiSource", "McpDynamicServer", "McpToolkit"]), spec=JSON)
def test_a_random_document_is_a_document_or_problems(kind: str, spec: object) -> None:
    made, problems = document(
        {"apiVersion": "ctl.arion.io/v1alpha1", "kind": kind, "metadata": {"name": "a/b/c.d"}, "spec": spec}
    )
    assert (made is None) == bool(problems)


def test_a_walk_over_a_block_makes_the_message_that_the_library_makes() -> None:
    tool = rest_tool()
    tool.rest_backend.upstream_policy.retry_policy.num_retries.value = 3
    tool.rest_backend.upstream_policy.timeout.FromSeconds(2)
    tool.embedding.extend([1.0, 0.5])
    for preserving in (True, False):
        spec = json_format.MessageToDict(tool, preserving_proto_field_name=preserving)
        made, problems = document(
            {"apiVersion": "ctl.arion.io/v1alpha1", "kind": "McpTool", "metadata": {"name": "a/b/c.d"}, "spec": spec}
        )
        assert problems == []
        assert made is not None
        assert pb.Tool.FromString(made.payload) == tool
