"""Schemas of a tool: DataSource text to a compiled-once Schema. The input schema must describe an object."""

from __future__ import annotations

from typing import Final

import msgspec
from envoy.config.core.v3.base_pb2 import DataSource

from arion_tds import schema
from arion_tds.decode import datasource
from arion_tds.decode.case import Case
from arion_tds.schema import Schema

ANY_OBJECT: Final = Schema(b'{"type":"object"}')
"""The input schema of a tool that brings none: every object is taken."""

_decode = msgspec.json.Decoder().decode


def input_schema(source: DataSource, field: str, case: Case) -> Schema | None:
    """A schema whose root says `"type":"object"` (added when the root says no type)."""
    value = _value(source, field, case)
    if value is None:
        return None
    if "type" not in value:
        value = {"type": "object", **value}
    elif value["type"] != "object":
        case.refuse(field, f"has the root type {value['type']!r}: arguments are an object, so it must be 'object'")
        return None
    return _judged(value, field, case)


def output_schema(source: DataSource, field: str, case: Case) -> Schema | None:
    """A schema of any root type."""
    value = _value(source, field, case)
    return None if value is None else _judged(value, field, case)


def _value(source: DataSource, field: str, case: Case) -> dict[str, object] | None:
    text = datasource.text(source, field, case)
    if text is None:
        return None
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        case.refuse(field, f"is not valid JSON: {error}")
        return None
    if not isinstance(value, dict):
        case.refuse(field, "is not a JSON object: a schema must be one")
        return None
    return value


def _judged(value: dict[str, object], field: str, case: Case) -> Schema | None:
    made = schema.of(value)
    if isinstance(made, str):
        case.refuse(field, f"is {made}")
        return None
    return made
