"""A control plane inside a test: scripted from Python, real on the wire.

In: calls of a test. Out: a delta xDS server on 127.0.0.1, and what its clients answered. Called by pytest_plugin and by
tests of other projects.

    async with MockControlPlane() as cp:
        start_the_gateway_under_test(cp.address)
        version = await cp.put("McpTool", "tenant-a-mcp/main/weather.get_forecast", {...})
        await cp.acked("McpTool", "tenant-a-mcp/main/weather.get_forecast", version)

Everything that waits takes `timeout` in seconds and raises TimeoutError with a sentence that says what was awaited and
what came instead. Kinds are the envelope's (`McpTool`, `McpOpenApiSource`, `McpDynamicServer`, `McpToolkit`, and
`Cluster`, `ClusterLoadAssignment`, `Listener` under names of their own).
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import grpc

from control_plane_example import documents
from control_plane_example.documents import DEFAULT_FLEET, Fault
from control_plane_example.server import Settings, XdsServer
from control_plane_example.snapshot import Held, Key, Origin, Snapshot
from control_plane_example.subscription import Answer
from control_plane_example.wire import DeltaDiscoveryRequest, DeltaDiscoveryResponse

MAX_REQUESTS: Final = 1000
MAX_ANSWERS: Final = 10_000
"""Requests and answers that are remembered; older ones are forgotten."""

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, slots=True)
class Nack:
    """One rejected response. `names`: those that the reason speaks of (all of the response when it names none)."""

    reason: str
    names: tuple[str, ...]
    nonce: str
    stream: int


class MockControlPlane:
    """A control plane under a test's thumb. Content and log belong to the event loop that entered it."""

    def __init__(self, address: str = "127.0.0.1:0", *, fleet: str = DEFAULT_FLEET) -> None:
        """`fleet` is published from the start, so that a gateway gets ready on no content; others with a first put."""
        self.address = address
        self._fleet = fleet
        self._snapshot = Snapshot()
        self._server: XdsServer | None = None
        self._held = False
        self._requests: collections.deque[tuple[int, DeltaDiscoveryRequest]] = collections.deque(maxlen=MAX_REQUESTS)
        self._answers: collections.deque[tuple[int, Answer]] = collections.deque(maxlen=MAX_ANSWERS)
        self._nacks: collections.deque[tuple[str, Nack]] = collections.deque(maxlen=MAX_ANSWERS)
        self._heard = asyncio.Event()
        self._streams_before = 0

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # What is published

    async def put(self, kind: str, name: str, spec: dict[str, Any], fleet: str = DEFAULT_FLEET) -> str:
        """Publish a resource under its full id; `spec` is proto JSON. Returns its version; ValueError if it has none.

        The gateway under test judges the content: what its proto can say is sent, sensible or not.
        """
        if kind not in documents.MESSAGES:
            raise ValueError(f"kind must be one of {', '.join(documents.MESSAGES)}, not {kind!r}")
        held = documents.encode(kind, spec)
        if isinstance(held, Fault):
            raise ValueError(f"{kind} {name}: {held.text}")  # noqa: TRY004 - a fault of the content, not of its type
        self._publish(Key(fleet, documents.TYPE_URLS[kind], name), held)
        return held.version

    def put_raw(self, type_url: str, name: str, version: str, payload: bytes, fleet: str = DEFAULT_FLEET) -> None:
        """Publish any bytes with any version under any name and type URL."""
        self._publish(Key(fleet, type_url, name), Held(version, payload))

    def remove(self, kind: str, name: str, fleet: str = DEFAULT_FLEET) -> bool:
        """Withdraw a resource (`kind` may be a type URL). Returns whether there was one."""
        key = Key(fleet, documents.TYPE_URLS.get(kind, kind), name)
        return bool(self._running.publish([], [key]))

    def version(self, kind: str, name: str, fleet: str = DEFAULT_FLEET) -> str | None:
        """The version that is published now, or None."""
        held = self._snapshot.get(Key(fleet, documents.TYPE_URLS.get(kind, kind), name))
        return None if held is None else held.version

    # How it behaves

    def hold(self) -> None:
        """Withhold responses; what changes meanwhile is merged. Scripted responses still go out."""
        self._held = True
        self._running.close()

    def release(self) -> None:
        """Send what was withheld."""
        self._held = False
        self._running.open()

    async def send_raw(
        self, response: DeltaDiscoveryResponse, *, nonce: str | None = None, timeout: float = 5.0
    ) -> int:
        """Write the response on every stream, faults and all. Returns on how many.

        `nonce` None: the response's own, or a fresh one if it has none; "": none. The content is not remembered as
        sent. Build it with `control_plane_example.wire`: DeltaDiscoveryResponse, Resource, ProtoAny.
        """
        async with asyncio.timeout(timeout):
            return await self._running.send_raw(response, nonce)

    def cut(self, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE, details: str = "cut by the test") -> int:
        """End every stream with this status. Returns how many. Clients may come back at once."""
        return self._running.cut(code, details)

    async def stop(self) -> None:
        """Stop listening and end every stream; `restart` starts again."""
        server, self._server = self._server, None
        if server is not None:
            self._streams_before = server.last_number
            await server.stop()

    async def restart(self, *, keep: bool = True) -> None:
        """Stop and start on the same port, with the same content or (`keep` False) with none. `hold` stays on."""
        await self.stop()
        if not keep:
            self._snapshot = Snapshot()
        await self._start()

    # What the clients did

    async def connected(self, count: int = 1, timeout: float = 10.0) -> None:
        """Wait until exactly `count` streams are open that told who they are (0: none)."""
        try:
            async with asyncio.timeout(timeout):
                await self._running.connected(count)
        except TimeoutError:
            now = len(self._running.status()["streams"])
            raise TimeoutError(f"waited {timeout:g} s for {count} streams: there are {now}") from None

    async def acked(self, kind: str, name: str, version: str | None = None, timeout: float = 10.0) -> None:
        """Wait for the ACK of this version (None: the one published now) by any client; an earlier one counts."""
        url = documents.TYPE_URLS.get(kind, kind)
        wanted = self.version(kind, name) if version is None else version

        def found() -> bool | None:
            return (
                any(
                    answer.type_url == url and answer.reason is None and answer.versions.get(name) == wanted
                    for _, answer in self._answers
                    if name in answer.versions
                )
                or None
            )

        await self._await(found, timeout, f"the ACK of {kind} {name} version {wanted}")

    async def acked_removal(self, kind: str, name: str, timeout: float = 10.0) -> None:
        """Wait for the ACK of a response that removed the name; an earlier one counts."""
        url = documents.TYPE_URLS.get(kind, kind)

        def found() -> bool | None:
            return (
                any(
                    answer.type_url == url and answer.reason is None and name in answer.removed
                    for _, answer in self._answers
                )
                or None
            )

        await self._await(found, timeout, f"the ACK of the removal of {kind} {name}")

    async def nacked(self, kind: str, name: str | None = None, timeout: float = 10.0) -> Nack:
        """Wait for a NACK that speaks of the name (None: any of the kind). Each NACK is returned once, oldest first."""
        url = documents.TYPE_URLS.get(kind, kind)

        def found() -> Nack | None:
            for index, (type_url, nack) in enumerate(self._nacks):
                if type_url == url and (name is None or name in nack.names):
                    del self._nacks[index]
                    return nack
            return None

        return await self._await(found, timeout, f"a NACK of {kind} {name or '(any)'}")

    def requests(self, kind: str | None = None) -> list[DeltaDiscoveryRequest]:
        """The last 1,000 requests of all streams in order of arrival, or those of one kind or type URL."""
        url = None if kind is None else documents.TYPE_URLS.get(kind, kind)
        return [request for _, request in self._requests if url is None or request.type_url == url]

    def answers(self, kind: str | None = None) -> list[Answer]:
        """The last 10,000 ACKs and NACKs of all streams in order of arrival, or those of one kind or type URL."""
        url = None if kind is None else documents.TYPE_URLS.get(kind, kind)
        return [answer for _, answer in self._answers if url is None or answer.type_url == url]

    def status(self) -> dict[str, Any]:
        """As `GET /status` of the command: fleets, and streams with what they were sent, ACKed and NACKed."""
        return self._running.status()

    @property
    def _running(self) -> XdsServer:
        if self._server is None:
            raise RuntimeError("the control plane is not running: enter it with `async with`, or restart() it")
        return self._server

    async def _start(self) -> None:
        settings = Settings(
            # For the status page only.
            clock=time.time,  # noqa: TID251 - composition root of a test
            identifier="mock-control-plane",
            on_answer=self._on_answer,
            on_request=lambda stream, request: self._requests.append((stream, request)),
        )
        server = XdsServer(settings, self._snapshot, first_number=self._streams_before + 1)
        server.publish_fleet(self._fleet)
        if not self._held:
            server.open()
        self.address = await server.start(self.address)
        self._server = server

    def _publish(self, key: Key, held: Held) -> None:
        self._running.publish([(key, held)], origin=Origin.PUT)

    def _on_answer(self, stream: int, answer: Answer) -> None:
        self._answers.append((stream, answer))
        if answer.reason is not None:
            self._nacks.append((answer.type_url, Nack(answer.reason, answer.blamed, answer.nonce, stream)))
        self._heard.set()
        self._heard = asyncio.Event()

    async def _await(self, found: Callable[[], _T | None], timeout: float, what: str) -> _T:
        try:
            async with asyncio.timeout(timeout):
                while (result := found()) is None:
                    await self._heard.wait()
        except TimeoutError:
            last = [
                f"{documents.kind_of(answer.type_url)} {answer.nonce} {answer.reason or 'ACK'}"
                for _, answer in list(self._answers)[-3:]
            ]
            raise TimeoutError(f"waited {timeout:g} s for {what}; the last answers were {last}") from None
        return result
