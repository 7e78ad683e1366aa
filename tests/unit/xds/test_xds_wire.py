import grpc
from envoy.service.discovery.v3 import discovery_pb2

from arion_tds import __version__
from arion_tds.model.delivery import Kind
from arion_tds.xds import wire
from arion_tds.xds.subscription import Request

SETTINGS = wire.AdsSettings("127.0.0.1:1", "node-7", node_cluster="blue")


def decoded(request: Request) -> discovery_pb2.DeltaDiscoveryRequest:
    return discovery_pb2.DeltaDiscoveryRequest.FromString(wire.encode(request, SETTINGS))


def test_the_first_request_of_a_stream_carries_the_node_with_its_scopes() -> None:
    message = decoded(Request(Kind.TOOL, subscribe=("*",), versions={"a/b/x": "1"}, scopes=("a/b", "c/d")))
    assert (message.node.id, message.node.cluster) == ("node-7", "blue")
    assert (message.node.user_agent_name, message.node.user_agent_version) == ("arion-tds", __version__)
    assert list(message.node.metadata["scopes"]) == ["a/b", "c/d"]
    assert message.type_url == Kind.TOOL.value
    assert list(message.resource_names_subscribe) == ["*"]
    assert dict(message.initial_resource_versions) == {"a/b/x": "1"}
    assert not message.HasField("error_detail")


def test_a_later_request_carries_no_node() -> None:
    message = decoded(Request(Kind.TOOL, nonce="n1"))
    assert not message.HasField("node")
    assert message.response_nonce == "n1"


def test_a_nack_is_an_invalid_argument() -> None:
    message = decoded(Request(Kind.TOOL, nonce="n1", error="a/b/x: bad"))
    assert message.error_detail.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert message.error_detail.message == "a/b/x: bad"


def test_a_reason_that_is_not_text_is_still_sent() -> None:
    assert decoded(Request(Kind.TOOL, nonce="n1", error="bad \ud800")).error_detail.message == "bad ?"


def test_unsubscribed_names_have_their_field() -> None:
    message = decoded(Request(Kind.TOOL, unsubscribe=("a/b/*",)))
    assert list(message.resource_names_unsubscribe) == ["a/b/*"]
    assert list(message.resource_names_subscribe) == []


def test_a_response_is_read_entry_by_entry() -> None:
    message = discovery_pb2.DeltaDiscoveryResponse(type_url="t", nonce="n")
    full = message.resources.add(name="a/b/x", version="1", aliases=["ignored"])
    full.resource.type_url, full.resource.value = "t", b"\x01"
    message.resources.add(name="a/b/y", version="2").ttl.seconds = 5
    message.resources.add(version="3").resource_name.name = "a/b/z"
    message.removed_resources.append("a/b/u")
    message.removed_resource_names.add(name="a/b/v")
    error = message.resource_errors.add()
    error.resource_name.name, error.error_detail.code, error.error_detail.message = "a/b/w", 5, "gone"
    response = wire.parse(message.SerializeToString())
    assert isinstance(response, wire.Response)
    assert (response.type_url, response.nonce) == ("t", "n")
    assert list(wire.resources(response)) == [
        ("a/b/x", "1", "t", b"\x01"),
        ("a/b/y", "2", None, b""),
        ("a/b/z", "3", None, b""),
    ]
    assert list(wire.removed(response)) == ["a/b/u", "a/b/v"]
    assert list(wire.errors(response)) == [("a/b/w", 5, "gone")]


def test_bytes_that_are_no_response_are_a_sentence() -> None:
    problem = wire.parse(b"\xff\xff\xff")
    assert isinstance(problem, str)
    assert "3 bytes is not a DeltaDiscoveryResponse" in problem
