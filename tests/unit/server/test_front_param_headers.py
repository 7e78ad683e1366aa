"""Mcp-Param headers agree with the arguments, judged as the SDK judges them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from front_samples import compiled
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from arion_tds.server import param_headers

REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
NESTED = {
    "type": "object",
    "properties": {
        "at": {
            "type": "object",
            "properties": {
                "zone": {"type": "integer", "x-mcp-header": "Zone"},
                "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
            },
        },
        "region": {"type": "string", "x-mcp-header": "Region"},
    },
}


def check(schema: dict[str, Any], arguments: dict[str, Any], headers: Any) -> str | None:
    declared = param_headers.mirrored(compiled(json.dumps(schema).encode()))
    return param_headers.mismatch(declared, arguments, headers)


def test_equal_values_pass_and_missing_pairs_pass() -> None:
    assert check(REGION, {"region": "eu"}, [("mcp-param-region", "eu")]) is None
    assert check(REGION, {}, []) is None
    assert check(REGION, {"region": None}, []) is None
    assert check(REGION, {"region": "é"}, [("mcp-param-region", "=?base64?w6k=?=")]) is None


@pytest.mark.parametrize(
    ("arguments", "headers", "why"),
    [
        ({"region": "eu"}, [], "missing"),
        ({}, [("mcp-param-region", "eu")], "absent"),
        ({"region": "eu"}, [("mcp-param-region", "us")], "does not match"),
        ({"region": "eu"}, [("mcp-param-region", "=?base64?e?=")], "base64"),
        ({"region": "eu"}, [("mcp-param-region", "eu"), ("mcp-param-region", "eu")], "2 times"),
        ({"region": {"a": 1}}, [("mcp-param-region", "eu")], "cannot be mirrored"),
    ],
)
def test_disagreement_says_which_header_and_how(arguments: dict[str, Any], headers: Any, why: str) -> None:
    found = check(REGION, arguments, headers)
    assert found is not None
    assert found.startswith("Mcp-Param-Region header")
    assert why in found


def test_integers_compare_as_numbers() -> None:
    assert check(NESTED, {"at": {"zone": 42}}, [("mcp-param-zone", "42.0")]) is None
    assert check(NESTED, {"at": {"zone": 2**70}}, [("mcp-param-zone", str(2**70))]) is None
    assert check(NESTED, {"at": {"zone": 42}}, [("mcp-param-zone", "4.2e1")]) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "not a token"}}},
        {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": 5}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"], "x-mcp-header": "A"}}},
        {"type": "object", "x-mcp-header": "A"},
        {"type": "object", "anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]},
        {
            "type": "object",
            "properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}},
        },
    ],
)
def test_an_annotation_that_breaks_the_rules_checks_nothing(schema: dict[str, Any]) -> None:
    assert inbound.find_invalid_x_mcp_header(schema) is not None
    assert param_headers.mirrored(compiled(json.dumps(schema).encode())) == ()


_values = st.sampled_from([None, "eu", "é", " x", "true", "42", 42, 42.0, 4.5, True, False, [1], {"a": 1}, 2**70])
_sent = st.sampled_from(["eu", "42", "42.0", "042", "true", "=?base64?w6k=?=", "=?base64?!?=", "4.5", ""])


@given(
    st.fixed_dictionaries({}, optional={"zone": _values, "dry": _values}),
    _values,
    st.dictionaries(st.sampled_from(["Mcp-Param-Zone", "mcp-param-DRY-RUN", "Mcp-Param-Region", "Mcp-Param-X"]), _sent),
)
def test_every_mixture_is_judged_as_the_sdk_judges_it(inner: Any, region: Any, headers: Any) -> None:
    arguments = {"at": inner, "region": region}
    theirs = inbound.validate_mcp_param_headers(NESTED, arguments, headers)
    ours = check(NESTED, arguments, [(name.lower(), value) for name, value in headers.items()])
    assert (ours is None) == (theirs is None)
