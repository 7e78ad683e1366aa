"""A span for each thing that is asked of an upstream: an HTTP request, or a tools/call of an MCP server.

In: the span of the call that asks, and what is asked of whom. Out: spans, by OpenTelemetry's conventions for HTTP and
MCP clients, each ended with what became of it. Called by attempts and mcp.calling where a call has a span.

Paths, queries, headers and bodies are made of arguments and secrets: none of them is ever in a span.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from yarl import URL

from arion_tds.backends.exchange import Broken
from arion_tds.model.http import HttpResponse
from arion_tds.model.result import CallFailure, CallResult, RpcError

if TYPE_CHECKING:
    from arion_tds.tracing.spans import Attributes, Span

CANCELLED: Final = "cancelled"
TIMEOUT: Final = "timeout"
_RESENT: Final = "http.request.resend_count"


class Tries:
    """The tries of one HTTP request, all of them parts of `parent`."""

    __slots__ = ("_count", "parent")

    def __init__(self, parent: Span) -> None:
        """None has begun."""
        self.parent = parent
        self._count = 0

    def begin(self, cluster: str, origin: str, method: str) -> Span:
        """The next one, at `origin` (`http://host:port`)."""
        attributes: Attributes = {
            "http.request.method": method,
            **server(origin),
            "network.protocol.version": "1.1",
            "arion_tds.cluster": cluster,
        }
        if self._count:
            attributes[_RESENT] = self._count
        self._count += 1
        return self.parent.child(method, attributes)

    def headers(self, headers: list[tuple[str, str]], span: Span) -> list[tuple[str, str]]:
        """The request's headers for a try: it is the parent of what the upstream does, unless the tool says another."""
        ours = self.parent.traceparent
        return [
            (name, span.traceparent if value == ours and name == "traceparent" else value) for name, value in headers
        ]


def answered(span: Span, outcome: HttpResponse | Broken | CallFailure) -> str:
    """What became of a try, as a class of errors."""
    if isinstance(outcome, HttpResponse):
        span.attributes["http.response.status_code"] = outcome.status
        return str(outcome.status) if outcome.status >= 400 else ""
    if isinstance(outcome, Broken):
        return outcome.fault.name.lower()
    if outcome.status is not None:
        span.attributes["http.response.status_code"] = outcome.status
    return outcome.code.value


def call(parent: Span, tool: str, version: str, number: int, resent: int) -> Span:
    """A tools/call of an MCP server, by the server's own name of the tool; `number` is its JSON-RPC id."""
    attributes: Attributes = {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "jsonrpc.request.id": str(number),
        "mcp.protocol.version": version,
    }
    if resent:
        attributes[_RESENT] = resent
    return parent.child(f"tools/call {tool}", attributes)


def came(span: Span, outcome: CallResult | RpcError) -> str:
    """What became of a tools/call, as a class of errors."""
    if isinstance(outcome, RpcError):
        span.attributes["rpc.response.status_code"] = str(outcome.code)
        return str(outcome.code)
    return "tool_error" if outcome.is_error else ""


@functools.lru_cache(maxsize=1024)
def server(origin: str) -> Attributes:
    """Whom an origin, or the URL of a server, names: scheme, host and port alone. Not to be changed."""
    url = URL(origin, encoded=True)
    found: Attributes = {"url.scheme": url.scheme, "server.address": url.raw_host or ""}
    if url.port is not None:
        found["server.port"] = url.port
    return found
