"""A plain delta xDS client on xds-protos' stubs: the other encoder of the wire. Nothing of it is ours but the glue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Self

import grpc
import grpc.aio
from envoy.service.discovery.v3 import ads_pb2_grpc, discovery_pb2

PREFIX = "type.googleapis.com/arion.extensions.filters.http.mcp.mcp_gateway.v3."
TOOL = PREFIX + "Tool"
OPTIONS = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20)]


class Client:
    """One stream. Requests are written as told, responses are read one by one and never answered unasked."""

    def __init__(self, address: str, options: Iterable[tuple[str, int]] = ()) -> None:
        self.channel = grpc.aio.insecure_channel(address, options=[*OPTIONS, *options])
        self.call: Any = ads_pb2_grpc.AggregatedDiscoveryServiceStub(self.channel).DeltaAggregatedResources()
        self.said_hello = False

    async def ask(
        self,
        type_url: str,
        *subscribe: str,
        unsub: tuple[str, ...] = (),
        have: dict[str, str] | None = None,
        nonce: str = "",
        error: str | None = None,
        cluster: str = "arion",
        scopes: list[str] | None = None,
    ) -> Self:
        request = discovery_pb2.DeltaDiscoveryRequest(
            type_url=type_url,
            resource_names_subscribe=subscribe,
            resource_names_unsubscribe=unsub,
            initial_resource_versions=have or {},
            response_nonce=nonce,
        )
        if not self.said_hello:
            self.said_hello = True
            request.node.id = "client-1"
            request.node.cluster = cluster
            if scopes is not None:
                request.node.metadata.update({"scopes": scopes})
        if error is not None:
            request.error_detail.code = 3
            request.error_detail.message = error
        await self.call.write(request)
        return self

    async def read(self) -> discovery_pb2.DeltaDiscoveryResponse:
        async with asyncio.timeout(10):
            response = await self.call.read()
        assert response is not grpc.aio.EOF, await self.status()
        return response

    async def reads(self) -> list[str]:
        """The next response, ACKed: `name@version` and `-name`."""
        response = await self.read()
        await self.ask(response.type_url, nonce=response.nonce)
        return [f"{each.name}@{each.version}" for each in response.resources] + [
            f"-{name}" for name in response.removed_resources
        ]

    async def silent(self, cp: Any, type_url: str = TOOL) -> None:
        """Nothing is on its way: a question that is answered at once is the next thing that is answered."""
        await self.ask(type_url, "no/such/name")
        assert await self.reads() == ["-no/such/name"]
        await self.ask(type_url, unsub=("no/such/name",))

    async def status(self) -> tuple[grpc.StatusCode, str]:
        async with asyncio.timeout(10):
            return await self.call.code(), await self.call.details()

    async def close(self) -> None:
        self.call.cancel()
        await self.channel.close()
