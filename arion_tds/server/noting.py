"""What is learnt about a request while it is served, kept with the request itself: for the access log.

Written by front and calling, read by whoever logs (`RequestLog`), once the request is over.
"""

from __future__ import annotations

from typing import Final, Protocol

from aiohttp import web

from arion_tds.model.result import CallResult, RpcError
from arion_tds.tracing.spans import Span

CLIENT_GONE: Final = 499
"""The status that is noted where the client went away before there was one."""

METHOD: Final = web.RequestKey("method", str)
"""The JSON-RPC method."""

TOOL: Final = web.RequestKey("tool", str)
"""The tool that was called, as it is published."""

OUTCOME: Final = web.RequestKey("outcome", str)
"""What became of the call: `ok`, `tool_error`, `rpc_error`, or the code of a failure."""

REQUEST_ID: Final = web.RequestKey("request_id", str)
"""The id that the call carries to its backend."""

SUBJECT: Final = web.RequestKey("subject", str)
"""Whose token it was."""


TRACE_ID: Final = web.RequestKey("trace_id", str)
"""The W3C trace that the request is part of."""

SPAN: Final = web.RequestKey("span", Span)
"""The request's span, where its trace is sampled."""


class RequestLog(Protocol):
    """Hears of every request that is over. Must not raise or block."""

    def served(self, request: web.BaseRequest, status: int, seconds: float) -> None:
        """`status` as it was sent, or `CLIENT_GONE`; `seconds` from the request's head to the answer's end."""
        ...


def outcome(result: CallResult | RpcError) -> str:
    """One word for a result."""
    if isinstance(result, RpcError):
        return "rpc_error"
    if result.failure is not None:
        return result.failure.code.value
    return "tool_error" if result.is_error else "ok"
