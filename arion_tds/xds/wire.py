"""Protobuf and gRPC on one side, values on the other.

In: `Request`s and settings. Out: DeltaDiscoveryRequest bytes, the entries of a DeltaDiscoveryResponse, a channel.
Called by xds.stream. The resources' own payloads are carried as bytes; decode reads them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Final, Literal

import grpc
import grpc.aio
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.message import DecodeError

import arion_tds
from arion_tds.xds.subscription import Request

METHOD: Final = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"

SPARING_KEEPALIVE: Final = 300.0
"""Seconds between pings that every server permits (gRPC's default minimum)."""

_INVALID_ARGUMENT: Final = 3
_USER_AGENT: Final = "arion-tds"


@dataclasses.dataclass(frozen=True, slots=True)
class AdsSettings:
    """How to reach the control plane. Times in seconds, sizes in bytes.

    `keepalive_time`: a connection without traffic is pinged this often, and given up after another `keepalive_timeout`
    without an answer, so that a frozen control plane is noticed in seconds. Servers that do not permit pings this often
    (gRPC's default is one in 300 s) end the stream with `too_many_pings`: it is then opened again, once, with
    300 s between pings, and stays so for the life of the client.
    `max_unanswered`: responses in hand before reading stops. `clusters`: ask for Clusters and their endpoints too.
    `credentials` are asked for at each connection, since their files may be rotated; None: plain text. `server_name` is
    asked for and verified instead of the host. `worker`: which of the processes of the same node this one is (told as
    metadata of the node); None: there is only one.
    """

    address: str
    node_id: str
    node_cluster: str = "arion"
    subscription: Literal["wildcard", "scope"] = "wildcard"
    initial_fetch_timeout: float = 15.0
    connect_timeout: float = 10.0
    keepalive_time: float = 10.0
    keepalive_timeout: float = 5.0
    max_message_bytes: int = 64 * 1024 * 1024
    backoff_base: float = 1.0
    backoff_max: float = 30.0
    max_unanswered: int = 16
    clusters: bool = False
    server_name: str | None = None
    credentials: Callable[[], grpc.ChannelCredentials] | None = None
    worker: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Response:
    """A DeltaDiscoveryResponse, its entries not yet read. `size` in bytes."""

    type_url: str
    nonce: str
    size: int
    message: discovery_pb2.DeltaDiscoveryResponse


def options(settings: AdsSettings, keepalive_time: float) -> list[tuple[str, int]]:
    """GRPC's channel arguments."""
    timeout = round(settings.keepalive_timeout * 1000)
    return [
        ("grpc.keepalive_time_ms", round(keepalive_time * 1000)),
        ("grpc.keepalive_timeout_ms", timeout),
        ("grpc.keepalive_permit_without_calls", 1),
        # Without these two a frozen server is noticed after a minute, whatever the keepalive says.
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.ping_timeout_ms", timeout),
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        # The first request of a reconnect names every version in use: its size is the catalog's, not ours to limit.
        ("grpc.max_send_message_length", -1),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_retries", 0),
        # Nor through a proxy of the environment: what the config names is where the catalog comes from.
        ("grpc.enable_http_proxy", 0),
    ]


def channel(settings: AdsSettings, keepalive_time: float) -> grpc.aio.Channel:
    """A new channel; nothing is shared with earlier ones, so that no old backoff delays it."""
    arguments: list[tuple[str, int | str]] = [*options(settings, keepalive_time)]
    if settings.credentials is None:
        return grpc.aio.insecure_channel(settings.address, arguments)
    if settings.server_name is not None:
        arguments.append(("grpc.ssl_target_name_override", settings.server_name))
    return grpc.aio.secure_channel(settings.address, settings.credentials(), arguments)


def pings_refused(error: grpc.aio.AioRpcError) -> bool:
    """Whether the server ended the connection since it was pinged more often than it permits (ENHANCE_YOUR_CALM)."""
    said = f"{error.details()} {error.debug_error_string()}".lower().replace("_", " ")
    return "too many pings" in said or "enhance your calm" in said or "http2 error:11" in said


def encode(request: Request, settings: AdsSettings) -> bytes:
    """The request's bytes; with the node when it is the first of a stream."""
    message = discovery_pb2.DeltaDiscoveryRequest(
        type_url=request.kind.value,
        resource_names_subscribe=request.subscribe,
        resource_names_unsubscribe=request.unsubscribe,
        response_nonce=request.nonce,
    )
    if request.versions:
        message.initial_resource_versions.update(request.versions)
    if request.error:
        message.error_detail.code = _INVALID_ARGUMENT
        # A problem may quote what is not text, such as half a surrogate pair: protobuf would refuse to send it.
        message.error_detail.message = request.error.encode(errors="replace").decode()
    if request.scopes is not None:
        node = message.node
        node.id = settings.node_id
        node.cluster = settings.node_cluster
        node.user_agent_name = _USER_AGENT
        node.user_agent_version = arion_tds.__version__
        node.metadata.get_or_create_list("scopes").extend(request.scopes)
        if settings.worker is not None:
            node.metadata["worker"] = settings.worker
    return bytes(message.SerializeToString())


def parse(raw: bytes) -> Response | str:
    """The response, or why the bytes are not one."""
    try:
        message = discovery_pb2.DeltaDiscoveryResponse.FromString(raw)
    except DecodeError as error:
        return f"a response of {len(raw)} bytes is not a DeltaDiscoveryResponse: {error}"
    return Response(message.type_url, message.nonce, len(raw), message)


def resources(response: Response) -> Iterator[tuple[str, str, str | None, bytes]]:
    """Name, version, type URL (None: no content, a heartbeat) and payload of each resource."""
    for entry in response.message.resources:
        name = entry.name or entry.resource_name.name
        if entry.HasField("resource"):
            content = entry.resource
            yield name, entry.version, content.type_url, content.value
        else:
            yield name, entry.version, None, b""


def removed(response: Response) -> Iterator[str]:
    """Each removed name, in either of the two fields that may say it."""
    yield from response.message.removed_resources
    for entry in response.message.removed_resource_names:
        yield entry.name


def errors(response: Response) -> Iterator[tuple[str, int, str]]:
    """Name, gRPC code and message of each resource that the server cannot give."""
    for entry in response.message.resource_errors:
        yield entry.resource_name.name, entry.error_detail.code, entry.error_detail.message
