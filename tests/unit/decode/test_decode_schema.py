"""Schemas of tools: what is taken, what is made of it, and what is refused."""

from __future__ import annotations

import pytest
from decode_samples import a_tool, rest, why

from arion_tds import schema
from arion_tds.decode.table import Decoded
from arion_tds.pb import mcp_gateway_pb2 as pb


def with_input(text: str) -> Decoded:
    return rest(lambda tool: setattr(tool.input_schema, "inline_string", text))


def with_output(text: str) -> Decoded:
    return rest(lambda tool: setattr(tool.output_schema, "inline_string", text))


def test_a_schema_is_kept_as_compact_text_in_its_own_order() -> None:
    decoded = with_input('{ "properties": { "b": {}, "a": {} },\n "type": "object" }')
    assert a_tool(decoded).input_schema.text == b'{"properties":{"b":{},"a":{}},"type":"object"}'


def test_an_absent_input_schema_takes_every_object() -> None:
    decoded = rest(lambda tool: tool.ClearField("input_schema"))
    assert a_tool(decoded).input_schema.text == b'{"type":"object"}'


def test_an_input_schema_without_type_becomes_one_of_an_object() -> None:
    assert a_tool(with_input('{"properties":{}}')).input_schema.text == b'{"type":"object","properties":{}}'


@pytest.mark.parametrize("kind", ['"array"', '"string"', '["object","null"]', '["object"]', "null", '""'])
def test_an_input_schema_of_another_root_type_is_refused(kind: str) -> None:
    assert "input_schema " in why(with_input(f'{{"type":{kind}}}'))


def test_an_output_schema_may_have_any_root_type() -> None:
    made = a_tool(with_output('{"type": "array", "items": {"type": "integer"}}')).output_schema
    assert made is not None
    assert made.text == b'{"type":"array","items":{"type":"integer"}}'


@pytest.mark.parametrize("bend", [with_input, with_output])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("{", "is not valid JSON"),
        ("nope", "is not valid JSON"),
        ("{'a': 1}", "is not valid JSON"),
        ("[1]", "is not a JSON object"),
        ("true", "is not a JSON object"),
        ('"x"', "is not a JSON object"),
        ('{"type":"object","properties":[]}', "is not valid JSON Schema"),
        ('{"type":"object","properties":{"a":{"type":"text"}}}', "is not valid JSON Schema"),
        ('{"type":"object","properties":{"a":{"minimum":"1"}}}', "is not valid JSON Schema"),
        ('{"type":"object","required":["a","a"]}', "is not valid JSON Schema"),
        ('{"type":"object","properties":{"a":{"pattern":"("}}}', "is not valid JSON Schema"),
        ('{"type":"object","patternProperties":{"(":{}}}', "is not valid JSON Schema"),
        ('{"type":"object","properties":{"a":{"\\u0070attern":"("}}}', "is not valid JSON Schema"),
        ('{"type":"object","properties":{"a":{"$ref":"https://evil.test/s.json"}}}', "https://evil.test/s.json"),
        ('{"type":"object","properties":{"a":{"$ref":"#/$defs/gone"}}}', "Pointer '/$defs/gone' does not exist"),
        ('{"type":"object","not":' * 400 + "{}" + "}" * 400, "is not usable as JSON Schema"),
        ("[" * 50_000, "is not valid JSON"),
        ('{"a":' * 50_000, "is not valid JSON"),
    ],
)
def test_what_is_not_a_usable_schema_is_refused(bend: object, text: str, reason: str) -> None:
    assert callable(bend)
    refused = why(bend(text))
    assert refused.startswith("input_schema " if bend is with_input else "output_schema ")
    assert reason in refused


def test_references_inside_the_schema_are_served() -> None:
    text = '{"type":"object","$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"}}}'
    made = a_tool(with_input(text)).input_schema
    assert made.mismatch({"a": 1}) is None
    assert made.mismatch({"a": "x"}) is not None


def test_a_property_may_be_called_pattern_or_begin_with_a_dollar() -> None:
    made = a_tool(with_input('{"type":"object","properties":{"pattern":{"type":"string"},"$x":{}}}')).input_schema
    assert made.matches({"pattern": "("})


def test_integers_of_any_size_stay_exact() -> None:
    text = b'{"type":"object","properties":{"a":{"maximum":123456789012345678901234567890}}}'
    assert a_tool(with_input(text.decode())).input_schema.text == text


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"type": "object", "properties": {"a": {"type": "string", "format": "date", "enum": ["x"], "default": 3}}},
        {"type": "foo"},
        {"multipleOf": 0},
        {"minLength": -1},
        {"minLength": 2.0},
        {"maxItems": 10**19},
        {"minimum": 10**400},
        {"items": [{}]},
        {"format": 3},
        {"if": 3},
        {"exclusiveMinimum": True},
        {"dependencies": {"a": ["b"]}},
        {"definitions": 5},
        {"contentSchema": 3},
        {"id": 3},
        {"properties": {"a": {"not": {"anyOf": []}}}},
    ],
)
def test_the_short_way_of_judging_a_schema_agrees_with_compiling_it(value: dict[str, object]) -> None:
    short, long = schema.of(value), schema.check(value)
    assert isinstance(short, str) == (long is not None)
    if isinstance(short, schema.Schema):
        short.matches({})  # compiles


def test_a_schema_as_inline_bytes_may_begin_with_a_byte_order_mark() -> None:
    def bend(tool: pb.Tool) -> None:
        tool.input_schema.inline_bytes = b'\xef\xbb\xbf{"type":"object"}'

    assert a_tool(rest(bend)).input_schema.text == b'{"type":"object"}'
