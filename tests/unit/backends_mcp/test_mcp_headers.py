"""Mirrored headers, judged by the SDK's own functions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared import inbound

from arion_tds.backends.mcp import headers


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_name_survives_the_header_as_the_sdk_reads_it(text: str) -> None:
    made = headers.value(text)
    assert inbound.decode_header_value(made) == text
    assert made == made.strip()
    assert made.isascii()
    assert made.isprintable()


@pytest.mark.parametrize("text", ["plain", "=?base64?aGk=?=", " edge", "é", "a\nb", ""])
def test_values_are_spelled_as_the_sdk_spells_them(text: str) -> None:
    assert headers.value(text) == inbound.encode_header_value(text)


SCHEMAS: list[dict[str, Any]] = [
    {"properties": {"a": {"type": "string", "x-mcp-header": "Region"}}},
    {"properties": {"a": {"properties": {"b": {"type": "integer", "x-mcp-header": "B"}}}}},
    {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
    {"properties": {"a": {"type": ["string", "null"], "x-mcp-header": "A"}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": "A b"}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": ""}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": 3}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}},
    {"properties": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}},
    {"oneOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]},
    {"$defs": {"d": {"type": "string", "x-mcp-header": "A"}}},
    {"x-mcp-header": "A"},
    {"properties": {"a": {"type": "string", "default": {"x-mcp-header": "A"}}}},
    {"properties": {"x-mcp-header": {"type": "string"}}},
    {},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_annotations_are_judged_as_the_sdk_judges_them(schema: dict[str, Any]) -> None:
    mapped = headers.header_map(schema)
    assert isinstance(mapped, str) == (inbound.find_invalid_x_mcp_header(schema) is not None)
    if not isinstance(mapped, str):
        expected = {path: f"mcp-param-{name.lower()}" for path, name in inbound.x_mcp_header_map(schema).items()}
        assert mapped == expected


@pytest.mark.parametrize(
    "value", ["eu", " x", "ü", True, False, 0, 42, -1, 10**40, pytest.param(10**5000, id="huge"), None, [1], {"a": 1}]
)
def test_mirrored_arguments_are_what_the_sdk_accepts(value: object) -> None:
    schema = {"properties": {"o": {"properties": {"r": {"type": "string", "x-mcp-header": "Re"}}}}}
    arguments = {"o": {"r": value}}
    mapped = headers.header_map(schema)
    assert not isinstance(mapped, str)
    sent = dict(headers.mirrored(mapped, arguments))
    assert inbound.validate_mcp_param_headers(schema, arguments, sent) is None


def test_the_callers_parameter_headers_go_on_and_nothing_else_does() -> None:
    given_headers = [
        ("Mcp-Param-Unknown", "x"),
        ("Authorization", "secret"),
        ("mcp-param-bad", "a\r\nb: c"),
        ("mcp-param-é", "x"),
    ]
    assert headers.forwarded(given_headers) == [("mcp-param-unknown", "x")]


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("X Y", "v", "not a header name"),
        ("Content-Length", "3", "itself"),
        ("Mcp-Param-X", "3", "itself"),
        ("X-Key", "s3cret\nx", "characters"),
    ],
)
def test_a_configured_header_that_cannot_be_sent_is_named_but_never_quoted(name: str, text: str, word: str) -> None:
    why = headers.problem(name, text)
    assert why is not None
    assert word in why
    assert "s3cret" not in why
    assert headers.problem("Authorization", "Bearer x") is None
