"""The JSON of OTLP, letter by letter, and what a collector's answer means."""

from __future__ import annotations

import json

import pytest

from arion_tds.tracing import otlp
from arion_tds.tracing.spans import Kind, Span, Tracer

REQUEST = otlp.Request({"service.name": "gw"}, "arion_tds", "1.2")


def finished(error: str = "", **more: str) -> Span:
    tracer = Tracer(lambda _: None, ratio=1, clock=lambda: 1700000000123456789, random_bits=lambda bits: bits)
    span = tracer.start("tools/call x", Kind.SERVER, more.get("parent"), more.get("state"))
    assert span is not None
    span.link = more.get("link")
    span.attributes = {"text": "é", "number": 1 << 60, "yes": True}
    span.finish(error)
    return span


def test_a_span_is_what_otlp_says_it_is() -> None:
    assert json.loads(REQUEST.body([finished()])) == {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "gw"}}]},
                "scopeSpans": [
                    {
                        "scope": {"name": "arion_tds", "version": "1.2"},
                        "spans": [
                            {
                                "traceId": "00000000000000000000000000000080",
                                "spanId": "0000000000000040",
                                "name": "tools/call x",
                                "kind": 2,
                                "startTimeUnixNano": "1700000000123456789",
                                "endTimeUnixNano": "1700000000123456789",
                                "attributes": [
                                    {"key": "text", "value": {"stringValue": "é"}},
                                    {"key": "number", "value": {"intValue": "1152921504606846976"}},
                                    {"key": "yes", "value": {"boolValue": True}},
                                ],
                            }
                        ],
                    }
                ],
            }
        ]
    }


def test_what_a_span_may_have_is_there_when_it_has_it() -> None:
    parent, link = f"00-{'a' * 32}-{'b' * 16}-01", f"00-{'c' * 32}-{'d' * 16}-01"
    body = json.loads(REQUEST.body([finished("timeout", parent=parent, state="v=1", link=link)]))
    (span,) = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert (span["traceId"], span["parentSpanId"], span["traceState"]) == ("a" * 32, "b" * 16, "v=1")
    assert span["links"] == [{"traceId": "c" * 32, "spanId": "d" * 16}]
    assert span["status"] == {"code": 2}
    assert span["attributes"][-1] == {"key": "error.type", "value": {"stringValue": "timeout"}}


def test_spans_stand_side_by_side() -> None:
    body = json.loads(REQUEST.body([finished(), finished()]))
    assert len(body["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 2


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        (b"{}", (0, "")),
        (b"", (0, "")),
        (b"<html>", (0, "")),
        (b"\xff", (0, "")),
        (b'{"partialSuccess":{}}', (0, "")),
        (b'{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}', (3, "no")),
        (b'{"partialSuccess":{"rejectedSpans":3}}', (3, "")),
        (b'{"partialSuccess":{"rejectedSpans":"-3"}}', (0, "")),
        (b'{"partialSuccess":{"rejectedSpans":"many"}}', (0, "")),
    ],
)
def test_an_answer_says_how_many_are_not_wanted(answer: bytes, refused: tuple[int, str]) -> None:
    assert otlp.refused(answer) == refused
