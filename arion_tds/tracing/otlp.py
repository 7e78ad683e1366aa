"""Spans as OTLP/HTTP wants them: an ExportTraceServiceRequest in its JSON form, and what a collector answers. Pure.

In: finished spans. Out: the body of a POST; how many spans an answer refuses. Called by export. Source: OTLP 1.x, "JSON
Protobuf Encoding": ids in hex, 64-bit integers as text, enums as numbers, lowerCamelCase.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from arion_tds.tracing.spans import Span, Value

CONTENT_TYPE: Final = "application/json"
_ERROR: Final = 2
_encode = msgspec.json.Encoder().encode


class Request:
    """What makes bodies. All of them begin with the resource: who says this."""

    def __init__(self, resource: Mapping[str, Value], scope: str, version: str) -> None:
        """`scope` and `version` of the code that made the spans."""
        head = _encode({"attributes": _attributes(resource)})
        self._head = b'{"resourceSpans":[{"resource":%b,"scopeSpans":[{"scope":%b,"spans":[' % (
            head,
            _encode({"name": scope, "version": version}),
        )

    def body(self, spans: Iterable[Span]) -> bytes:
        """All of them as one request."""
        return self._head + b",".join([_encode(_span(one)) for one in spans]) + b"]}]}]}"


def _span(span: Span) -> dict[str, Any]:
    if span.error:
        span.attributes["error.type"] = span.error
    made: dict[str, Any] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": int(span.kind),
        "startTimeUnixNano": str(span.started),
        "endTimeUnixNano": str(span.ended),
        "attributes": _attributes(span.attributes),
    }
    if span.parent:
        made["parentSpanId"] = span.parent
    if span.state is not None:
        made["traceState"] = span.state
    if span.link is not None:
        made["links"] = [{"traceId": span.link[3:35], "spanId": span.link[36:52]}]
    if span.error:
        made["status"] = {"code": _ERROR}
    return made


def _attributes(found: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in found.items()]


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, str):
        return {"stringValue": value}
    return {"boolValue": value} if isinstance(value, bool) else {"intValue": str(value)}


class _Partial(msgspec.Struct, rename="camel"):
    rejected_spans: int | str = 0
    error_message: str = ""


class _Answer(msgspec.Struct, rename="camel"):
    partial_success: _Partial | None = None


_decode = msgspec.json.Decoder(_Answer).decode


def refused(answer: bytes) -> tuple[int, str]:
    """How many spans of a request that was taken are not wanted, and why. An answer that is not JSON refuses none."""
    try:
        partial = _decode(answer).partial_success
        return (0, "") if partial is None else (max(0, int(partial.rejected_spans)), partial.error_message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return 0, ""
