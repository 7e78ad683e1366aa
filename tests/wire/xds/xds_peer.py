"""The other end of the wire: a real gRPC server whose every word a test says, and a TCP proxy that can go silent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Self

import grpc
import grpc.aio
from envoy.service.discovery.v3 import discovery_pb2

from arion_tds.model.delivery import CATALOG, Kind

SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
PERMITTING = (("grpc.http2.min_ping_interval_without_data_ms", 1), ("grpc.http2.max_ping_strikes", 0))
LONGEST = 10.0
"""Seconds that any single wait of a test may take."""

_BIG = 64 * 1024 * 1024


class Stream:
    """One stream that a client opened. A test hears and says what it likes, then ends it."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.at = asyncio.get_running_loop().time()
        self.over: asyncio.Future[tuple[grpc.StatusCode, str]] = asyncio.get_running_loop().create_future()
        self.first: dict[Kind, discovery_pb2.DeltaDiscoveryRequest] = {}

    async def hears(self) -> discovery_pb2.DeltaDiscoveryRequest:
        async with asyncio.timeout(LONGEST):
            request = await self._context.read()
        assert isinstance(request, discovery_pb2.DeltaDiscoveryRequest), "the client ended the stream"
        return request

    async def greeted(self) -> Stream:
        """After the first request of every type."""
        for _ in CATALOG:
            request = await self.hears()
            self.first[Kind(request.type_url)] = request
        return self

    async def says(
        self, kind: Kind, nonce: str, updates: Mapping[str, str] | None = None, removed: Iterable[str] = ()
    ) -> None:
        """`updates`: version by name; the payload is the version."""
        await self.sends(response(kind, nonce, updates or {}, removed))

    async def sends(self, message: discovery_pb2.DeltaDiscoveryResponse | bytes) -> None:
        async with asyncio.timeout(LONGEST):
            await self._context.write(message)

    async def answers_all(self, nonce: str = "first") -> None:
        """An empty first response for every type, and the client's ACKs."""
        for kind in CATALOG:
            await self.says(kind, nonce)
        for _ in CATALOG:
            assert (await self.hears()).response_nonce == nonce

    def ends(self, code: grpc.StatusCode = grpc.StatusCode.OK, details: str = "") -> None:
        self.over.set_result((code, details))


def response(
    kind: Kind, nonce: str, updates: Mapping[str, str], removed: Iterable[str] = ()
) -> discovery_pb2.DeltaDiscoveryResponse:
    message = discovery_pb2.DeltaDiscoveryResponse(type_url=kind.value, nonce=nonce, removed_resources=removed)
    for name, version in updates.items():
        entry = message.resources.add(name=name, version=version)
        entry.resource.type_url, entry.resource.value = kind.value, version.encode()
    return message


def _bytes(message: discovery_pb2.DeltaDiscoveryResponse | bytes) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()


class Server:
    """Accepts streams. `options` are gRPC's; the default permits pings as often as one likes."""

    def __init__(self, options: Iterable[tuple[str, int]] = PERMITTING, credentials: Any = None) -> None:
        handler = grpc.stream_stream_rpc_method_handler(
            self._serve, discovery_pb2.DeltaDiscoveryRequest.FromString, _bytes
        )
        generic = grpc.method_handlers_generic_handler(SERVICE, {"DeltaAggregatedResources": handler})
        sizes = (("grpc.max_receive_message_length", _BIG), ("grpc.max_send_message_length", _BIG))
        self._server = grpc.aio.server(handlers=[generic], options=[*options, *sizes])
        if credentials is None:
            self.port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            self.port = self._server.add_secure_port("localhost:0", credentials)
        self._streams: asyncio.Queue[Stream] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(None)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def accepts(self) -> Stream:
        """The next stream that a client opens."""
        async with asyncio.timeout(LONGEST):
            return await self._streams.get()

    async def greeted(self) -> Stream:
        return await (await self.accepts()).greeted()

    async def _serve(self, _: object, context: Any) -> None:
        stream = Stream(context)
        self._streams.put_nowait(stream)
        code, details = await stream.over
        if code is not grpc.StatusCode.OK:
            await context.abort(code, details)


class Proxy:
    """Between client and server: passes bytes on until it freezes or resets."""

    def __init__(self) -> None:
        self._pass = asyncio.Event()
        self._pass.set()
        self._writers: list[asyncio.StreamWriter] = []
        self.port = 0

    def freeze(self) -> None:
        """Connections stay up, and nothing moves on them: a stopped process, or a cut cable."""
        self._pass.clear()

    def thaw(self) -> None:
        self._pass.set()

    def reset(self) -> None:
        """Every connection is reset (RST)."""
        for writer in self._writers:
            writer.transport.abort()

    @contextlib.asynccontextmanager
    async def before(self, port: int) -> AsyncIterator[Proxy]:
        async with asyncio.TaskGroup() as group:

            async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                up_reader, up_writer = await asyncio.open_connection("127.0.0.1", port)
                self._writers += [writer, up_writer]
                group.create_task(self._carry(reader, up_writer))
                group.create_task(self._carry(up_reader, writer))

            server = await asyncio.start_server(accept, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            try:
                yield self
            finally:
                server.close()
                self.thaw()
                self.reset()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                await self._pass.wait()
                writer.write(data)
                await writer.drain()
        writer.close()
