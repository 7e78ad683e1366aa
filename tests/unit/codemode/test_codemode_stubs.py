"""JSON Schemas as TypeScript that a model reads."""

from __future__ import annotations

from typing import Any

import pytest
from codemode_samples import tool
from hypothesis import given
from hypothesis import strategies as st

from arion_tds.codemode import stubs


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "number"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"enum": ["a", 1, None, True]}, '"a" | 1 | null | true'),
        ({"const": "x"}, '"x"'),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "(string | null)[]"),
        ({"type": "array"}, "unknown[]"),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False}, "[string]"),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "[string, ...unknown[]]"),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "string | number"),
        ({"oneOf": [{"type": "string"}, {}]}, "unknown"),
        ({"type": "object"}, "Record<string, unknown>"),
        ({"type": "object", "additionalProperties": False}, "{}"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "{\n  [key: string]: number;\n}"),
        ({"properties": {"a": {"type": "string"}}}, "{\n  a?: string;\n}"),
        (
            {"allOf": [{"properties": {"a": True}}, {"properties": {"b": {}}}]},
            "{\n    a?: unknown;\n  } & {\n    b?: unknown;\n  }",
        ),
        ({"not": {"type": "string"}}, "unknown"),
        (True, "unknown"),
        (False, "never"),
        ("nonsense", "unknown"),
        ({"type": 7, "properties": 3, "required": "a", "items": 1, "enum": {}}, "unknown"),
    ],
)
def test_a_schema_is_written_as_a_type(schema: object, type_: str) -> None:
    assert stubs.of(schema) == type_


def test_members_say_what_their_types_cannot() -> None:
    schema = {
        "type": "object",
        "required": ["city"],
        "properties": {
            "city": {"type": "string", "minLength": 1, "description": "In its\n own spelling */ really"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 3},
            "odd-name": {"type": "string", "format": "date-time"},
        },
    }
    assert stubs.of(schema) == (
        "{\n"
        "  city: string; // In its own spelling * / really; length ≥ 1\n"
        "  days?: number; // ≥ 1; ≤ 14; default 3\n"
        '  "odd-name"?: string; // date-time\n'
        "}"
    )


def test_references_are_followed_and_recursion_ends() -> None:
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Node"}},
        "$defs": {
            "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "gone": {"$ref": "#/x"}}}
        },
    }
    assert "next?: unknown /* Node again */;" in stubs.of(schema)
    assert "gone?: unknown;" in stubs.of(schema)


def test_a_signature_says_how_to_call() -> None:
    inputs = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert stubs.signature(tool()) == "tools.weather.get(): Promise<unknown>"
    assert stubs.signature(tool(inputs=inputs)) == "tools.weather.get(args?: {\n  a?: string;\n}): Promise<unknown>"
    assert stubs.signature(tool(inputs={**inputs, "required": ["a"]}, outputs={"type": "string"})) == (
        "tools.weather.get(args: {\n  a: string;\n}): Promise<string>"
    )
    assert stubs.signature(tool("my-ns.list/all")) == 'tools["my-ns"]["list/all"](): Promise<unknown>'


def test_a_name_as_an_identifier() -> None:
    assert stubs.identifier("list/all-of.it") == "list_all_of_it"
    assert stubs.identifier("2fa") == "_2fa"


def test_a_large_schema_is_cut_and_says_so() -> None:
    many = {"type": "object", "properties": {f"field{number}": {"type": "string"} for number in range(5000)}}
    text = stubs.of(many)
    assert len(text) < 2 * stubs.MAX_CHARACTERS
    assert "// … more: see the schema" in text


def test_a_schema_that_refers_to_itself_many_times_over_stays_small() -> None:
    names = {f"L{level}": {"type": "object", "properties": {}} for level in range(30)}
    for level in range(29):
        names[f"L{level}"]["properties"] = {key: {"$ref": f"#/$defs/L{level + 1}"} for key in ("a", "b", "c", "d")}
    text = stubs.of({"$ref": "#/$defs/L0", "$defs": names})
    assert len(text) < 200_000


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "$ref", "enum", "anyOf", "allOf", "required", "default", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_JSON)
def test_no_schema_is_too_strange(schema: Any) -> None:
    assert stubs.of(schema)
