"""The HTTP headers that mirror an MCP request, and the `x-mcp-header` annotations that ask for more. Pure.

In: methods, names, input schemas, arguments. Out: header values, header maps, or a sentence that says what is wrong.
Called by connection (building requests), discovery (judging schemas) and config (judging configured headers).
Source: MCP 2026-07-28, basic/transports/streamable-http "Custom Headers", server/tools.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

ANNOTATION: Final = "x-mcp-header"
PARAM_PREFIX: Final = "mcp-param-"

_SAFE = re.compile(r"[\x20-\x7e]*\Z")
_SENTINEL = re.compile(r"=\?base64\?.*\?=\Z", re.DOTALL)
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_TYPES: Final = frozenset({"string", "integer", "boolean"})
_ONE: Final = (
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
_LIST: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAP: Final = ("patternProperties", "dependentSchemas", "$defs", "definitions")

_OURS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-request-id",
    }
)

HeaderMap = Mapping[tuple[str, ...], str]
"""Property path of an argument → the lower-case name of the header that carries it."""


def value(text: str) -> str:
    """`text` as a header value: as it is, or base64 in the `=?base64?…?=` form where HTTP would not carry it."""
    if _SAFE.match(text) and text == text.strip() and not _SENTINEL.match(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


def header_map(schema: object) -> HeaderMap | str:
    """The annotated arguments of an input schema, or why its annotations make the tool unusable: drop it."""
    found: dict[tuple[str, ...], str] = {}
    for path, node in _positions(schema):
        if ANNOTATION not in node:
            continue
        if not path:
            return f"{ANNOTATION} stands where it is not reachable through `properties` alone"
        where = ".".join(path)
        name = node[ANNOTATION]
        if not isinstance(name, str) or not _TOKEN.match(name):
            return f"{ANNOTATION} of {where!r} is not a header name"
        kind = node.get("type")
        if not isinstance(kind, str) or kind not in _TYPES:
            return f"{ANNOTATION} of {where!r} is only allowed on a string, integer or boolean"
        header = PARAM_PREFIX + name.lower()
        if header in found.values():
            return f"{ANNOTATION} {name!r} stands at more than one property"
        found[path] = header
    return found


def _positions(root: object) -> Iterator[tuple[tuple[str, ...] | None, dict[str, object]]]:
    """Every schema in `root` with its chain of `properties` keys (None once another keyword was crossed)."""
    stack: list[tuple[tuple[str, ...] | None, object]] = [((), root)]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, dict):
            continue
        yield path, node
        properties = node.get("properties")
        if isinstance(properties, dict):
            stack += [(None if path is None else (*path, name), each) for name, each in properties.items()]
        stack += [(None, node[word]) for word in _ONE if word in node]
        for word in _LIST:
            if isinstance(several := node.get(word), list):
                stack += [(None, each) for each in several]
        for word in _MAP:
            if isinstance(named := node.get(word), dict):
                stack += [(None, each) for each in named.values()]


def mirrored(wanted: HeaderMap, arguments: object) -> list[tuple[str, str]]:
    """The `Mcp-Param-*` headers of a call. An absent or null argument has none."""
    out: list[tuple[str, str]] = []
    for path, header in wanted.items():
        node = arguments
        for step in path:
            node = node.get(step) if isinstance(node, dict) else None
        text = _scalar(node)
        if text is not None:
            out.append((header, value(text)))
    return out


def _scalar(node: object) -> str | None:
    if isinstance(node, bool):
        return "true" if node else "false"
    if isinstance(node, str):
        return node
    if isinstance(node, int | float):
        try:
            return str(node)
        except ValueError:  # an integer of thousands of digits
            return None
    return None


def forwarded(given: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The caller's own `Mcp-Param-*` headers, unknown ones too (intermediaries must pass them on)."""
    return [
        (name.lower(), text)
        for name, text in given
        if name.lower().startswith(PARAM_PREFIX) and _TOKEN.match(name) and _SAFE.match(text)
    ]


def problem(name: str, text: str) -> str | None:
    """Why a configured header cannot be sent to a server, or None. Never quotes the value: it may be a secret."""
    if not _TOKEN.match(name):
        return f"{name!r} is not a header name"
    if name.lower() in _OURS or name.lower().startswith(PARAM_PREFIX):
        return f"header {name!r} is set by the gateway itself"
    if not _SAFE.match(text) or text != text.strip():
        return f"the value of header {name!r} holds characters that a header cannot carry"
    return None
