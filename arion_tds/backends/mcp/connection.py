"""One MCP server: agree once, list its tools, call them; both eras, many calls at a time, none harmed by another.

In: tool names and raw JSON arguments. Out: `Listing`, `CallResult`, `RpcError`; a failure of the server is a value.
Called by pool. State: the agreed peer (replaced, never altered, by the task that agrees), counters.

The verdict on a server's era is kept as long as its answers fit it. A legacy session is made once and shared; when the
server has forgotten it (HTTP 404) it is made once more and the call sent again: it was refused, not executed. A call
that may have been executed is sent a second time only when it is idempotent.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable
from typing import Final

import msgspec

from arion_tds.backends.mcp import era, handshake, headers, listing, wire
from arion_tds.backends.mcp.address import shown
from arion_tds.backends.mcp.calling import LIST_CHANGED, Call, Calling, Prepared, broken_result, prepare
from arion_tds.backends.mcp.era import Era, Peer
from arion_tds.backends.mcp.line import Broken, Limit, Line, serve
from arion_tds.backends.mcp.listing import Listing
from arion_tds.backends.mcp.settings import UpstreamSettings
from arion_tds.model.context import CallContext, Limits
from arion_tds.model.result import CallFailure, CallResult, ErrorCode, RpcError

_ATTEMPTS: Final = 5
"""Sends of one call at most: the first, one per kind of staleness, one for headers, one for an idempotent call."""

_STATES: Final = {None: "unknown", True: "ok", False: "failing"}
STATES: Final = tuple(_STATES.values())
"""What a server can be: the values of `UpstreamStatus.state`."""

_OWN_FAULTS: Final = frozenset({ErrorCode.OVERFLOW, ErrorCode.RESPONSE_TOO_LARGE})
"""Failures that say nothing about the server's health: they are limits of this gateway."""

_RELIST_SECONDS: Final = 30.0
"""Seconds between lists that are fetched because a call missed a mirrored header."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamStatus:
    """What the admin pages say about a server. Times are the clock's; None: not yet.

    `url` without its query. `state`: `unknown` before the first exchange, then `ok` or `failing` as the last one went.
    """

    url: str
    state: str
    era: str | None
    version: str | None
    server: str
    handshakes: int
    calls_in_flight: int
    calls: int
    failures: int
    listed_at: float | None
    listed_tools: int
    last_error: str | None
    last_error_at: float | None


class Upstream:
    """One server named by its URL. Use from one event loop."""

    def __init__(
        self,
        url: str,
        settings: UpstreamSettings,
        *,
        clock: Callable[[], float],
        line: Callable[[Upstream], Line],
    ) -> None:
        """`url`: the server's key. `clock`: seconds, for `status` alone. `line` is made here and closed with this."""
        self.url = url
        self.settings = settings
        self.changed: Callable[[], None] | None = None
        self.replaced: Callable[[], None] | None = None
        self.told: Callable[[str, str, str], None] | None = None
        self._clock = clock
        self._peer: Peer | None = None
        self._agreeing: asyncio.Task[Peer | CallFailure] | None = None
        self._handshakes = 0
        self._met = False
        self._closed = False
        self._idle = asyncio.Event()
        self._relist_after = 0.0
        self._prepared: dict[str, Prepared] = {}
        self._params: dict[str, headers.HeaderMap] = {}
        self._running: dict[int, Calling] = {}
        self._in_flight = self._calls = self._failures = 0
        self._listed: tuple[float, int] | None = None
        self._error: tuple[float, str] | None = None
        self._well: bool | None = None
        self.line = line(self)

    async def call(
        self, tool: str, arguments: bytes, context: CallContext, limits: Limits, *, idempotent: bool
    ) -> CallResult | RpcError:
        """Call a tool by the server's own name. `arguments`: a JSON object. Never raises but for cancellation."""
        settings = self.settings
        if self._in_flight >= settings.max_concurrent_calls:
            why = f"{settings.max_concurrent_calls} calls are in flight to it already (max_concurrent_calls)"
            return self._failure(Broken(self._told(ErrorCode.OVERFLOW, why, retryable=True), executed=False))
        timeout = settings.timeout if settings.timeout is not None else limits.timeout
        self._in_flight += 1
        self._calls += 1
        try:
            async with asyncio.timeout(timeout) as deadline:
                call = Call(
                    tool=tool,
                    arguments=arguments,
                    context=context,
                    limit=self._limit(limits),
                    timeout=timeout,
                    hard_end=asyncio.get_running_loop().time() + max(timeout, settings.max_call_time),
                    deadline=deadline,
                )
                result = await self._attempts(call, idempotent=idempotent)
        except Broken as broken:
            return self._failure(broken, idempotent=idempotent)
        except TimeoutError:
            why = f"no answer from tool {tool!r} within {timeout:g} s (upstream_timeout)"
            failure = self._told(ErrorCode.UPSTREAM_TIMEOUT, why, retryable=True)
            return self._failure(Broken(failure, executed=True), idempotent=idempotent)
        else:
            if not self._well:
                self._judge(well=True)
            return result
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    async def _attempts(self, call: Call, *, idempotent: bool) -> CallResult | RpcError:
        outcome: CallResult | RpcError | era.Stale | None = None
        stale: Peer | None = None
        met: set[object] = set()
        for _ in range(_ATTEMPTS):
            peer = await self.agreed(stale, session_only=outcome is era.Stale.SESSION)
            prepared = self._prepared.get(call.tool)
            if prepared is None:
                prepared = self._prepare(peer, call.tool)
            try:
                outcome = await Calling(self.line, peer, call, self._announce, self._running).run(prepared, met)
            except Broken as broken:
                again = broken.unsent or (idempotent and broken.failure.retryable)
                if not again or Broken in met:
                    raise
                met.add(Broken)
                continue
            if isinstance(outcome, RpcError) and outcome.code == era.HEADER_MISMATCH and self._may_relist():
                await self.list_tools()  # which arguments does the server want mirrored now?
                continue
            if not isinstance(outcome, era.Stale):
                return outcome
            met.add(outcome)
            stale = peer
        if isinstance(outcome, RpcError):
            return outcome
        why = "it refuses every request, as if it had forgotten the handshake that it just made"
        raise Broken(self._told(ErrorCode.UPSTREAM_ERROR, why, retryable=True), executed=False)

    def _may_relist(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now < self._relist_after:
            return False
        self._relist_after = now + _RELIST_SECONDS
        return True

    def _prepare(self, peer: Peer, tool: str) -> Prepared:
        if len(self._prepared) >= self.settings.max_list_tools:
            self._prepared.clear()
        made = self._prepared[tool] = prepare(self.line, peer, tool, self._params)
        return made

    async def list_tools(self) -> Listing | CallFailure:
        """Every tool of the server, page by page, or why they could not be fetched."""
        try:
            async with asyncio.timeout(self.settings.list_timeout):
                found = await self._list()
        except Broken as broken:
            return self._noted(broken.failure)
        except TimeoutError:
            why = f"tools/list did not end within {self.settings.list_timeout:g} s (list_timeout)"
            return self._noted(self._told(ErrorCode.UPSTREAM_TIMEOUT, why, retryable=True))
        if not self._well:
            self._judge(well=True)
        self._listed = (self._clock(), len(found.tools))
        self._params = _annotated(found)
        self._prepared.clear()
        return found

    async def _list(self) -> Listing:
        found: Listing | era.Stale | None = None
        stale: Peer | None = None
        tried: set[object] = set()
        for _ in range(_ATTEMPTS):
            peer = await self.agreed(stale, session_only=found is era.Stale.SESSION)
            try:
                found = await listing.walk(self.line, peer, self.settings, self.hear, tried)
            except Broken as broken:
                again = broken.unsent or (broken.executed and broken.failure.retryable)
                if not again or Broken in tried:
                    raise
                tried.add(Broken)
                continue
            if isinstance(found, Listing):
                return found
            tried.add(found)
            stale = peer
        why = "it refuses tools/list, as if it had forgotten the handshake that it just made"
        raise Broken(self._told(ErrorCode.UPSTREAM_ERROR, why, retryable=True), executed=False)

    async def agreed(self, stale: Peer | None = None, *, session_only: bool = False) -> Peer:
        """The peer agreed on; a new one if `stale` is still the one in use. Raises Broken.

        All who wait share one handshake, which none of them ends by going away.
        """
        peer = self._peer
        if peer is not None and peer is not stale:
            return peer
        if self._closed:
            raise Broken(self._told(ErrorCode.UPSTREAM_ERROR, "its connection is closed"), executed=False)
        if self._agreeing is None:
            # An uncertain verdict that was then contradicted, or a lost session: no need to ask for the era again.
            probe = not (session_only or (stale is not None and stale.era is Era.MODERN and not stale.certain))
            self._agreeing = asyncio.get_running_loop().create_task(self._agree(probe=probe))
        agreeing = self._agreeing
        try:
            made = await asyncio.shield(agreeing)
        except asyncio.CancelledError:
            if agreeing.cancelled() and self._closed:
                raise Broken(
                    self._told(ErrorCode.UPSTREAM_ERROR, "its connection was closed"), executed=False
                ) from None
            raise
        if isinstance(made, CallFailure):
            raise Broken(made, executed=False)
        return made

    async def _agree(self, *, probe: bool) -> Peer | CallFailure:
        try:
            self._handshakes += 1
            made = await handshake.agree(self.line, self._handshakes, self.settings.handshake_timeout, probe=probe)
            if isinstance(made, CallFailure):
                self._peer = None
            else:
                again, self._met = self._met, True
                self._peer = made
                self._prepared.clear()
                if again and self.replaced is not None:
                    self.replaced()
            return made
        finally:
            self._agreeing = None

    def forget(self, *, unexpected: bool) -> None:
        """The server that was agreed with is gone (its process ended): agree anew with the next one.

        `unexpected`: nobody told it to end. Who watches it will ask for its list, which starts it again.
        """
        self._peer = None
        if unexpected:
            self._announce()

    async def hear(self, message: wire.Message, _frame: bytes) -> None:
        """A message that belongs to no call of ours, or (on a watch stream) to one that is found by its token."""
        peer = self._peer
        if message.is_request and peer is not None:
            await serve(self.line, peer, message)
        elif message.method == LIST_CHANGED:
            self._announce()
        elif message.method == "notifications/progress":
            token = _token(message)
            running = self._running.get(token) if token is not None else None
            if running is not None:
                await running.hear(message, _frame)

    def _announce(self) -> None:
        if self.changed is not None:
            self.changed()

    async def close(self) -> None:
        """End the legacy session, every connection and every task. Calls in flight end as failures."""
        self._closed = True
        agreeing = self._agreeing
        if agreeing is not None:
            agreeing.cancel()
            await asyncio.gather(agreeing, return_exceptions=True)
        peer, self._peer = self._peer, None
        if peer is not None:
            await self.line.leave(peer)
        await self.line.close()

    async def retire(self) -> None:
        """Close once the calls in flight are done: no new ones will come."""
        end = asyncio.get_running_loop().time() + self.settings.max_call_time
        while self._in_flight and asyncio.get_running_loop().time() < end:
            self._idle.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(end):
                    await self._idle.wait()
        await self.close()

    def status(self) -> UpstreamStatus:
        """What is known about the server now."""
        peer = self._peer
        return UpstreamStatus(
            url=shown(self.url),
            state=_STATES[self._well],
            era=None if peer is None else peer.era.value,
            version=None if peer is None else peer.version,
            server="" if peer is None else peer.name,
            handshakes=self._handshakes,
            calls_in_flight=self._in_flight,
            calls=self._calls,
            failures=self._failures,
            listed_at=None if self._listed is None else self._listed[0],
            listed_tools=0 if self._listed is None else self._listed[1],
            last_error=None if self._error is None else self._error[1],
            last_error_at=None if self._error is None else self._error[0],
        )

    @property
    def busy(self) -> bool:
        """Whether calls are in flight or a watch listens."""
        return self._in_flight > 0 or self.changed is not None

    def _limit(self, limits: Limits) -> Limit:
        own = self.settings.max_response_bytes
        return (
            (limits.max_response_bytes, "max_upstream_response_bytes") if own is None else (own, "max_response_bytes")
        )

    def _told(self, code: ErrorCode, why: str, *, retryable: bool = False) -> CallFailure:
        return CallFailure(code, f"MCP server {self.line.name}: {why}", retryable=retryable)

    def _failure(self, broken: Broken, *, idempotent: bool = False) -> CallResult:
        self._noted(broken.failure)
        return broken_result(broken, idempotent=idempotent)

    def _noted(self, failure: CallFailure) -> CallFailure:
        self._failures += 1
        if failure.code not in _OWN_FAULTS and self._well is not False:
            self._judge(well=False, why=failure.message)
        self._error = (self._clock(), failure.message)
        return failure

    def _judge(self, *, well: bool, why: str = "") -> None:
        self._well = well
        if self.told is not None:
            self.told(shown(self.url), _STATES[well], why)


def _token(message: wire.Message) -> int | None:
    try:
        token = wire.members(message.params).get("progressToken")
        return msgspec.json.decode(token, type=int, strict=False) if token is not None else None
    except wire.BAD_JSON:
        return None


def _annotated(found: Listing) -> dict[str, headers.HeaderMap]:
    """The tools whose arguments are to be mirrored in headers, and how."""
    wanted: dict[str, headers.HeaderMap] = {}
    for tool in found.tools:
        if headers.ANNOTATION.encode() not in tool:
            continue
        try:
            parts = msgspec.json.decode(tool)
        except wire.BAD_JSON:
            continue
        if isinstance(parts, dict) and isinstance(name := parts.get("name"), str):
            mapped = headers.header_map(parts.get("inputSchema"))
            if mapped and not isinstance(mapped, str):
                wanted.setdefault(name, mapped)
    return wanted
