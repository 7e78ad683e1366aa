"""The xDS server: streams on one side, what is published on the other.

In: delta streams over gRPC; `publish` and `withdraw` of whoever owns the content (files, http, mock). Out: responses.
Called by __main__ and mock. Runs in one event loop; the snapshot and every session are touched by that loop only.

A stream is one handler call with two tasks: reading, which takes requests in as they come, and writing, which pulls
the next response when the transport took the last one (flow control: a slow reader has at most one response waiting).
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import grpc
import grpc.aio

from control_plane_example import documents, status, wire
from control_plane_example.session import Session
from control_plane_example.snapshot import Changes, Held, Key, Origin, Snapshot
from control_plane_example.subscription import Answer, Outgoing
from control_plane_example.wire import DeltaDiscoveryRequest, DeltaDiscoveryResponse

_log: Final = logging.getLogger("control_plane")

MAX_MESSAGE_BYTES: Final = 64 << 20
"""Of a request and of a response: a reconnecting gateway lists every version it has in one request."""

MAX_RAW: Final = 64
"""Scripted responses waiting on one stream."""

GRACE: Final = 1.0
"""Seconds that streams get to end when the server stops."""

_OPTIONS: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # By default a server ends connections that ping more often than every five minutes; gateways ping to notice a
    # frozen control plane within seconds.
    ("grpc.http2.min_ping_interval_without_data_ms", 1000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.keepalive_permit_without_calls", 1),
    # Two control planes on one address would each get some of the gateways.
    ("grpc.so_reuseport", 0),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """`unknown_fleet`: what a stream of a fleet that is not published gets: `wait` (no answer yet) or `unavailable`.

    `clock`: seconds since 1970, for the status page. `on_answer` and `on_request` observe (they must not block).
    """

    clock: Callable[[], float]
    unknown_fleet: str = "wait"
    identifier: str = "control-plane-example"
    on_answer: Callable[[int, Answer], None] | None = None
    on_request: Callable[[int, DeltaDiscoveryRequest], None] | None = None


class Ended(Exception):  # noqa: N818 - an end with a status, not always an error
    """Ends a stream; `code` None is a normal end."""

    def __init__(self, code: grpc.StatusCode | None, details: str = "") -> None:
        super().__init__(code, details)
        self.code = code
        self.details = details


@dataclasses.dataclass(eq=False, slots=True)
class Stream:
    """One open stream. Owned by its handler call."""

    number: int
    peer: str
    since: float
    session: Session | None = None
    wake: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    raw: collections.deque[tuple[DeltaDiscoveryResponse, str | None, asyncio.Future[None]]] = dataclasses.field(
        default_factory=collections.deque
    )
    end: asyncio.Future[Ended] = dataclasses.field(default_factory=lambda: asyncio.get_running_loop().create_future())


class XdsServer:
    """Serves a Snapshot. Answers nothing until `open()`: content that is still being loaded must not look empty."""

    def __init__(self, settings: Settings, snapshot: Snapshot | None = None, *, first_number: int = 1) -> None:
        """`first_number` of the streams: a restarted server goes on counting, so that no nonce comes twice."""
        self.snapshot = Snapshot() if snapshot is None else snapshot
        self.streams: dict[int, Stream] = {}
        self.address = ""
        self._settings = settings
        self._server: grpc.aio.Server | None = None
        self._encoder = wire.Encoder(settings.identifier)
        self._is_open = False
        self.last_number = first_number - 1
        self._changed = asyncio.Condition()

    async def start(self, address: str) -> str:
        """Listen on `host:port` (0: any free port). Returns the address in use; OSError when it cannot be had."""
        server = grpc.aio.server(options=_OPTIONS)
        handler = grpc.stream_stream_rpc_method_handler(
            self._delta,
            request_deserializer=wire.parse,  # responses are written as bytes
        )
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(wire.SERVICE, {wire.METHOD: handler}),))
        try:
            port = server.add_insecure_port(address)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}: {error}") from error
        await server.start()
        self._server = server
        self.address = f"{address.rpartition(':')[0]}:{port}"
        return self.address

    async def stop(self) -> None:
        """Stop listening and end every stream; one whose client takes nothing is cancelled after GRACE."""
        server, self._server = self._server, None
        if server is not None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(server.stop(GRACE))
                self.cut(grpc.StatusCode.UNAVAILABLE, "the control plane stops")

    def open(self) -> None:
        """Begin to answer."""
        self._is_open = True
        self._wake(self.streams.values())

    def close(self) -> None:
        """Withhold responses until `open()`; requests are still taken in."""
        self._is_open = False

    def publish(
        self, updates: Iterable[tuple[Key, Held]], removals: Iterable[Key] = (), origin: Origin = Origin.PUT
    ) -> Changes:
        """Add, replace, remove; tell the streams concerned. Returns what changed."""
        changes = self.snapshot.apply(updates, removals, origin)
        for fleet, of_fleet in changes.items():
            for type_url, names in of_fleet.items():
                _log.info("changed fleet=%s type=%s: %s", fleet, documents.kind_of(type_url), _some(names))
            for stream in self.streams.values():
                session = stream.session
                if session is not None and session.fleet == fleet and session.changed(of_fleet):
                    stream.wake.set()
        return changes

    def publish_fleet(self, fleet: str) -> None:
        """Answer streams of this fleet although it may hold nothing."""
        self.snapshot.publish_fleet(fleet)
        self._wake(self.streams.values())

    def cut(self, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE, details: str = "cut") -> int:
        """End every stream with the status. Returns how many."""
        count = 0
        for stream in self.streams.values():
            if not stream.end.done():
                stream.end.set_result(Ended(code, details))
                count += 1
        return count

    async def send_raw(self, response: DeltaDiscoveryResponse, nonce: str | None = None) -> int:
        """Write this response on every stream, as it is. Returns on how many, when all have it.

        `nonce` None: the response's own, or the stream's next one if it has none; "" sends none. BufferError when
        MAX_RAW of them wait on a stream.
        """
        loop = asyncio.get_running_loop()
        waiting: list[asyncio.Future[None]] = []
        for stream in self.streams.values():
            if stream.session is None:
                continue
            if len(stream.raw) >= MAX_RAW:
                raise BufferError(f"{MAX_RAW} scripted responses wait on stream {stream.number}: its client is slow")
            done: asyncio.Future[None] = loop.create_future()
            stream.raw.append((response, nonce, done))
            stream.wake.set()
            waiting.append(done)
        if waiting:
            await asyncio.wait(waiting)
        return sum(1 for done in waiting if not done.cancelled())

    async def connected(self, count: int) -> None:
        """Wait until exactly that many streams have told who they are."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: sum(1 for stream in self.streams.values() if stream.session is not None) == count
            )

    def status(self) -> dict[str, Any]:
        """Fleets and streams as JSON values."""
        return {
            "address": self.address,
            "answering": self._is_open,
            "fleets": status.fleets(self.snapshot),
            "streams": [
                status.stream(stream.session, stream.peer, stream.since)
                for stream in self.streams.values()
                if stream.session is not None
            ],
        }

    @staticmethod
    def _wake(streams: Iterable[Stream]) -> None:
        for stream in streams:
            stream.wake.set()

    async def _delta(self, _requests: object, context: Any) -> None:  # noqa: ANN401 - grpc.aio's context is not generic in its stubs
        self.last_number += 1
        stream = Stream(self.last_number, context.peer(), self._settings.clock())
        self.streams[stream.number] = stream
        ended = Ended(None)
        try:
            # Left to the first response, headers would be sent once more by an abort while that is being written, and
            # gRPC then fails the abort: the stream would stay open.
            await context.send_initial_metadata(())
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(stream, context))
                tasks.create_task(self._write(stream, context))
                tasks.create_task(_until_end(stream))
        except* Ended as group:
            first = group.exceptions[0]
            if isinstance(first, Ended):
                ended = first
        finally:
            del self.streams[stream.number]
            for _, _, done in stream.raw:
                done.cancel()
            async with self._changed:
                self._changed.notify_all()
            _log.info("stream %d ended: %s %s", stream.number, ended.code or "by the client", ended.details)
        if ended.code is not None:
            await context.abort(ended.code, ended.details)

    async def _read(self, stream: Stream, context: Any) -> None:  # noqa: ANN401 - as above
        while True:
            request = await context.read()
            if not isinstance(request, DeltaDiscoveryRequest):
                raise Ended(None)
            if self._settings.on_request is not None:
                self._settings.on_request(stream.number, request)
            session = stream.session
            if session is None:
                session = await self._hello(stream, request)
            answer = session.request(wire.ask(request), self.snapshot)
            if isinstance(answer, str):
                raise Ended(grpc.StatusCode.INVALID_ARGUMENT, answer)
            if answer is not None:
                self._heard(stream.number, answer)
            stream.wake.set()

    async def _hello(self, stream: Stream, request: DeltaDiscoveryRequest) -> Session:
        declared = wire.declared(request.node)
        session = stream.session = Session(stream.number, declared)
        scopes = "all" if declared.scopes is None else ",".join(declared.scopes)
        _log.info(
            "stream %d from %s: node=%s fleet=%s scopes=%s",
            stream.number, stream.peer, declared.node_id, declared.fleet, scopes,
        )  # fmt: skip
        async with self._changed:
            self._changed.notify_all()
        return session

    def _heard(self, number: int, answer: Answer) -> None:
        kind = documents.kind_of(answer.type_url)
        if answer.reason is None:
            _log.info("stream %d ACK %s %s: %d", number, kind, answer.nonce, len(answer.versions) + len(answer.removed))
        else:
            _log.warning("stream %d NACK %s %s: %s", number, kind, answer.nonce, answer.reason)
        if self._settings.on_answer is not None:
            self._settings.on_answer(number, answer)

    async def _write(self, stream: Stream, context: Any) -> None:  # noqa: ANN401 - as above
        while True:
            await stream.wake.wait()
            stream.wake.clear()
            while (session := stream.session) is not None:
                if stream.raw:
                    await _write_raw(stream, session, context)
                    continue
                if not self._may_answer(session):
                    break
                outgoing = session.pull(self.snapshot)
                if outgoing is None:
                    break
                _log.info(
                    "stream %d sends %s %s: %d resources, %d removed",
                    stream.number, documents.kind_of(outgoing.type_url), outgoing.nonce,
                    len(outgoing.resources), len(outgoing.removed),
                )  # fmt: skip
                await context.write(self._encoder.response(outgoing))

    def _may_answer(self, session: Session) -> bool:
        if not self._is_open:
            return False
        if self.snapshot.is_published(session.fleet):
            return True
        if self._settings.unknown_fleet == "unavailable":
            raise Ended(grpc.StatusCode.UNAVAILABLE, f"fleet {session.fleet} is not published")
        return False


async def _until_end(stream: Stream) -> None:
    raise await stream.end


async def _write_raw(stream: Stream, session: Session, context: Any) -> None:  # noqa: ANN401 - as above
    response, nonce, done = stream.raw[0]
    if nonce is None:
        nonce = response.nonce or session.next_nonce()
    message = dataclasses.replace(response, nonce=nonce)
    versions: Mapping[str, Held] = {
        each.name: Held(each.version, each.resource.value if each.resource is not None else b"")
        for each in response.resources
    }
    session.record(Outgoing(response.type_url, nonce, tuple(versions.items()), tuple(response.removed_resources)))
    await context.write(wire.encode(message))
    stream.raw.popleft()
    if not done.done():
        done.set_result(None)


def _some(names: set[str]) -> str:
    shown = ", ".join(sorted(names)[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
