"""The methods that need no backend: initialize, server/discover, ping, tools/list; and what tools/call asks for. Pure.

In: the View that the request took, params, era, caller. Out: a result as ready bytes, or an `RpcError`. Called by front
and calling.
"""

from __future__ import annotations

import bisect
import dataclasses
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from arion_tds.model.caller import Caller
from arion_tds.model.result import RpcError
from arion_tds.server import cursors, eras, jsonrpc, render
from arion_tds.server.jsonrpc import Params, Request
from arion_tds.server.packing import Listed
from arion_tds.server.settings import Allows, ExtraTool, FrontSettings, MethodsConfig
from arion_tds.view import Entry, View

MAX_PAGES: Final = 64
"""Pages of one View that are put together once; further ones are put together for whoever asks."""

_encode = msgspec.json.Encoder().encode
_CAPABILITIES: Final = b'{"tools":{"listChanged":true}}'


@dataclasses.dataclass(frozen=True, slots=True)
class _Page:
    """Definitions in the order of `listed`, which it keeps alive, and the name after which the next page starts."""

    listed: Sequence[str]
    definitions: tuple[bytes, ...]
    following: str | None


@dataclasses.dataclass(slots=True)  # made with every call: see docs/architecture.md, Rules
class Call:
    """What a tools/call asks for: the tool, its arguments decoded, and every further param as it was sent."""

    target: Entry | ExtraTool
    arguments: dict[str, Any]
    rest: dict[str, bytes]


class Methods:
    """The answers of one listener. What does not depend on the request is made once, pages once for each View."""

    def __init__(self, settings: FrontSettings, config: MethodsConfig) -> None:
        """`config` says what is served beside the catalog."""
        self._page_size = settings.page_size
        self._page_bytes = settings.page_bytes
        self._pages: weakref.WeakKeyDictionary[View, dict[tuple[int, str, bool], _Page]] = weakref.WeakKeyDictionary()
        self._extra = config.extra_tools
        self._catalog = config.catalog
        self._activated = config.activated
        self.identity = render.server_meta(settings.name, settings.version)
        caching = b',"ttlMs":%d,"cacheScope":' % settings.ttl_ms + _encode(settings.cache_scope)
        self._list_tail = caching + b',"_meta":{' + self.identity + b"}}"
        private = b',"ttlMs":%d,"cacheScope":"private"' % settings.ttl_ms
        self._private_tail = private + b',"_meta":{' + self.identity + b"}}"
        self._extra_modern = [tool.modern for tool in self._extra.values() if tool.describe is None]
        self._extra_legacy = [tool.legacy for tool in self._extra.values() if tool.describe is None]
        self._describing = [tool.describe for tool in self._extra.values() if tool.describe is not None]
        told = b"" if settings.instructions is None else b',"instructions":' + _encode(settings.instructions)
        info = _encode({"name": settings.name, "version": settings.version})
        self._initialized = b',"capabilities":' + _CAPABILITIES + b',"serverInfo":' + info + told + b"}"
        supported = _encode(list(eras.MODERN_REVISIONS))
        self.discovered = (
            b'{"resultType":"complete","supportedVersions":'
            + supported
            + b',"capabilities":'
            + _CAPABILITIES
            + told
            + self._list_tail
        )

    def initialize(self, params: Params) -> tuple[str, bytes]:
        """The negotiated revision, and the result."""
        revision = eras.negotiate(jsonrpc.text(jsonrpc.member(params, "protocolVersion")))
        return revision, b'{"protocolVersion":' + _encode(revision) + self._initialized

    def tools_list(
        self, view: View, request: Request, caller: Caller, *, modern: bool, session: str | None = None
    ) -> Listed | RpcError:
        """One page: the gateway's own tools first, then what the session has found by search, then the
        catalog in the order of published names.
        """
        raw = jsonrpc.member(request.params, "cursor")
        after = "" if raw == jsonrpc.NULL else _after(raw)
        if isinstance(after, RpcError):
            return after
        parts: list[bytes] = []
        if self._extra and not after:
            parts += self._extra_modern if modern else self._extra_legacy
            parts += [describe(view, caller.allows) for describe in self._describing]
        if self._activated is not None and not after:
            parts += [entry.legacy for entry in self._found(view, session, caller.allows)]
        definitions = tuple(parts)
        following: str | None = None
        if self._catalog:
            page = self._page(view, after, caller, modern=modern)
            definitions = (*parts, *page.definitions) if parts else page.definitions
            following = page.following
        cursor = b"" if following is None else b',"nextCursor":"' + cursors.encode(following).encode() + b'"'
        head = b'{"resultType":"complete","tools":[' if modern else b'{"tools":['
        tail = b"}"
        if modern:
            # What depends on the token must not be kept for others (MCP 2026-07-28, server/utilities/caching).
            tail = self._private_tail if view.restricted else self._list_tail
        tail = b"]" + cursor + tail
        return Listed(head, definitions, tail)

    def _found(self, view: View, session: str | None, allows: Allows) -> Iterator[Entry]:
        """What the session has found, as far as it is still there, still the caller's, and not listed for everybody."""
        if self._activated is None:
            return
        for name in self._activated.of(session):
            entry = view.tools.get(name)
            if entry is not None and not entry.tool.eager and (entry.tool.rbac is None or allows(entry.tool.rbac)):
                yield entry

    def _page(self, view: View, after: str, caller: Caller, *, modern: bool) -> _Page:
        """What the caller may see, as far as it fits."""
        listed = view.listed(caller)
        if listed is None:
            return self._cut(view, self._filtered(view, after, caller.allows), 0, modern=modern)
        made = self._pages.get(view)
        if made is None:
            made = self._pages[view] = {}
        key = (id(listed), after, modern)
        page = made.get(key)
        if page is None:
            at = bisect.bisect_right(listed, after) if after else 0
            page = self._cut(view, listed, at, modern=modern)
            if len(made) < MAX_PAGES:
                made[key] = page
        return page

    def _cut(self, view: View, listed: Sequence[str], at: int, *, modern: bool) -> _Page:
        """A page of the names from that place on: at most so many tools, and bytes unless one tool alone has more."""
        tools, end = view.tools, min(at + self._page_size, len(listed))
        chosen: list[bytes] = []
        room = self._page_bytes
        for name in listed[at:end]:
            definition = tools[name].modern if modern else tools[name].legacy
            room -= len(definition)
            if room < 0 and chosen:
                break
            chosen.append(definition)
        end = at + len(chosen)
        return _Page(listed, tuple(chosen), listed[end - 1] if end < len(listed) else None)

    def _filtered(self, view: View, after: str, allows: Allows) -> list[str]:
        """Names after that one which may be seen, one look at each tool's policy, until a page is surely full."""
        order, tools, size = view.order, view.tools, self._page_size
        at = bisect.bisect_right(order, after)
        shown: list[str] = []
        while at < len(order) and len(shown) <= size:
            chosen = order[at : at + size + 1]
            at += len(chosen)
            for name in chosen:
                rbac = tools[name].tool.rbac
                if rbac is None or allows(rbac):
                    shown.append(name)
        return shown

    def call(self, view: View, params: Params, allows: Allows) -> Call | RpcError:
        """Find the tool and read the arguments. A tool that the caller may not use does not exist."""
        name = jsonrpc.text(jsonrpc.member(params, "name"))
        if name is None:
            return RpcError(jsonrpc.INVALID_PARAMS, "params.name must be the name of a tool")
        target: Entry | ExtraTool | None = self._extra.get(name)
        if target is None and self._catalog:
            target = view.find(name)
            if target is not None and target.tool.rbac is not None and not allows(target.tool.rbac):
                target = None
        if target is None:
            return RpcError(jsonrpc.INVALID_PARAMS, f"Unknown tool: {name[:256]}")
        sent = jsonrpc.member(params, "arguments")
        arguments: dict[str, Any] | None = {} if sent == jsonrpc.NULL else jsonrpc.obj(sent)
        if arguments is None:
            return RpcError(jsonrpc.INVALID_PARAMS, "params.arguments must be a JSON object")
        rest = {key: bytes(value) for key, value in params.items() if key not in _OWN}
        return Call(target, arguments, rest)


_OWN: Final = frozenset(("name", "arguments"))


def _after(raw: bytes) -> str | RpcError:
    cursor = jsonrpc.text(raw)
    after = None if cursor is None else cursors.decode(cursor)
    if after is None:
        return RpcError(jsonrpc.INVALID_PARAMS, "Invalid cursor: pass nextCursor of the page before, unchanged")
    return after
