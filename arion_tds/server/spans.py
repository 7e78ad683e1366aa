"""A span for each MCP request: what it is called, what is said in it, how it ends.

In: what front and calling learn of a request. Out: spans, by OpenTelemetry's conventions for MCP servers. One per
front, where traces are wanted at all; called by front and calling. Source: OpenTelemetry semantic conventions for
generative AI, "Model Context Protocol".

Arguments, results, tokens, session ids and values of headers are never in a span.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from arion_tds.model.context import CallContext
from arion_tds.model.result import CallResult, RpcError
from arion_tds.server import eras, noting, trace
from arion_tds.server.reply import Answered
from arion_tds.server.settings import CallPort
from arion_tds.tracing.spans import Attributes, Kind, Span, Tracer
from arion_tds.view import Entry, View

if TYPE_CHECKING:
    from arion_tds.server.calling import Asked

_UNTOLD: Final = frozenset({"subscriptions/listen"})
"""Requests that last as long as their client likes: their spans would be of no use to anybody."""

_NAMED: Final = frozenset({"initialize", "server/discover", "ping", "tools/list", "tools/call"})
_OTHER: Final = "other"
"""The name of all methods that are not served: a client could invent any number of them."""

_REVISIONS: Final = frozenset({*eras.LEGACY_REVISIONS, *eras.MODERN_REVISIONS})
_VERSION: Final = "mcp.protocol.version"
_TOOL: Final = "gen_ai.tool.name"
_LONGEST: Final = 128
"""Characters of a JSON-RPC id that are told."""


class Spans:
    """Those of one listener."""

    def __init__(self, tracer: Tracer, listener: str) -> None:
        """`listener` by name."""
        self._tracer = tracer
        self._listener = listener

    def begin(self, asked: Asked, version: str | None) -> None:
        """Start the request's span, if its trace is sampled. `version` as the caller's headers say it."""
        message = asked.message
        if message.method in _UNTOLD:
            return
        method = message.method if message.method in _NAMED else _OTHER
        found = trace.sent(asked.http.headers, asked.meta)
        span = self._tracer.start(method, Kind.SERVER, found.parent, found.state)
        if span is None:
            return
        if found.ambient is not None and found.ambient != found.parent:
            span.link = found.ambient
        attributes = span.attributes = {
            "mcp.method.name": method,
            "jsonrpc.request.id": message.id.strip(b'"').decode("utf-8", "replace")[:_LONGEST],
            "network.transport": "tcp",
            "network.protocol.name": "http",
            "arion_tds.listener": self._listener,
        }
        if version in _REVISIONS:
            attributes[_VERSION] = version
        if asked.http.remote:
            attributes["client.address"] = asked.http.remote
        asked.span = span
        asked.http[noting.SPAN] = span
        asked.http[noting.TRACE_ID] = span.trace_id

    @staticmethod
    async def around(request: web.BaseRequest, answering: Awaitable[Answered]) -> Answered:
        """Answer, and end the span that was begun meanwhile."""
        error = "cancelled"
        try:
            response = await answering
            error = "" if response.status < 400 else str(response.status)
        except Exception as raised:
            error = type(raised).__name__
            raise
        else:
            return response
        finally:
            span = request.get(noting.SPAN)
            if span is not None:
                span.finish(span.error or error)


def called(span: Span, tool: str, *, published: bool) -> None:
    """It calls this tool. `published`: there is such a tool, so that the span may be named after it."""
    span.attributes["gen_ai.operation.name"] = "execute_tool"
    if tool:
        span.attributes[_TOOL] = tool
    if published:
        span.name = f"{span.name} {tool}"


def came(span: Span, outcome: CallResult | RpcError) -> None:
    """What became of the call."""
    if isinstance(outcome, RpcError):
        refused(span, outcome.code)
    elif outcome.is_error:
        span.error = "tool_error"
        if outcome.failure is not None:
            span.attributes["arion_tds.failure"] = outcome.failure.code.value


def refused(span: Span, code: int) -> None:
    """It is answered with a JSON-RPC error of this code."""
    span.error = str(code)
    span.attributes["rpc.response.status_code"] = str(code)


async def within(
    calls: CallPort, view: View, entry: Entry, arguments: dict[str, Any], context: CallContext
) -> CallResult | RpcError:
    """Call a tool on behalf of another one's call: with a span of its own, where that call has one."""
    if context.span is None:
        return await calls.call(view, entry, arguments, context)
    tool = entry.tool.qualified
    attributes: Attributes = {"gen_ai.operation.name": "execute_tool", _TOOL: tool}
    span = context.span.child(f"execute_tool {tool}", attributes, Kind.INTERNAL)
    error = "cancelled"
    try:
        own = dataclasses.replace(context, traceparent=span.traceparent, span=span)
        outcome = await calls.call(view, entry, arguments, own)
        came(span, outcome)
        error = span.error
    except Exception as raised:
        error = type(raised).__name__
        raise
    else:
        return outcome
    finally:
        span.finish(error)
