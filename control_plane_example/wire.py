"""Discovery messages as envoy_data_plane's dataclasses, and the plain values that the pure modules work with.

In: bytes of DeltaDiscoveryRequest, values to send. Out: `Ask`, bytes of DeltaDiscoveryResponse.
Called by server and mock; the only module that imports envoy_data_plane (0.5 s, and warnings of its own).
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Final

with warnings.catch_warnings():
    # The generated classes use a pydantic spelling that newer versions of pydantic warn about.
    warnings.simplefilter("ignore")
    from envoy_data_plane.envoy.config.core.v3 import ControlPlane as ControlPlaneId
    from envoy_data_plane.envoy.config.core.v3 import Node
    from envoy_data_plane.envoy.service.discovery.v3 import (
        DeltaDiscoveryRequest,
        DeltaDiscoveryResponse,
        Resource,
    )
    from envoy_data_plane.google.protobuf import Any as ProtoAny
    from envoy_data_plane.google.rpc import Status

from control_plane_example.session import Declared
from control_plane_example.subscription import Ask, Outgoing

__all__ = [
    "DeltaDiscoveryRequest",
    "DeltaDiscoveryResponse",
    "Encoder",
    "Node",
    "ProtoAny",
    "Resource",
    "Status",
    "ask",
    "declared",
    "encode",
    "parse",
    "response",
]

SERVICE: Final = "envoy.service.discovery.v3.AggregatedDiscoveryService"
METHOD: Final = "DeltaAggregatedResources"

KEPT_BYTES: Final = 8 << 20
"""Of responses that are remembered encoded."""
_NONCE: Final = b"\x2a"  # field 5 of DeltaDiscoveryResponse, length-delimited


def parse(data: bytes) -> DeltaDiscoveryRequest:
    """A request from its bytes; raises ValueError and the like for bytes that are none (gRPC ends the stream)."""
    return DeltaDiscoveryRequest.parse(data)


def encode(message: DeltaDiscoveryResponse) -> bytes:
    """The response's bytes."""
    return bytes(message)


class Encoder:
    """Outgoing → bytes. What many streams are sent alike is encoded once: only the nonce is each one's own.

    Encoding is nearly all of what a change costs per stream. Belongs to one event loop.
    """

    def __init__(self, identifier: str) -> None:
        """`identifier` names this control plane in every response."""
        self._identifier = identifier
        self._bodies: dict[tuple[object, ...], bytes] = {}  # oldest first
        self._size = 0

    def response(self, outgoing: Outgoing) -> bytes:
        """The message's bytes."""
        content = (outgoing.type_url, outgoing.resources, outgoing.removed)
        body = self._bodies.get(content)
        if body is None:
            body = encode(response(dataclasses.replace(outgoing, nonce=""), self._identifier))
            self._keep(content, body)
        nonce = outgoing.nonce.encode()
        if not 0 < len(nonce) < 128:  # longer ones have a length of several bytes, and are nobody's
            return encode(response(outgoing, self._identifier))
        # Fields of a message may stand in any order, so the last one can be added to the others' bytes.
        return b"".join((body, _NONCE, bytes((len(nonce),)), nonce))

    def _keep(self, content: tuple[object, ...], body: bytes) -> None:
        if len(body) > KEPT_BYTES:
            return
        self._bodies[content] = body
        self._size += len(body)
        while self._size > KEPT_BYTES:
            self._size -= len(self._bodies.pop(next(iter(self._bodies))))


def ask(request: DeltaDiscoveryRequest) -> Ask:
    """What the request says about one type, as values."""
    error = request.error_detail
    return Ask(
        type_url=request.type_url,
        subscribe=tuple(request.resource_names_subscribe),
        unsubscribe=tuple(request.resource_names_unsubscribe),
        versions=request.initial_resource_versions,
        nonce=request.response_nonce,
        error=None if error is None else (error.message or f"code {error.code} without a message"),
    )


def declared(node: Node | None) -> Declared:
    """Who opened the stream: id, cluster (the fleet), and the scopes of `node.metadata.scopes` if it lists them."""
    if node is None:
        return Declared()
    scopes: tuple[str, ...] | None = None
    if node.metadata is not None:
        value = node.metadata.fields.get("scopes")
        if value is not None and value.list_value is not None:
            entries = [entry.string_value for entry in value.list_value.values]
            scopes = tuple(entry for entry in entries if entry)
    return Declared(node_id=node.id, cluster=node.cluster, scopes=scopes)


def response(outgoing: Outgoing, identifier: str) -> DeltaDiscoveryResponse:
    """The message for `outgoing`; `identifier` names this control plane in it."""
    type_url = outgoing.type_url
    return DeltaDiscoveryResponse(
        type_url=type_url,
        nonce=outgoing.nonce,
        resources=[
            Resource(name=name, version=held.version, resource=ProtoAny(type_url=type_url, value=held.payload))
            for name, held in outgoing.resources
        ],
        removed_resources=list(outgoing.removed),
        control_plane=ControlPlaneId(identifier=identifier),
    )
