"""One tools/call on the wire: sent, listened to while it runs, its answer read.

In: the server's line, the agreed peer, a `Call`. Out: a `CallResult`, an `RpcError`, or `Stale` (nothing was executed:
agree anew and send again); raises Broken. Called by connection, which decides on retries.

While the call runs its progress and log notifications go to the caller, with the caller's own progress token; progress
extends the time limit. A server of before 2026-07-28 may ask things of its client; those that this gateway cannot pass
on are refused, so that the tool ends instead of waiting.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Mapping, MutableMapping
from typing import Final, NamedTuple

import msgspec
from multidict import CIMultiDict

from arion_tds.backends import spans
from arion_tds.backends.mcp import era, headers, requests, wire
from arion_tds.backends.mcp.era import Era, Peer
from arion_tds.backends.mcp.line import Answer, Broken, Limit, Line, malformed, refused_status, serve
from arion_tds.model.context import CallContext
from arion_tds.model.result import CallFailure, CallResult, ErrorCode, RpcError, failed, text_block

_MAX_ASKED: Final = 32
"""Requests of a server that are answered during one call."""

_CANCEL_SECONDS: Final = 2.0
LIST_CHANGED: Final = "notifications/tools/list_changed"


@dataclasses.dataclass(slots=True, kw_only=True)
class Call:
    """One call through all its attempts. `limit` is bytes and setting; `hard_end` is loop time; `asked` was refused.

    `sends`: how often it was sent.
    """

    tool: str
    arguments: bytes
    context: CallContext
    limit: Limit
    timeout: float
    hard_end: float
    deadline: asyncio.Timeout
    asked: list[str] = dataclasses.field(default_factory=list)
    sends: int = 0

    def extend(self) -> None:
        """Progress was heard: the time limit starts anew, up to the hard end."""
        now = asyncio.get_running_loop().time()
        if not self.deadline.expired():
            self.deadline.reschedule(min(now + self.timeout, self.hard_end))


class Prepared(NamedTuple):
    """What every call of one tool has in common, as long as the peer stays: headers, the name as JSON."""

    common: CIMultiDict[str]
    name: bytes
    mirrored: headers.HeaderMap | None


def prepare(line: Line, peer: Peer, tool: str, params: Mapping[str, headers.HeaderMap]) -> Prepared:
    """`params`: the annotated arguments of the server's tools, by tool."""
    wanted = params.get(tool) if peer.era is Era.MODERN else None
    return Prepared(requests.for_peer(line.base, peer, "tools/call", tool), wire.encode(tool), wanted)


class Calling:
    """One attempt at a call. `running` is where a watch stream finds it by its progress token."""

    __slots__ = ("_call", "_changed", "_line", "_number", "_peer", "_running")

    def __init__(
        self,
        line: Line,
        peer: Peer,
        call: Call,
        changed: Callable[[], None],
        running: MutableMapping[int, Calling],
    ) -> None:
        """`changed` is called when the server announces another tool list."""
        self._line = line
        self._peer = peer
        self._call = call
        self._changed = changed
        self._running = running
        self._number = line.number()

    async def run(self, prepared: Prepared, tried: Collection[object]) -> CallResult | RpcError | era.Stale:
        """Send, listen, read. `tried`: kinds of staleness that were mended already and so are errors now.

        Cancelled: the server is told in its era's way.
        """
        parent = self._call.context.span
        if parent is None:
            return await self._run(prepared, tried, self._call.context)
        call, line = self._call, self._line
        span = spans.call(parent, call.tool, self._peer.version, self._number, call.sends)
        span.attributes.update(line.where)
        call.sends += 1
        error = spans.CANCELLED
        try:
            context = dataclasses.replace(call.context, traceparent=span.traceparent)
            outcome = await self._run(prepared, tried, context)
            error = outcome.value if isinstance(outcome, era.Stale) else spans.came(span, outcome)
        except Broken as broken:
            error = broken.failure.code.value
            raise
        except asyncio.CancelledError:
            if call.deadline.expired():
                error = spans.TIMEOUT
            raise
        else:
            return outcome
        finally:
            span.finish(error)

    async def _run(
        self, prepared: Prepared, tried: Collection[object], context: CallContext
    ) -> CallResult | RpcError | era.Stale:
        """`context`: the call's, or one whose traceparent names this attempt."""
        tracked = context.progress_token is not None
        if tracked:
            self._running[self._number] = self
        try:
            answer = await self._exchange(prepared, context)
        except asyncio.CancelledError:
            if not self._line.cancels_by_leaving(self._peer):
                gone = requests.cancelled(self._number, "nobody waits for the result any more")
                told = self._line.tell(self._peer, "notifications/cancelled", gone, seconds=_CANCEL_SECONDS)
                self._line.spawn(told)
            raise
        finally:
            if tracked:
                del self._running[self._number]
        message = answer.message
        if message is not None and message.result and 200 <= answer.status < 300:
            return self._result(message)
        stale = era.stale(self._peer, answer.status, message)
        if stale is not None and stale not in tried:
            return stale
        if message is None or not message.error:
            raise refused_status(self._line.name, answer.status, answer.headers.get("location"))
        return self._error(message)

    async def _exchange(self, prepared: Prepared, context: CallContext) -> Answer:
        sent = prepared.common.copy()
        sent["traceparent"] = context.traceparent
        if context.tracestate is not None:
            sent["tracestate"] = context.tracestate
        sent["x-request-id"] = context.request_id
        if self._peer.era is Era.MODERN and (context.param_headers or prepared.mirrored):
            sent.update(headers.forwarded(context.param_headers))
            if prepared.mirrored:
                arguments = msgspec.json.decode(self._call.arguments or b"{}")
                sent.update(headers.mirrored(prepared.mirrored, arguments))
        params = requests.call_params(self._peer, prepared.name, self._call.arguments, context, self._number)
        body = wire.request(self._number, "tools/call", params)
        return await self._line.ask(self._peer, self._number, sent, body, limit=self._call.limit, hear=self.hear)

    async def hear(self, message: wire.Message, frame: bytes) -> None:
        """A message of the server's that is not the answer."""
        if message.is_request:
            if len(self._call.asked) >= _MAX_ASKED:
                raise malformed(self._line.name, f"more than {_MAX_ASKED} requests of its own during one call")
            refused = await serve(self._line, self._peer, message)
            if refused is not None:
                self._call.asked.append(refused)
        elif message.method == LIST_CHANGED:
            self._changed()
        elif message.method == "notifications/progress":
            self._progress(message)
        elif message.method == "notifications/message":
            self._log(frame)

    def _progress(self, message: wire.Message) -> None:
        context = self._call.context
        if context.progress_token is None:
            return
        relayed = requests.relayed_progress(bytes(message.params), self._number, context.progress_token)
        if relayed is None:
            return
        self._call.extend()
        if context.notify is not None:
            context.notify(relayed)

    def _log(self, frame: bytes) -> None:
        context = self._call.context
        if context.notify is None:
            return
        # A modern caller hears logs only when it asked for them; an older one hears what its server says.
        if context.modern and requests.LOG_LEVEL_KEY.encode() not in context.params.get("_meta", b""):
            return
        text = wire.clean(frame)
        if isinstance(text, bytes) and not text.startswith(b"["):
            context.notify(text)

    def _error(self, message: wire.Message) -> CallResult | RpcError:
        error = wire.error_of(message.error)
        if isinstance(error, str):
            raise malformed(self._line.name, error)
        if self._call.asked:
            return self._failed(f"{self._asked()} The tool then failed: {error.message} ({error.code})")
        if error.code == era.MISSING_CAPABILITY and not self._call.context.modern:
            wanted = (error.data or b"").decode("utf-8", "replace")[:300]
            return self._failed(f"the tool needs a client of MCP 2026-07-28 with further capabilities: {wanted}")
        return error

    def _result(self, message: wire.Message) -> CallResult:
        found = wire.result_of(
            message.result, from_modern=self._peer.era is Era.MODERN, for_modern=self._call.context.modern
        )
        if isinstance(found, str):
            raise malformed(self._line.name, found)
        if found.is_error and self._call.asked:
            note = text_block(self._asked())
            content = found.content[:-1].rstrip()
            joined = note if content == b"[" else content + b"," + note[1:]
            return dataclasses.replace(found, content=joined)
        return found

    def _asked(self) -> str:
        what = ", ".join(dict.fromkeys(self._call.asked))
        return f"The MCP server {self._line.name} asked its client for {what}, which this gateway does not pass on."

    def _failed(self, why: str) -> CallResult:
        return failed(CallFailure(ErrorCode.UPSTREAM_ERROR, f"MCP server {self._line.name}: {why}"))


def broken_result(broken: Broken, *, idempotent: bool) -> CallResult:
    """The `isError` result of a call that came to nothing: retryable only if a second execution cannot do harm."""
    failure = broken.failure
    if failure.retryable and broken.executed and not idempotent:
        failure = dataclasses.replace(failure, retryable=False)
    return failed(failure)
