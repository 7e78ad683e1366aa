"""The delta xDS client: one gRPC stream after the other, for as long as the process lives.

In: settings, the scopes consumed, and a handler that applies deliveries. Out: calls of the handler, ACKs and NACKs,
readiness, status. Called by app. Everything that decides is in xds.session; here it meets sockets and time.

Owners: the `run` task owns every other task. Handler calls live in a group as old as `run`, so that one that is
halfway through when a stream breaks still finishes; reader, writer and timers live in a group per stream. All run in
one event loop and touch the session between awaits only.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, NoReturn, Protocol

import grpc
import grpc.aio

from arion_tds.model.delivery import CATALOG, CLUSTERS, Delivery, Kind, ResourceId
from arion_tds.model.problem import Problem
from arion_tds.pace import Pace
from arion_tds.xds import wire
from arion_tds.xds.backoff import Backoff, Uniform
from arion_tds.xds.handling import Handler, Handling
from arion_tds.xds.session import Session
from arion_tds.xds.status import AdsStatus, Observer, Silent, TypeStatus
from arion_tds.xds.telling import Teller
from arion_tds.xds.wire import AdsSettings

__all__ = ["AdsClient", "AdsSettings", "AdsStatus", "Observer", "TypeStatus"]

_STEP: Final = 64
"""Entries of a response read between two looks at the clock."""

_Call = grpc.aio.StreamStreamCall[bytes, bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class _End:
    """Why a stream is over. `ours`: we end it ourselves, to declare more scopes on a new one."""

    why: str
    ours: bool = False


class Beside(Protocol):
    """Hears, before the handler does, what a response says beside its delivery."""

    def __call__(self, kind: Kind, malformed: tuple[Problem, ...], *, first: bool) -> None:
        """`malformed`: resources rejected for their IDs. `first`: the type's first response on this stream."""
        ...


class AdsClient:
    """Delta ADS against one control plane. `run` does everything; the rest may be called at any time, from its loop."""

    def __init__(
        self,
        settings: AdsSettings,
        scopes: Iterable[str],
        handler: Handler,
        *,
        clock: Callable[[], float],
        rng: Uniform,
        observer: Observer | None = None,
        beside: Beside | None = None,
    ) -> None:
        """`clock` is monotonic, in seconds; `rng` is a `random.Random`.

        `handler` applies a delivery and says what it rejected. Its calls start in order of arrival and overlap, so it
        must itself keep the order per resource, and bound its own time: at most `max_unanswered` calls run at once,
        and reading stops while they do.
        """
        self._settings = settings
        self._beside = beside
        self._clock = clock
        self._teller = Teller(clock, observer or Silent())
        kinds = (*CLUSTERS, *CATALOG) if settings.clusters else CATALOG
        self._session = Session(scopes, wildcard=settings.subscription == "wildcard", kinds=kinds)
        self._backoff = Backoff(settings.backoff_base, settings.backoff_max, rng)
        self._keepalive = settings.keepalive_time
        self._handling = Handling(self._session, handler, settings.initial_fetch_timeout, self._teller, self._settled)
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._reopen = asyncio.Event()
        self._connected_since: float | None = None
        self._last_response_at: float | None = None
        self._attempts = 0
        self._last_error = ""

    @property
    def is_ready(self) -> bool:
        """Whether every type's first response was applied, or the initial fetch has had its time. Never unset."""
        return self._handling.ready.is_set()

    async def wait_ready(self) -> None:
        """Until `is_ready`. While no stream can be opened that is for ever: the caller bounds it."""
        await self._handling.ready.wait()

    async def wait_complete(self) -> None:
        """Until every type's first response for the scopes consumed now was applied, however long that takes."""
        await self._handling.complete.wait()

    def status(self) -> AdsStatus:
        """The client now."""
        return AdsStatus(
            connected=self._connected_since is not None,
            connected_since=self._connected_since,
            last_response_at=self._last_response_at,
            attempts=self._attempts,
            last_error=self._last_error,
            dropped=self._session.dropped,
            types={
                kind: TypeStatus(
                    state.answered,
                    len(state.held),
                    state.tally.responses,
                    state.tally.acks,
                    state.tally.nacks,
                    state.tally.dropped,
                    state.tally.last_nack,
                )
                for kind, state in self._session.types.items()
            },
        )

    def set_scopes(self, scopes: Iterable[str]) -> None:
        """Consume exactly these scopes from now on; those that go must have had their content dropped by the caller."""
        if self._session.set_scopes(scopes):
            self._reopen.set()
        if not self._session.complete:
            self._handling.complete.clear()
        self._wake.set()

    def want_endpoints(self, names: Iterable[str]) -> None:
        """Ask for the endpoints of exactly these; those of others have been dropped by the caller."""
        self._session.want(Kind.ENDPOINTS, names)
        self._wake.set()

    def refetch(self, scopes: Iterable[str]) -> None:
        """Have all of these scopes said anew, on a new stream."""
        for scope in scopes:
            self._session.unsettle(scope)
            self._reopen.set()

    def holds(self, kind: Kind, id: ResourceId) -> bool:  # noqa: A002
        """Whether the control plane gave us the resource: it is in use, or is being applied."""
        return self._session.types[kind].held.has(id)

    def claim(self, kind: Kind, id: ResourceId, version: str) -> None:  # noqa: A002  (the noun is called an ID)
        """A resource that the handler rejected was taken after all: its version is in use."""
        self._session.claim(kind, id, version)

    def version(self, kind: Kind, id: ResourceId) -> str | None:  # noqa: A002
        """The version of the resource that the control plane is told is in use; None: none is."""
        state = self._session.types.get(kind)
        return None if state is None else state.held.version(id)

    def restore(self, delivery: Delivery, handler: Handler) -> Coroutine[Any, Any, None]:
        """Apply what an earlier life kept; to be called before `run`, and the result awaited, before it or beside it.

        `handler` is to judge it as a delivery. What it accepts is claimed on the first stream, so that the control
        plane sends what differs and takes back what it no longer has.
        """
        return self._handling.handle(self._session.restore(delivery), delivery, handler)

    async def run(self) -> NoReturn:
        """Keep a stream open until cancelled. Cancelling also ends the handler calls that are under way."""
        async with asyncio.TaskGroup() as calls:
            self._handling.calls = calls
            while True:
                await self._something_to_ask()
                begun = self._clock()
                end = await self._attempt()
                lived = self._clock() - begun
                delay = self._backoff.least(lived) if end.ours else self._backoff.delay(lived)
                self._last_error = self._last_error if end.ours else end.why
                self._teller.ended(self._settings.address, end.why, delay, ours=end.ours)
                await asyncio.sleep(delay)

    async def _something_to_ask(self) -> None:
        """A stream on which nothing can be asked for is not opened: without scopes there is nothing to wait for."""
        while not self._session.has_names:
            self._handling.ready.set()
            self._wake.clear()
            await self._wake.wait()

    async def _attempt(self) -> _End:
        """One stream from dial to end."""
        self._attempts += 1
        self._reopen.clear()
        channel = wire.channel(self._settings, self._keepalive)
        try:
            call = channel.stream_stream(wire.METHOD, None, None)(None)
            end = await self._connect(call)
            if end is None:
                self._connected_since = self._clock()
                self._teller.observer.connected()
                self._session.open()
                end = await self._converse(call)
        except Exception as error:  # noqa: BLE001  (the top of all that one stream does: the next may fare better)
            self._teller.broke("the control plane's stream", error)
            end = _End(f"internal error: {error!r}")
        finally:
            self._session.close()
            self._connected_since = None
            await channel.close(None)
        self._teller.observer.disconnected(end.why)
        return end

    async def _connect(self, call: _Call) -> _End | None:
        try:
            async with asyncio.timeout(self._settings.connect_timeout):
                await call.wait_for_connection()
        except TimeoutError:
            return _End(f"no connection within {self._settings.connect_timeout:g} s (connect_timeout)")
        except grpc.aio.AioRpcError as error:
            return self._status(error)
        return None

    async def _converse(self, call: _Call) -> _End:
        """Read and write until one of the two ends, or scopes ask for another stream."""
        async with asyncio.TaskGroup() as tasks:
            timer = tasks.create_task(self._handling.initial_fetch())
            parts = [tasks.create_task(part) for part in (self._read(call), self._write(call), self._until_reopen())]
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            timer.cancel()
            # The reader's word goes before the writer's: its end is the server's status.
            end = next(part for part in parts if part.done()).result()
            for part in parts:
                part.cancel()
        return end

    async def _write(self, call: _Call) -> _End:
        while True:
            request = self._session.next_request()
            if request is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            try:
                await call.write(wire.encode(request, self._settings))
            except grpc.aio.AioRpcError as error:
                return self._status(error)
            except asyncio.InvalidStateError:
                return _End(f"{(await call.code()).name}: {await call.details()}")
            if request.nonce:
                self._room.set()
                self._teller.answered(request.kind, request.error)

    async def _read(self, call: _Call) -> _End:
        while True:
            while self._session.unanswered >= self._settings.max_unanswered:
                self._room.clear()
                await self._room.wait()
            try:
                # No name is given to what is read: it would keep it in memory until the next response.
                end = await self._receive(await call.read())
            except grpc.aio.AioRpcError as error:
                end = self._status(error)
            if end is not None:
                return end

    async def _receive(self, raw: object) -> _End | None:
        """A response, or the end of the stream. The loop goes on turning while a long one is read."""
        if not isinstance(raw, bytes):
            return _End("the control plane ended the stream (OK)")
        response = wire.parse(raw)
        if isinstance(response, str):
            return _End(response)
        self._backoff.succeeded()
        self._last_response_at = self._clock()
        intake = self._session.begin(response.type_url, response.nonce)
        if intake is None:
            self._teller.dropped(response.type_url)
            return None
        self._teller.observer.response(intake.kind, response.size)
        pace = Pace()
        for done, entry in enumerate(wire.resources(response)):
            intake.update(*entry)
            if done % _STEP == 0:
                await pace.breathe()
        for done, name in enumerate(wire.removed(response)):
            intake.remove(name)
            if done % _STEP == 0:
                await pace.breathe()
        for done, fault in enumerate(wire.errors(response)):
            intake.error(*fault)
            if done % _STEP == 0:
                await pace.breathe()
        ticket = self._session.receive(intake)
        self._teller.errors(intake.kind, ticket.errors)
        if self._beside is not None and (ticket.first or ticket.malformed):
            self._beside(ticket.kind, ticket.malformed, first=ticket.first)
        self._handling.take(ticket)
        return None

    def _settled(self) -> None:
        """A verdict is in: it may have to be told, and it may make room for another response."""
        self._wake.set()
        self._room.set()

    async def _until_reopen(self) -> _End:
        await self._reopen.wait()
        return _End("other scopes are consumed, or in another way: a new stream asks for them", ours=True)

    def _status(self, error: grpc.aio.AioRpcError) -> _End:
        details = error.details() or "no details"
        if wire.pings_refused(error) and self._keepalive < wire.SPARING_KEEPALIVE:
            self._keepalive = wire.SPARING_KEEPALIVE
            details += f"; from now on it is pinged every {wire.SPARING_KEEPALIVE:g} s only"
        if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
            details += f"; max_message_bytes is {self._settings.max_message_bytes}"
        return _End(f"{error.code().name}: {details}")
