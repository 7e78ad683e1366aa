"""A program's host calls: what `catalog` and `tools` do, answered from a `Host`.

In: an op and its arguments as JSON from a sandbox: untrusted. Out: a line of `protocol` with the answer or the error.
Called by run. What a tool call is allowed and how it is made is the Host's matter, the same as for `tools/call`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from arion_tds.codemode import protocol, stubs
from arion_tds.codemode.protocol import Op
from arion_tds.model.result import CallResult, RpcError
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit

DEFAULT_PAGE: Final = 50
DEFAULT_RESULTS: Final = 10
MAX_PAGE: Final = 200
SIGNED: Final = 5
"""Search results that carry their signature: the first ones."""

SIGNED_OF_KIT: Final = 50
"""Tools of a toolkit that carry their signature: the first ones."""

_ALIASES: Final = 1000
"""Tools of a namespace that are looked at for one whose name was spelt as an identifier."""

_T = TypeVar("_T")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Page(msgspec.Struct, frozen=True):
    """Tools with their scores, and how many there are in all."""

    items: Sequence[tuple[Tool, float]]
    total: int


class Host(Protocol):
    """What one caller may see and do, as it was when the execution began."""

    def namespaces(self) -> Mapping[str, int]:
        """Visible namespaces, each with the number of its visible tools, in name order."""
        ...

    def toolkits(self) -> Mapping[str, Toolkit]:
        """Toolkits by name."""
        ...

    def find(self, name: str) -> Tool | None:
        """The visible tool of that name, qualified or as it is published."""
        ...

    def hides(self, name: str) -> bool:
        """Whether there is a tool of that qualified name which the caller may not see."""
        ...

    async def search(self, query: str, namespaces: tuple[str, ...] | None, limit: int, offset: int) -> Page:
        """Visible tools, best first; an empty query lists them in name order."""
        ...

    async def call(self, tool: Tool, arguments: dict[str, Any]) -> CallResult | RpcError:
        """Call it, with everything that a call over MCP is subject to."""
        ...


class RefusalError(Exception):
    """The call fails with this code and message."""

    def __init__(self, code: str, message: str) -> None:
        """`code` as the program sees it."""
        super().__init__(message)
        self.code = code


class _Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    namespace: str | None = None
    limit: int | None = None
    cursor: str | None = None


class _Tool(msgspec.Struct, frozen=True):
    name: str
    args: msgspec.Raw


class _List(msgspec.Struct, frozen=True):
    options: _Options | None = None


class _Search(msgspec.Struct, frozen=True):
    query: str = ""
    options: _Options | None = None


class _Name(msgspec.Struct, frozen=True):
    name: str


_USAGE: Final[Mapping[str, str]] = {
    "tool": "tools.<namespace>.<name>({…}) or tools.call(name, {…})",
    "list": "catalog.tools.list({namespace?: string, limit?: number, cursor?: string})",
    "search": "catalog.tools.search(query: string, {namespace?: string, limit?: number})",
    "describe": "catalog.tools.describe(name: string)",
    "toolkit": "catalog.toolkits.get(name: string)",
}


class Bridge:
    """Answers the host calls of one execution."""

    def __init__(self, host: Host) -> None:
        """`host` is bound to one caller and one View."""
        self._host = host

    async def answer(self, identity: int, op: Op, args: bytes) -> bytes:
        """The line that answers the call. Every expected fault is an error line; only cancellation is raised."""
        try:
            if op == "tool":
                return await self._tool(identity, _read(op, args, _Tool))
            return protocol.value(identity, _encode(await self._ask(op, args)))
        except RefusalError as refusal:
            return protocol.error(identity, refusal.code, str(refusal))

    async def _ask(self, op: Op, args: bytes) -> object:
        match op:
            case "namespaces":
                return [{"name": name, "tools": count} for name, count in self._host.namespaces().items()]
            case "list":
                return await self._list(_read(op, args, _List).options or _Options())
            case "search":
                asked = _read(op, args, _Search)
                return await self._search(asked.query, asked.options or _Options())
            case "describe":
                return _described(await self._resolve(_read(op, args, _Name).name))
            case "toolkits":
                kits = self._host.toolkits().values()
                return [{"name": kit.name, "description": kit.description, "tools": len(kit.tools)} for kit in kits]
            case _:
                return self._toolkit(_read(op, args, _Name).name)

    async def _list(self, options: _Options) -> object:
        offset = 0
        if options.cursor is not None:
            if not options.cursor.isascii() or not options.cursor.isdigit() or len(options.cursor) > 9:
                raise RefusalError("invalid_arguments", "cursor must be nextCursor of the page before")
            offset = int(options.cursor)
        limit = _limit(options.limit, DEFAULT_PAGE)
        page = await self._host.search("", self._within(options.namespace), limit, offset)
        found: dict[str, object] = {"tools": [_line(tool) for tool, _ in page.items], "total": page.total}
        if offset + len(page.items) < page.total and page.items:
            found["nextCursor"] = str(offset + len(page.items))
        return found

    async def _search(self, query: str, options: _Options) -> object:
        limit = _limit(options.limit, DEFAULT_RESULTS)
        page = await self._host.search(query, self._within(options.namespace), limit, 0)
        found: list[object] = []
        for rank, (tool, score) in enumerate(page.items):
            line = {**_line(tool), "score": round(score, 4)}
            if rank < SIGNED:
                line["signature"] = stubs.signature(tool)
            found.append(line)
        return {"tools": found, "total": page.total}

    def _within(self, namespace: str | None) -> tuple[str, ...] | None:
        """The namespace, or those that are written so as identifiers."""
        if namespace is None:
            return None
        known = self._host.namespaces()
        if namespace in known:
            return (namespace,)
        alike = tuple(name for name in known if stubs.identifier(name) == namespace)
        if not alike:
            raise RefusalError("unknown_namespace", f"no namespace {_short(namespace)!r}: see catalog.namespaces()")
        return alike

    async def _resolve(self, name: str) -> Tool:
        """The tool of that name in any spelling: qualified, published, or each half as an identifier."""
        found = self._host.find(name)
        if found is not None:
            return found
        dot = name.find(".")
        while dot >= 0:
            first, last = name[:dot], name[dot + 1 :]
            alike = tuple(one for one in self._host.namespaces() if stubs.identifier(one) == stubs.identifier(first))
            if alike:
                page = await self._host.search("", alike, _ALIASES, 0)
                for tool, _ in page.items:
                    if stubs.identifier(tool.name) == stubs.identifier(last):
                        return tool
            dot = name.find(".", dot + 1)
        words = re.sub(r"[^A-Za-z0-9]+", " ", name)[:200].strip()
        near = (await self._host.search(words, None, 3, 0)).items if words else ()
        meant = f"; did you mean {', '.join(tool.qualified for tool, _ in near)}?" if near else ""
        raise RefusalError(
            "unknown_tool", f"no tool {_short(name)!r}{meant} Find names with catalog.tools.search(query)".strip()
        )

    def _toolkit(self, name: str) -> object:
        kit = self._host.toolkits().get(name)
        if kit is None:
            known = ", ".join(list(self._host.toolkits())[:20]) or "none"
            raise RefusalError("unknown_toolkit", f"no toolkit {_short(name)!r}; there are: {known}")
        tools: list[object] = []
        for reference in kit.tools:
            tool = self._host.find(reference)
            if tool is not None:
                signed = {"signature": stubs.signature(tool)} if len(tools) < SIGNED_OF_KIT else {}
                tools.append({**_line(tool), **signed})
            elif not self._host.hides(reference):
                tools.append({"name": reference, "pending": True})
        return {"name": kit.name, "description": kit.description, "instructions": kit.instructions, "tools": tools}

    async def _tool(self, identity: int, asked: _Tool) -> bytes:
        tool = await self._resolve(asked.name)
        try:
            arguments = _decode(asked.args)
        except (msgspec.DecodeError, RecursionError) as error:
            raise RefusalError("invalid_arguments", f"arguments of {tool.qualified}: {error}") from None
        if not isinstance(arguments, dict):
            got = "a list" if isinstance(arguments, list) else f"{type(arguments).__name__} {_short(str(arguments))!r}"
            raise RefusalError("invalid_arguments", f"{tool.qualified} takes one object of arguments, not {got}")
        return returned(identity, await self._host.call(tool, arguments))


def returned(identity: int, result: CallResult | RpcError) -> bytes:
    """The line that gives a program a call's result: structured content, else its text, else the content array."""
    if isinstance(result, RpcError):
        return protocol.error(identity, "upstream_error", f"{result.message} (JSON-RPC error {result.code})")
    if result.failure is not None:
        failure = result.failure
        return protocol.error(
            identity, failure.code.value, failure.message, retryable=failure.retryable, status=failure.status
        )
    text = _only_text(result.content)
    if result.is_error:
        return protocol.error(identity, "tool_error", text or result.content.decode("utf-8", "replace")[:2000])
    if result.result_type != "complete":
        why = f"the tool answered {result.result_type!r}: it wants to ask the user, which a program cannot"
        return protocol.error(identity, "input_required", why)
    if result.structured is not None:
        return protocol.value(identity, result.structured)
    if text is not None:
        return protocol.text(identity, text)
    return protocol.value(identity, result.content)


def _only_text(content: bytes) -> str | None:
    """The text of a content array that is one text block."""
    try:
        blocks = _decode(content)
    except (msgspec.DecodeError, RecursionError):
        return None
    if (
        isinstance(blocks, list)
        and len(blocks) == 1
        and isinstance(blocks[0], dict)
        and blocks[0].get("type") == "text"
    ):
        text = blocks[0].get("text")
        return text if isinstance(text, str) else None
    return None


def _read(op: Op, args: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(args, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RefusalError("invalid_arguments", f"{error}; usage: {_USAGE[op]}") from None


def _limit(asked: int | None, default: int) -> int:
    if asked is None:
        return default
    if asked < 1:
        raise RefusalError("invalid_arguments", f"limit is {asked}: it must be from 1 to {MAX_PAGE}")
    return min(asked, MAX_PAGE)


def _line(tool: Tool) -> dict[str, object]:
    return {"name": tool.qualified, "namespace": tool.namespace, "description": tool.description}


def _described(tool: Tool) -> object:
    found: dict[str, object] = {
        **_line(tool),
        "call": stubs.access(tool),
        "signature": stubs.signature(tool),
        "inputSchema": msgspec.Raw(tool.input_schema.text),
    }
    if tool.output_schema is not None:
        found["outputSchema"] = msgspec.Raw(tool.output_schema.text)
    return found


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:99] + "…"
