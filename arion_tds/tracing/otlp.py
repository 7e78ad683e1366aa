"""Spans as OTLP/HTTP wants them: an ExportTraceServiceRequest in its JSON form, and what a collector answers. Pure.

In: finished spans. Out: the body of a POST; how many spans an answer refuses. Called by export. Source: OTLP 1.x, "JSON
Protobuf Encoding": ids in hex, 64-bit integers as text, enums as numbers, lowerCamelCase.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from arion_tds.tracing.spans import Span, Value

CONTENT_TYPE: Final = "application/json"
_ERROR: Final = 2
_KNOWN: Final = 2048
"""Texts and attributes whose JSON is kept, of `_SHORT` characters at most."""

_SHORT: Final = 256
_encode = msgspec.json.Encoder().encode


class Request:
    """What makes bodies. All of them begin with the resource: who says this."""

    def __init__(self, resource: Mapping[str, Value], scope: str, version: str) -> None:
        """`scope` and `version` of the code that made the spans."""
        said = ",".join(map(_attribute, resource.items()))
        by = f'{{"name":{_text(scope)},"version":{_text(version)}}}'
        self._head = f'{{"resourceSpans":[{{"resource":{{"attributes":[{said}]}},"scopeSpans":[{{"scope":{by},"spans":['

    def body(self, spans: Iterable[Span]) -> bytes:
        """All of them as one request. UnicodeEncodeError when a text cannot be written."""
        return f"{self._head}{','.join(map(_span, spans))}]}}]}}]}}".encode()


def _span(span: Span) -> str:
    """Written by hand: a third of what encoding objects costs, since most attributes have been seen before."""
    further = ""
    if span.error:
        span.attributes["error.type"] = span.error
        further = f',"status":{{"code":{_ERROR}}}'
    if span.parent:
        further += f',"parentSpanId":"{span.parent}"'
    if span.state is not None:
        further += f',"traceState":{_text(span.state)}'
    if span.link is not None:
        further += f',"links":[{{"traceId":"{span.link[3:35]}","spanId":"{span.link[36:52]}"}}]'
    attributes = ",".join(map(_attribute, span.attributes.items()))
    return (
        f'{{"traceId":"{span.trace_id}","spanId":"{span.span_id}","name":{_text(span.name)},"kind":{span.kind:d},'
        f'"startTimeUnixNano":"{span.started}","endTimeUnixNano":"{span.ended}","attributes":[{attributes}]{further}}}'
    )


@functools.lru_cache(maxsize=_KNOWN)
def _text(text: str) -> str:
    return _encode(text).decode()


@functools.lru_cache(maxsize=_KNOWN)
def _of_text(name: str, value: str) -> str:
    return f'{{"key":{_encode(name).decode()},"value":{{"stringValue":{_encode(value).decode()}}}}}'


def _attribute(item: tuple[str, Value]) -> str:
    name, value = item
    if isinstance(value, str):
        return _of_text(name, value) if len(value) <= _SHORT else _of_text.__wrapped__(name, value)
    written = f'"boolValue":{str(value).lower()}' if isinstance(value, bool) else f'"intValue":"{value}"'
    return f'{{"key":"{name}","value":{{{written}}}}}'


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
