"""From a server's listing to tools, judged one by one: a bad tool costs only itself. Pure, but for `discover`.

In: a `McpServer` and the `Listing` of its tools. Out: the tools that can be served, every member of theirs kept, and a
`Problem` for each that cannot (or is served with something left away).
Called by ingest when a DynamicMcpServer arrives, and on every refresh.

What would make a strict client refuse the whole list is taken out here: it is the only place that sees it per tool.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from arion_tds import schema
from arion_tds.backends.mcp import headers, wire
from arion_tds.backends.mcp.listing import Listing
from arion_tds.model import names
from arion_tds.model.backend import McpBackend
from arion_tds.model.problem import Problem
from arion_tds.model.server import McpServer
from arion_tds.model.tool import Tool
from arion_tds.schema import Schema

_BATCH: Final = 100
"""Tools judged before other work gets its turn."""

_ROOT_NULLS: Final = ("required", "properties", "$defs", "definitions", "description", "title", "additionalProperties")


def tools(server: McpServer, listing: Listing) -> tuple[tuple[Tool, ...], tuple[Problem, ...]]:
    """Every servable tool of the listing under the server's namespace, and what is wrong with the others."""
    judge = _Judge(server, listing)
    for at, raw in enumerate(listing.tools):
        judge.add(at, raw)
    return judge.outcome()


async def discover(server: McpServer, listing: Listing) -> tuple[tuple[Tool, ...], tuple[Problem, ...]]:
    """`tools`, letting others run in between: a list of thousands takes a good part of a second to judge."""
    judge = _Judge(server, listing)
    for at, raw in enumerate(listing.tools):
        judge.add(at, raw)
        if at % _BATCH == _BATCH - 1:
            await asyncio.sleep(0)
    return judge.outcome()


def is_idempotent(tool: Tool) -> bool:
    """Whether the tool's annotations say that calling it twice does no more than calling it once."""
    if b"Hint" not in tool.extra:
        return False
    try:
        hints = msgspec.json.decode(b"{" + tool.extra[1:] + b"}", type=_Hinted).annotations
    except wire.BAD_JSON:
        return False
    return hints is not None and (hints.idempotentHint is True or hints.readOnlyHint is True)


class _Hints(msgspec.Struct):
    idempotentHint: bool | None = None  # noqa: N815 - names of the wire
    readOnlyHint: bool | None = None  # noqa: N815
    destructiveHint: bool | None = None  # noqa: N815
    openWorldHint: bool | None = None  # noqa: N815
    title: str | None = None


class _Hinted(msgspec.Struct):
    annotations: _Hints | None = None


class _Icon(msgspec.Struct):
    src: str


class _Judge:
    """Collects tools and problems of one listing."""

    def __init__(self, server: McpServer, listing: Listing) -> None:
        self._server = server
        self._tools: dict[str, Tool] = {}
        self._problems = list(listing.problems)

    def outcome(self) -> tuple[tuple[Tool, ...], tuple[Problem, ...]]:
        return tuple(self._tools.values()), tuple(self._problems)

    def add(self, at: int, raw: bytes) -> None:
        """Judge one tool."""
        where = f"{self._server.namespace}: tools[{at}]"
        text = wire.clean(raw)
        if isinstance(text, str):
            return self._note(where, f"{text}; left out")
        try:
            parts = {key: bytes(value) for key, value in wire.members(text).items()}
            name = msgspec.json.decode(parts.pop("name", b"null"), type=str)
        except wire.BAD_JSON:
            return self._note(where, "not an object with a name that is a string; left out")
        if not name:
            return self._note(where, "its name is empty; left out")
        where = names.qualified(self._server.namespace, name)
        why = names.problem(where)
        if why is None and name in self._tools:
            why = "the server lists this name more than once; the first is served"
        if why is not None:
            return self._note(where[:200], f"{why}; left out")
        made = self._tool(where, name, parts)
        if isinstance(made, str):
            return self._note(where, f"{made}; left out")
        if (advice := names.advice(where)) is not None:
            self._note(where, advice)
        self._tools[name] = made
        return None

    def _note(self, where: str, why: str) -> None:
        self._problems.append(Problem(where, why))

    def _tool(self, where: str, name: str, parts: dict[str, bytes]) -> Tool | str:
        input_schema = _input_schema(parts.pop("inputSchema", None))
        if isinstance(input_schema, str):
            return input_schema
        output_schema: Schema | None = None
        output = parts.pop("outputSchema", b"null")
        if output != b"null":
            judged = _schema(output)
            if isinstance(judged, str):
                self._note(where, f"outputSchema: {judged}; served without it")
            else:
                output_schema = judged
        description = ""
        if (said := parts.pop("description", b"null")) != b"null":
            if said.startswith(b'"'):
                description = msgspec.json.decode(said, type=str)
            else:
                self._note(where, "its description is not a string; served without it")
        return Tool(
            namespace=self._server.namespace,
            name=name,
            description=description,
            input_schema=input_schema,
            output_schema=output_schema,
            backend=McpBackend(server=self._server.url, tool=name),
            rbac=self._server.rbac,
            eager=self._server.eager,
            extra=self._extra(where, parts),
        )

    def _extra(self, where: str, parts: dict[str, bytes]) -> bytes:
        kept = b""
        for key, value in parts.items():
            if value == b"null":
                continue
            expected = _EXPECTED.get(key)
            if expected is not None and not _fits(value, expected):
                self._note(where, f"its {key} is not what MCP says it is; served without it")
                continue
            kept += b"," + wire.encode(key) + b":" + value
        return kept


_EXPECTED: Final[dict[str, object]] = {
    "title": str,
    "annotations": _Hints,
    "icons": list[_Icon],
    "_meta": dict[str, msgspec.Raw],
    "execution": dict[str, msgspec.Raw],
}


def _fits(value: bytes, expected: object) -> bool:
    try:
        msgspec.json.decode(value, type=expected)
    except wire.BAD_JSON:
        return False
    return True


def _input_schema(raw: bytes | None) -> Schema | str:
    if raw is None or raw == b"null":
        return "it has no inputSchema"
    try:
        value = msgspec.json.decode(raw)
    except wire.BAD_JSON as error:
        return f"inputSchema: {error}"
    if not isinstance(value, dict):
        return "its inputSchema is not a JSON object"
    # Some languages write an absent list or object as null; JSON Schema knows no such thing.
    nulls = [key for key in _ROOT_NULLS if key in value and value[key] is None]
    for key in nulls:
        del value[key]
    untyped = "type" not in value
    if untyped:
        value = {"type": "object", **value}  # arguments are an object in any case
    if value["type"] != "object":
        return f"its inputSchema is of type {str(value['type'])[:60]}: arguments are always an object"
    if headers.ANNOTATION.encode() in raw and isinstance(mapped := headers.header_map(value), str):
        return mapped
    if (why := schema.check(value)) is not None:
        return f"inputSchema: {why}"
    return Schema(wire.encode(value) if nulls or untyped else _compact(raw))


def _schema(raw: bytes) -> Schema | str:
    try:
        value = msgspec.json.decode(raw)
    except wire.BAD_JSON as error:
        return str(error)
    if not isinstance(value, dict):
        return "not a JSON object"
    why = schema.check(value)
    return why if why is not None else Schema(_compact(raw))


def _compact(raw: bytes) -> bytes:
    """The server's own text without blanks: its numbers and key order stay."""
    return msgspec.json.format(raw, indent=-1)
