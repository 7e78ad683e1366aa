"""The headers of a request to a cluster, checked: nothing that a caller sent, nothing that would frame another request.

In: HttpRequest, HttpPolicy and CallContext. Out: header pairs, or the failure that names the header. Called by
clusters. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from arion_tds.model.context import CallContext
from arion_tds.model.http import HttpRequest
from arion_tds.model.policy import HttpPolicy
from arion_tds.model.result import CallFailure, ErrorCode

MAX_TARGET: Final = 64 << 10
"""Bytes of a request target: beyond what servers take (8 KiB is usual), short of what would hurt."""

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_VALUE = re.compile(r"[\x20-\x7e\t]*\Z")
_AUTHORITY = re.compile(r"[\x21-\x7e]+\Z")
_FRAMING: Final = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)


def outgoing(request: HttpRequest, policy: HttpPolicy, context: CallContext) -> list[tuple[str, str]] | CallFailure:
    """The headers of a request beside the static ones: ours first, so that a tool's own value can take their place."""
    if len(request.target) > MAX_TARGET:
        return CallFailure(
            ErrorCode.INVALID_ARGUMENTS,
            f"the arguments make a request target of {len(request.target)} bytes, more than {MAX_TARGET}: shorten them",
        )
    headers = [("x-request-id", context.request_id), ("traceparent", context.traceparent)]
    if context.tracestate is not None:
        headers.append(("tracestate", context.tracestate))
    for name, value in request.headers:
        lower = name.lower()
        if lower in _FRAMING or not _NAME.match(name):
            return CallFailure(ErrorCode.UPSTREAM_ERROR, f"the tool sets the header {name!r}, which it must not")
        if not _VALUE.match(value):
            return CallFailure(
                ErrorCode.INVALID_ARGUMENTS,
                f"the value of the header {name!r} holds a character that is not visible ASCII, blank or tab",
            )
        if lower == "x-request-id":
            headers[0] = (name, value)
        elif lower == "traceparent":
            headers[1] = (name, value)
        elif lower == "tracestate" and context.tracestate is not None:
            headers[2] = (name, value)
        elif lower != "accept-encoding":  # what can be decoded is known here, not in a tool
            headers.append((name, value))
    if policy.authority is not None:
        if not _AUTHORITY.match(policy.authority):
            return CallFailure(ErrorCode.UPSTREAM_ERROR, f"the authority {policy.authority!r} cannot be a Host header")
        headers.append(("host", policy.authority))
    return headers
