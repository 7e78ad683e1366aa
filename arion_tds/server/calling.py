"""One tools/call from its params to its response: find the tool, check mirrored headers, run it, answer.

In: what front has judged of the request (`Asked`). Out: the response. Called by front; calls `CallPort`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from aiohttp import web

from arion_tds.model.caller import Caller
from arion_tds.model.context import CallContext
from arion_tds.model.result import CallResult, RpcError
from arion_tds.server import eras, exchange, jsonrpc, noting, param_headers, render, spans, trace
from arion_tds.server.answering import Answering, Silences
from arion_tds.server.guard import Accepts
from arion_tds.server.jsonrpc import Params, Request
from arion_tds.server.methods import Call, Methods
from arion_tds.server.reply import Answered, Reply
from arion_tds.server.running import Running
from arion_tds.server.settings import CallPort, ExtraTool, FrontSettings, Observer
from arion_tds.view import View

if TYPE_CHECKING:
    from arion_tds.tracing.spans import Span

_log = logging.getLogger("arion_tds.server")
_BLOCK: Final = 128 * trace.RANDOM_BYTES
_INTERNAL = RpcError(jsonrpc.INTERNAL_ERROR, "Internal error")
_CANCELLED = RpcError(eras.REQUEST_CANCELLED, "Request cancelled")

Outcome = CallResult | RpcError


@dataclasses.dataclass(slots=True)
class Asked:
    """One JSON-RPC request with all that was learnt about it. `session` is a good id, or None (always None if modern).

    `meta`: the members of `params._meta`, if it is an object. `span`: where its trace is sampled.
    """

    http: web.BaseRequest
    message: Request
    caller: Caller
    accepts: Accepts
    modern: bool
    meta: Params | None
    session: str | None = None
    span: Span | None = None

    def result(self, body: bytes) -> Reply:
        """Answer with a result object."""
        return exchange.answer(self.accepts, 200, jsonrpc.result(self.message.id, body))

    def error(self, error: RpcError | eras.Refusal) -> Reply:
        """Answer with an error and the HTTP status that the era gives it."""
        status = eras.http_status(error.code, modern=self.modern)
        if self.span is not None:
            spans.refused(self.span, error.code)
        body = jsonrpc.error(self.message.id, error.code, error.message, error.data)
        return exchange.answer(self.accepts, status, body)


class CallRunner:
    """Runs the calls of one listener."""

    def __init__(
        self,
        settings: FrontSettings,
        methods: Methods,
        calls: CallPort,
        observer: Observer,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """`random_bytes`: for request ids and traces."""
        self._settings = settings
        self._methods = methods
        self._calls = calls
        self._observer = observer
        self._random = random_bytes
        self._block = b""
        self._at = 0
        self._silences = Silences(settings.sse_after)
        self.running = Running()

    async def run(self, view: View, asked: Asked) -> Answered:
        """Answer a tools/call. Cancelled when the client goes away, and the call with it."""
        call = self._methods.call(view, asked.message.params, asked.caller.allows)
        if isinstance(call, RpcError):
            asked.http[noting.TOOL], asked.http[noting.OUTCOME] = _asked_name(asked), "rpc_error"
            if asked.span is not None:
                spans.called(asked.span, _asked_name(asked), published=False)
            return asked.error(call)
        name = _asked_name(asked) if isinstance(call.target, ExtraTool) else call.target.published
        asked.http[noting.TOOL] = name
        if asked.span is not None:
            spans.called(asked.span, name, published=True)
        mirrored = exchange.mirrored(asked.http) if asked.modern else ()
        if asked.modern and not isinstance(call.target, ExtraTool):
            declared = param_headers.mirrored(call.target.tool.input_schema)
            wrong = param_headers.mismatch(declared, call.arguments, mirrored) if declared else None
            if wrong is not None:
                return asked.error(RpcError(eras.HEADER_MISMATCH, wrong))
        answering = None
        token = None if asked.meta is None else asked.meta.get("progressToken")
        if asked.accepts.stream:
            log = asked.modern and asked.meta is not None and eras.LOG_LEVEL_KEY in asked.meta
            wants = (token is not None, log)
            answering = Answering(asked.http, self._settings, wants, self._observer.dropped, self._silences)
        random, found = self._drawn(), trace.sent(asked.http.headers, asked.meta)
        span, parent = asked.span, found.parent or trace.traceparent(None, random)
        context = CallContext(
            request_id=trace.request_id(asked.http.headers.get(exchange.REQUEST_ID), random),
            traceparent=parent if span is None else span.traceparent,
            tracestate=found.state,
            span=span,
            modern=asked.modern,
            params=call.rest,
            param_headers=mirrored,
            notify=None if answering is None else answering.notify,
            progress_token=None if token is None else bytes(token),
            allows=asked.caller.allows,
            session=asked.session,
            subject=asked.caller.subject,
        )
        asked.http[noting.REQUEST_ID], asked.http[noting.TRACE_ID] = context.request_id, context.traceparent[3:35]
        return await self._answer(view, asked, call, context, answering)

    def _drawn(self) -> bytes:
        """Random bytes for one call, of a block: to ask the system for each costs as much as to parse the call."""
        at = self._at
        if at >= len(self._block):
            self._block, at = self._random(_BLOCK), 0
        self._at = at + trace.RANDOM_BYTES
        return self._block[at : self._at]

    async def _answer(
        self, view: View, asked: Asked, call: Call, context: CallContext, answering: Answering | None
    ) -> Answered:
        try:
            outcome = await self._outcome(view, asked, call, context)
            asked.http[noting.OUTCOME] = noting.outcome(outcome)
            if asked.span is not None:
                spans.came(asked.span, outcome)
            if answering is None or not answering.started:
                return self._plain(asked, outcome)
            return await answering.finish(self._render(asked, outcome))
        finally:
            if answering is not None:
                await answering.close()

    async def _outcome(self, view: View, asked: Asked, call: Call, context: CallContext) -> Outcome:
        """Run it. A legacy client's cancellation is an outcome; a disconnect or a shutdown cancels us."""
        task = asyncio.current_task()
        session, identity = asked.session, asked.message.id
        if session is None or task is None or not self.running.add(session, identity, task):
            return await self._guarded(view, asked, call, context)
        try:
            return await self._guarded(view, asked, call, context)
        except asyncio.CancelledError:
            if self.running.was_cancelled(task):
                return _CANCELLED
            raise
        finally:
            self.running.remove(session, identity, task)

    async def _guarded(self, view: View, asked: Asked, call: Call, context: CallContext) -> Outcome:
        try:
            if isinstance(call.target, ExtraTool):
                return await call.target.handler(view, call.arguments, context)
            return await self._calls.call(view, call.target, call.arguments, context)
        except Exception:  # noqa: BLE001 - top of the call: a fault of ours is logged and still answered
            _log.exception("call of %s failed (request %s)", _asked_name(asked), context.request_id)
            return _INTERNAL

    def _render(self, asked: Asked, outcome: Outcome) -> bytes:
        if isinstance(outcome, RpcError):
            return jsonrpc.error(asked.message.id, outcome.code, outcome.message, outcome.data)
        body = render.modern(outcome, self._methods.identity) if asked.modern else render.legacy(outcome)
        return jsonrpc.result(asked.message.id, body)

    def _plain(self, asked: Asked, outcome: Outcome) -> Reply:
        status = eras.http_status(outcome.code, modern=asked.modern) if isinstance(outcome, RpcError) else 200
        return exchange.answer(asked.accepts, status, self._render(asked, outcome))


def _asked_name(asked: Asked) -> str:
    name = jsonrpc.text(jsonrpc.member(asked.message.params, "name"))
    return "" if name is None else name[:256]
