"""What a call carries beside its tool and arguments: made by the front, read by backends."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from arion_tds.model.rbac import Rbac

if TYPE_CHECKING:
    from arion_tds.tracing.spans import Span


def nothing_granted(rbac: Rbac | None) -> bool:
    """What a caller without a token may use: no permission matches, so ALLOW lists refuse and DENY lists do not."""
    return rbac is None or rbac.deny


@dataclasses.dataclass(slots=True, kw_only=True)  # made with every call: see docs/architecture.md, Rules
class CallContext:
    """One caller's call.

    `params` are the request's further params as compact JSON (`_meta`, `inputResponses`, `requestState`), passed on
    to modern MCP upstreams. `param_headers` are its `Mcp-Param-*` headers. `notify` relays an upstream's
    notification (one JSON-RPC message as bytes) to the caller while the call runs; None where the caller cannot
    hear it. `progress_token` is the caller's token as JSON, if it asked for progress. `allows` says which tools the
    caller may use: for tools of the gateway that find or call others. `session` is the id of a handshake session,
    `subject` whose token it was. `traceparent` and `tracestate` (W3C) go on to upstreams; `span` is the one that
    traceparent names, None where the trace has none here: what is asked of an upstream is then told in no span.
    """

    request_id: str
    traceparent: str
    modern: bool = False
    params: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    param_headers: tuple[tuple[str, str], ...] = ()
    notify: Callable[[bytes], None] | None = None
    progress_token: bytes | None = None
    allows: Callable[[Rbac | None], bool] = nothing_granted
    session: str | None = None
    subject: str | None = None
    tracestate: str | None = None
    span: Span | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """What a gateway allows a call when its backend says nothing: seconds, and bytes of a response."""

    timeout: float
    max_response_bytes: int
