"""Two implementations of protobuf, one wire: what either writes the other reads, of every message that crosses it.

On one side protobuf's own classes, which the gateway reads with; on the other betterproto2's, which the example control
plane writes with: envoy_data_plane's for what is Envoy's, encoders_second for what is Arion's.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import betterproto2
import encoders_random
import encoders_second
import pytest
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arion_tds.pb import mcp_gateway_pb2 as pb
from control_plane_example import documents, wire
from control_plane_example.snapshot import Held
from control_plane_example.subscription import Ask, Outgoing

ARION = sorted(pb.DESCRIPTOR.message_types_by_name)
DISCOVERY = ("DeltaDiscoveryRequest", "DeltaDiscoveryResponse")
ENVOY = (
    *(f"envoy.service.discovery.v3.{name}" for name in DISCOVERY),
    *(message.DESCRIPTOR.full_name for message in documents.ENVOY.values()),
    "envoy.extensions.filters.http.router.v3.Router",
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
    "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
RESOURCES = st.dictionaries(TEXT, st.tuples(TEXT, st.binary(max_size=50)), max_size=4)


def first(name: str) -> type[Message]:
    """The class of protobuf for a message of ours or of Envoy's."""
    full = f"{pb.DESCRIPTOR.package}.{name}" if name in ARION else name
    return GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(full))


def second(name: str) -> type[betterproto2.Message]:
    """betterproto2's."""
    if name in ARION:
        return encoders_second.ALL[name]
    package, _, own = name.rpartition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: type[betterproto2.Message] = getattr(importlib.import_module(f"envoy_data_plane.{package}"), own)
    return found


def not_understood(value: Any) -> bytes:
    """What the message, and those in it, kept without knowing what it is."""
    if isinstance(value, dict):
        return b"".join(not_understood(one) for one in value.values())
    if isinstance(value, list):
        return b"".join(not_understood(one) for one in value)
    if not isinstance(value, betterproto2.Message):
        return b""
    inner = (getattr(value, name) for name in value._betterproto.meta_by_field_name)
    return value._unknown_fields + b"".join(not_understood(one) for one in inner)


def fields(ours: Descriptor, theirs: type[betterproto2.Message], seen: set[str]) -> None:
    """Every field of ours is there under its number and name, alike in kind; and so in all messages within."""
    if ours.full_name in seen or ours.full_name.startswith("google.protobuf."):
        return
    seen.add(ours.full_name)
    known = {meta.number: (name, meta) for name, meta in theirs._betterproto.meta_by_field_name.items()}
    for field in ours.fields:
        where = f"{ours.full_name}.{field.name}"
        name, meta = known[field.number]
        assert name == field.name, where
        mapped = field.message_type is not None and field.message_type.GetOptions().map_entry
        assert meta.repeated == (field.is_repeated and not mapped), where
        group = field.containing_oneof
        assert meta.group == (None if group is None or _synthetic(group) else group.name), where
        if field.message_type is not None and not mapped and meta.unwrap is None:
            fields(field.message_type, theirs._betterproto.cls_by_field[name], seen)


def _synthetic(group: Any) -> bool:
    return [f"_{field.name}" for field in group.fields] == [group.name]  # how protoc writes `optional` down


@pytest.mark.parametrize("name", [*ARION, *ENVOY])
def test_every_field_has_its_name_and_number_in_both(name: str) -> None:
    fields(first(name).DESCRIPTOR, second(name), set())


def test_nothing_of_ours_is_missing_in_the_second_and_nothing_is_there_beside_it() -> None:
    assert sorted(encoders_second.ALL) == ARION
    for name in ARION:
        numbers = {meta.number for meta in second(name)._betterproto.meta_by_field_name.values()}
        assert numbers == set(first(name).DESCRIPTOR.fields_by_number), name


@pytest.mark.parametrize("name", [*ARION, *ENVOY])
@pytest.mark.filterwarnings("ignore:.* is deprecated:DeprecationWarning")  # fields that Envoy has given up
@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_what_one_writes_the_other_reads_and_back(name: str, data: st.DataObject) -> None:
    ours = data.draw(encoders_random.of(first(name)))
    theirs = second(name).parse(ours.SerializeToString())
    assert not_understood(theirs) == b""
    assert first(name).FromString(bytes(theirs)) == ours


@given(RESOURCES, st.lists(TEXT, max_size=4), TEXT, TEXT)
@settings(deadline=None)
def test_a_response_carries_what_was_sent(
    resources: dict[str, tuple[str, bytes]], removed: list[str], type_url: str, nonce: str
) -> None:
    sent = tuple((name, Held(version, payload)) for name, (version, payload) in resources.items())
    outgoing, encoder = Outgoing(type_url, nonce, sent, tuple(removed)), wire.Encoder("me")
    message = wire.response(outgoing, "me")
    read = discovery_pb2.DeltaDiscoveryResponse.FromString(wire.encode(message))
    for _ in ("encoded", "remembered"):
        assert discovery_pb2.DeltaDiscoveryResponse.FromString(encoder.response(outgoing)) == read
    assert (read.type_url, read.nonce, list(read.removed_resources)) == (type_url, nonce, removed)
    assert {one.name: (one.version, one.resource.value) for one in read.resources} == resources
    assert {one.resource.type_url for one in read.resources} <= {type_url}


@given(
    st.tuples(TEXT, st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=4)),
    st.dictionaries(TEXT, TEXT, max_size=4),
    TEXT,
    st.none() | TEXT.filter(bool),
)
@settings(deadline=None)
def test_a_request_says_what_it_said_the_reason_of_a_nack_included(
    asked: tuple[str, list[str], list[str]], versions: dict[str, str], nonce: str, reason: str | None
) -> None:
    type_url, more, less = asked
    request = discovery_pb2.DeltaDiscoveryRequest(
        type_url=type_url,
        resource_names_subscribe=more,
        resource_names_unsubscribe=less,
        initial_resource_versions=versions,
        response_nonce=nonce,
    )
    if reason is not None:
        request.error_detail.code = 3
        request.error_detail.message = reason
    read = wire.ask(wire.parse(request.SerializeToString()))
    assert read == Ask(type_url, tuple(more), tuple(less), versions, nonce, reason)
