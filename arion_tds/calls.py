"""From a tool and its arguments to a result: validate, build, send, read. The only reader of backends.

In: the View that the request took, an entry of it, arguments and context. Out: a `CallResult` (also for failures) or a
JSON-RPC error of an MCP upstream. Called by the MCP front, and by code mode for its host calls. One per listener.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec

from arion_tds.backends.clusters import Clusters
from arion_tds.backends.mcp.discovery import is_idempotent
from arion_tds.backends.mcp.pool import Upstreams
from arion_tds.backends.rest import RestCaller
from arion_tds.metrics import Metrics, ToolCalls
from arion_tds.model.backend import McpBackend, OperationBackend, RestBackend
from arion_tds.model.context import CallContext, Limits
from arion_tds.model.gateway import Gateway
from arion_tds.model.result import CallFailure, CallResult, ErrorCode, RpcError, failed
from arion_tds.model.tool import Tool
from arion_tds.openapi import request, respond
from arion_tds.openapi.binding import Binding
from arion_tds.view import Entry, View

_encode = msgspec.json.Encoder().encode
_NAMES: dict[type, str] = {RestBackend: "rest", OperationBackend: "openapi", McpBackend: "mcp"}


Audit = Callable[[str, dict[str, Any], CallContext, str, float], None]
"""Hears of a call that is over: the tool's qualified name, arguments, context, outcome, seconds. Must not block."""


@dataclasses.dataclass(frozen=True, slots=True)
class Backends:
    """Everything that calls go to; shared by all listeners."""

    clusters: Clusters
    upstreams: Upstreams


class Calls:
    """The read path of one listener."""

    def __init__(
        self,
        listener: str,
        gateway: Gateway,
        backends: Backends,
        metrics: Metrics,
        clock: Callable[[], float],
        *,
        audit: Audit | None = None,
    ) -> None:
        """`clock` gives seconds and never goes back. `audit` hears of every call that is over."""
        self._audit = audit
        self._limits = Limits(gateway.upstream_timeout, gateway.max_response_bytes)
        self._clusters = backends.clusters
        self._upstreams = backends.upstreams
        self._rest = RestCaller(backends.clusters)
        self._clock = clock
        self._by_tool = ToolCalls(metrics.tool_calls, listener, metrics.tool_limit)
        self._seconds = {name: metrics.call_seconds.labels(listener, name) for name in _NAMES.values()}
        self._outcomes = {
            (name, outcome): metrics.calls.labels(listener, name, outcome)
            for name in _NAMES.values()
            for outcome in ("ok", "tool_error", "rpc_error", *(code.value for code in ErrorCode))
        }

    async def call(
        self, view: View, entry: Entry, arguments: dict[str, Any], context: CallContext
    ) -> CallResult | RpcError:
        """Call the tool. Every fault of arguments or upstream is a returned value; only cancellation is raised."""
        del view
        started = self._clock()
        result = await self._dispatch(entry.tool, arguments, context)
        backend = _NAMES[type(entry.tool.backend)]
        outcome = _outcome(result)
        self._outcomes[backend, outcome].inc()
        self._by_tool.count(entry.tool.qualified, good=outcome == "ok")
        seconds = self._clock() - started
        self._seconds[backend].observe(seconds)
        if self._audit is not None:
            self._audit(entry.tool.qualified, arguments, context, outcome, seconds)
        return result

    async def _dispatch(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> CallResult | RpcError:
        backend = tool.backend
        if isinstance(backend, McpBackend):
            # The upstream is authoritative for its own schemas.
            return await self._upstreams.call(
                backend, _encode(arguments), context, self._limits, idempotent=is_idempotent(tool)
            )
        if not tool.input_schema.matches(arguments):
            why = tool.input_schema.mismatch(arguments)
            return failed(CallFailure(ErrorCode.INVALID_ARGUMENTS, f"arguments of {tool.qualified}: {why}"))
        if isinstance(backend, RestBackend):
            return await self._rest.call(backend, tool.output_schema, arguments, self._limits, context)
        return await self._operation(tool, backend, arguments, context)

    async def _operation(
        self, tool: Tool, backend: OperationBackend, arguments: dict[str, Any], context: CallContext
    ) -> CallResult:
        binding = backend.binding
        if not isinstance(binding, Binding):
            msg = f"{tool.qualified} has a binding of another package: {type(binding).__name__}"
            raise TypeError(msg)
        built = request.build(binding, arguments)
        if isinstance(built, CallFailure):
            return failed(built)
        response = await self._clusters.send(backend.cluster, built, backend.policy, self._limits, context)
        if isinstance(response, CallFailure):
            return failed(response)
        return respond.respond(binding, tool.output_schema, response)


def _outcome(result: CallResult | RpcError) -> str:
    if isinstance(result, RpcError):
        return "rpc_error"
    if result.failure is not None:
        return result.failure.code.value
    return "tool_error" if result.is_error else "ok"
