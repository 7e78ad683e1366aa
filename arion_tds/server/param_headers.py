"""`x-mcp-header`: arguments that a 2026-07-28 client mirrors in `Mcp-Param-*` headers, and whether they agree. Pure.

In: a tool's input schema, a call's arguments, the request's `Mcp-Param-*` headers. Out: None, or the sentence of a
HeaderMismatch. An annotation that breaks the rules makes conforming clients drop the tool, so it checks nothing here.
Called by front for modern calls. (MCP 2026-07-28, basic/transports/streamable-http, "Custom Headers".)
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from arion_tds.schema import Schema
from arion_tds.server import eras

PREFIX: Final = "mcp-param-"
_KEY: Final = "x-mcp-header"
_KEY_BYTES: Final = b'"x-mcp-header"'
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_DECIMAL: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?\Z")
_TYPES: Final = frozenset({"string", "integer", "boolean"})
_ONE: Final = frozenset(
    (
        "items",
        "contains",
        "unevaluatedItems",
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
        "not",
        "if",
        "then",
        "else",
        "contentSchema",
    )
)
_LISTS: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_MAPS: Final = frozenset(("patternProperties", "dependentSchemas", "$defs", "definitions"))


@dataclasses.dataclass(frozen=True, slots=True)
class Mirrored:
    """One annotated property: its path in the arguments, the header (as declared, and in lower case), its type."""

    path: tuple[str, ...]
    header: str
    key: str
    integer: bool


def mirrored(schema: Schema) -> tuple[Mirrored, ...]:
    """The annotated properties of an input schema; empty if there are none, or if one breaks the rules."""
    text = schema.text
    return _mirrored(text) if _KEY_BYTES in text else ()


@functools.lru_cache(maxsize=1024)
def _mirrored(text: bytes) -> tuple[Mirrored, ...]:
    found: list[Mirrored] = []
    for path, node in _positions(Schema(text).value()):
        if _KEY not in node:
            continue
        token, kind = node[_KEY], node.get("type")
        if not path or not isinstance(token, str) or not _TOKEN.match(token):
            return ()
        if not isinstance(kind, str) or kind not in _TYPES:
            return ()
        found.append(Mirrored(path, f"Mcp-Param-{token}", PREFIX + token.lower(), kind == "integer"))
    return tuple(found) if len({one.key for one in found}) == len(found) else ()


def _positions(root: object) -> Iterator[tuple[tuple[str, ...] | None, dict[str, Any]]]:
    """Every schema in the schema, with its chain of `properties` keys, or None where the chain is broken."""
    stack: list[tuple[tuple[str, ...] | None, object]] = [((), root)]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, dict):
            continue
        yield path, node
        for keyword, below in node.items():
            if keyword == "properties" and isinstance(below, dict):
                stack.extend(((*path, name) if path is not None else None, one) for name, one in below.items())
            elif keyword in _ONE:
                stack.append((None, below))
            elif keyword in _LISTS and isinstance(below, list):
                stack.extend((None, one) for one in below)
            elif keyword in _MAPS and isinstance(below, dict):
                stack.extend((None, one) for one in below.values())


def mismatch(
    declared: Sequence[Mirrored], arguments: Mapping[str, Any], headers: Sequence[tuple[str, str]]
) -> str | None:
    """Why headers and arguments disagree, or None. `headers`: the request's `Mcp-Param-*`, names in lower case."""
    for one in declared:
        sent = [text for name, text in headers if name == one.key]
        value = _at(arguments, one.path)
        why = f"appears {len(sent)} times" if len(sent) > 1 else _disagreement(one, value, sent[0] if sent else None)
        if why is not None:
            return f"{one.header} header {why}"
    return None


def _disagreement(one: Mirrored, value: object, sent: str | None) -> str | None:
    argument = ".".join(one.path)
    rendered = _render(value)
    if rendered is None:
        if sent is None:
            return None
        absent = "is absent" if value is None else "cannot be mirrored"
        return f"is present but the body's {argument!r} argument {absent}"
    if sent is None:
        return f"is missing but the body's {argument!r} argument is present"
    decoded = eras.header_text(sent)
    if decoded is None:
        return "carries malformed base64"
    if decoded == rendered or (one.integer and _same_number(value, decoded)):
        return None
    return f"does not match the body's {argument!r} argument"


def _render(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        return None
    try:
        return str(value)
    except ValueError:  # an integer beyond the interpreter's limit of digits
        return None


def _same_number(value: object, decoded: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _DECIMAL.match(decoded):
        return False
    whole, _, fraction = decoded.partition(".")
    if fraction.strip("0"):
        return False
    try:
        return int(whole) == value
    except ValueError:
        return False


def _at(arguments: Mapping[str, Any], path: tuple[str, ...]) -> object:
    node: object = arguments
    for step in path:
        if not isinstance(node, dict):
            return None
        node = node.get(step)
    return node
