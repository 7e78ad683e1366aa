"""Progressive disclosure: the two tools through which a client reaches what is not listed, `search_tools`, `call_tool`.

In: their arguments, the View that the request took, who asks. Out: tool results. Built by app for a gateway that has a
`search` block; called by the front like any tool of the gateway itself (`ExtraTool`).

Every rule of search and of tools/call holds here because the same ports do the work: what the caller may not use is
neither found, suggested nor called.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from arion_tds.model.context import CallContext
from arion_tds.model.gateway import CALL_TOOL, SEARCH_TOOLS, Gateway
from arion_tds.model.result import CallFailure, CallResult, ErrorCode, RpcError, failed, text_block
from arion_tds.server import jsonrpc, search, spans
from arion_tds.server.activated import Activated
from arion_tds.server.settings import (
    DEFAULT_FOUND_TOOLS,
    Allows,
    CallPort,
    ExtraHandler,
    ExtraTool,
    Found,
    MethodsConfig,
    SearchAsk,
    SearchPort,
)
from arion_tds.view import Entry, Published, View

DEFAULT_CAP: Final = 100
"""Results that a search may ask for where `max_allowable_results` says nothing."""

SUGGESTIONS: Final = 3
"""Names that an unknown name is answered with, at most."""

MAX_NAME: Final = 256
"""Characters of a name that are looked at; no tool has a longer one."""

_SEARCH_TEXT: Final = (
    "Find tools of this server. Most are not listed: say what you want to do, get the definitions of tools that fit, "
    f"then call one with {CALL_TOOL}. An empty query names the namespaces and lists tools by name."
)
_CALL_TEXT: Final = f"Call a tool that {SEARCH_TOOLS} found, with arguments as its inputSchema asks."

_encode = msgspec.json.Encoder().encode


class Disclosure:
    """The two tools of one listener."""

    def __init__(
        self,
        finder: SearchPort,
        calls: CallPort,
        activated: Activated,
        searched: Callable[[], None],
        *,
        cap: int,
    ) -> None:
        """`searched` hears of every search; `cap`: most results of one."""
        self._finder = finder
        self._calls = calls
        self._activated = activated
        self._searched = searched
        self._cap = cap

    def methods(self) -> MethodsConfig:
        """What the front serves beside the catalog."""
        bodies = definitions(self._cap)
        handlers: dict[str, ExtraHandler] = {SEARCH_TOOLS: self._search, CALL_TOOL: self._call}
        extra = {name: ExtraTool(body, body, handlers[name]) for name, body in bodies.items()}
        return MethodsConfig(extra_tools=extra, activated=self._activated)

    async def _search(self, view: View, arguments: dict[str, Any], context: CallContext) -> CallResult:
        parsed = search.read({"limit": min(DEFAULT_FOUND_TOOLS, self._cap), **arguments}, self._cap)
        if isinstance(parsed, search.Wrong):
            where = f"{parsed.field}: " if parsed.field else ""
            return _invalid(f"arguments of {SEARCH_TOOLS}: {where}{parsed.message}")
        ask, capped = parsed
        if ask.namespaces is None and not ask.offset and not ask.query.strip():
            ask = dataclasses.replace(ask, overview=True)
        self._searched()
        found = await self._finder.search(view, ask, context.allows)
        if context.session is not None:
            self._activated.add(context.session, [e.published for e, _ in found.hits if not e.tool.eager])
        definitions = [
            _definition(entry, score, cost, modern=context.modern)
            for (entry, score), cost in zip(found.hits, found.tokens, strict=True)
        ]
        body = search.joined(definitions, found, ask, capped=capped)
        return CallResult(content=text_block(body.decode()), structured=body)

    async def _call(self, view: View, arguments: dict[str, Any], context: CallContext) -> CallResult | RpcError:
        name, given = arguments.get("name"), arguments.get("arguments")
        if isinstance(given, str):  # models write objects as text now and then
            given = jsonrpc.obj(given.encode("utf-8", "replace")) if given.strip() else None
            if given is None:
                return _invalid(f"arguments of {CALL_TOOL}: arguments: is a string that holds no JSON object")
        problem = _misshapen(arguments, name, given)
        if problem is not None or not isinstance(name, str):
            return _invalid(f"arguments of {CALL_TOOL}: {problem}")
        entry = view.find(name)
        if entry is None or not (entry.tool.rbac is None or context.allows(entry.tool.rbac)):
            return _invalid(await self._unknown(view, name, context.allows))
        return await spans.within(self._calls, view, entry, given or {}, context)

    async def _unknown(self, view: View, name: str, allows: Allows) -> str:
        """Why there is no such tool, with names that may have been meant."""
        if name in {SEARCH_TOOLS, CALL_TOOL}:
            return f"{name} is not called through {CALL_TOOL}: call it itself"
        shown = name[:MAX_NAME]
        ask = SearchAsk(query=shown, namespaces=None, limit=SUGGESTIONS, offset=0)
        near: Found = await self._finder.search(view, ask, allows)
        meant = ", ".join(entry.published for entry, _ in near.hits)
        return f"Unknown tool: {shown}. " + (
            f"Did you mean {meant}? Otherwise find its name with {SEARCH_TOOLS}"
            if meant
            else f"Find its name with {SEARCH_TOOLS}"
        )


def _definition(entry: Entry, score: float, cost: int, *, modern: bool) -> bytes:
    """The tool as it would be listed, its namespace, and what it costs a context."""
    whole = entry.modern if modern else entry.legacy
    space, points = _encode(entry.tool.namespace), _encode(round(float(score), 6))
    return whole[:-1] + b',"namespace":' + space + b',"tokens":%d,"score":' % cost + points + b"}"


def _misshapen(arguments: Mapping[str, object], name: object, given: object) -> str | None:
    if not isinstance(name, str):
        return "name: must be the name of a tool"
    if given is not None and not isinstance(given, dict):
        return "arguments: must be a JSON object"
    unknown = arguments.keys() - {"name", "arguments"}
    if unknown:
        return f"{min(unknown)[:MAX_NAME]}: unknown field: the tool's own arguments go into `arguments`"
    return None


def _invalid(why: str) -> CallResult:
    return failed(CallFailure(ErrorCode.INVALID_ARGUMENTS, why))


def _search_schema(cap: int) -> dict[str, object]:
    limit = {"type": "integer", "minimum": 1, "maximum": cap, "default": min(DEFAULT_FOUND_TOOLS, cap)}
    return {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What the tool should do, or its name"},
            "namespace": {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                "description": "Only tools of this namespace, or of these",
            },
            "limit": limit,
            "offset": {"type": "integer", "minimum": 0, "description": "next_offset of the answer before"},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


_CALL_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "arguments": {"type": "object"},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def definitions(cap: int) -> dict[str, bytes]:
    """Both tools as they are listed; `cap`: most results of a search."""
    found: dict[str, object] = {
        "name": SEARCH_TOOLS,
        "description": _SEARCH_TEXT,
        "inputSchema": _search_schema(cap),
        "annotations": {"readOnlyHint": True},
    }
    called = {"name": CALL_TOOL, "description": _CALL_TEXT, "inputSchema": _CALL_SCHEMA}
    return {SEARCH_TOOLS: _encode(found), CALL_TOOL: _encode(called)}


def methods(
    gateway: Gateway, published: Published, finder: SearchPort, calls: CallPort, searched: Callable[[], None]
) -> MethodsConfig | None:
    """What the front of this gateway serves beside its catalog; None where every tool is listed."""
    if not gateway.discloses or gateway.search is None:
        return None
    cap = gateway.search.max_allowable_results or DEFAULT_CAP
    return Disclosure(finder, calls, Activated(published), searched, cap=cap).methods()
