"""Walking a server's tools/list to its end, or to a limit, without ever going in a circle.

In: the server's line and agreed peer. Out: a `Listing`: every tool as the server wrote it, and what was odd.
Called by connection; the result is judged tool by tool in discovery.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection

import msgspec

from arion_tds.backends.mcp import era, requests, wire
from arion_tds.backends.mcp.era import Peer
from arion_tds.backends.mcp.line import Broken, Hear, Limit, Line, malformed, refused_status
from arion_tds.backends.mcp.settings import UpstreamSettings
from arion_tds.model.problem import Problem
from arion_tds.model.result import ErrorCode

_tools = msgspec.json.Decoder(list[msgspec.Raw]).decode


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """`tools` are JSON as the server wrote it, in its order. `partial`: a limit cut the walk (`problems` names it).

    `digest` is equal exactly when the tools are: an announced change that is none can be told from one.
    """

    tools: tuple[bytes, ...]
    problems: tuple[Problem, ...] = ()
    pages: int = 1
    partial: bool = False

    @property
    def digest(self) -> bytes:
        """SHA-256 of the tools."""
        made = hashlib.sha256()
        for tool in self.tools:
            made.update(b"%d:" % len(tool))
            made.update(tool)
        return made.digest()


@dataclasses.dataclass(frozen=True, slots=True)
class _Page:
    tools: list[msgspec.Raw]
    cursor: str | None
    bytes: int


async def walk(
    line: Line, peer: Peer, settings: UpstreamSettings, hear: Hear, tried: Collection[object]
) -> Listing | era.Stale:
    """Every page. Raises Broken: a page that fails fails the walk, so that half a list never replaces a good one.

    `tried`: kinds of staleness that were mended already and so are errors now.
    """
    tools: list[bytes] = []
    seen: set[str] = set()
    left = settings.max_list_bytes
    cursor: str | None = None
    for pages in range(1, settings.max_list_pages + 1):
        try:
            page = await _page(line, peer, cursor, (left, "max_list_bytes"), hear)
        except Broken as broken:
            if broken.failure.code is not ErrorCode.RESPONSE_TOO_LARGE or not tools:
                raise
            return _cut(line, tools, pages, f"cut after {settings.max_list_bytes} bytes (max_list_bytes)")
        if isinstance(page, _Refusal):
            if page.stale is not None and page.stale not in tried:
                return page.stale
            raise page.broken
        if page.cursor is not None and page.cursor in seen:
            page = dataclasses.replace(page, tools=_new(page.tools, tools))
        room = settings.max_list_tools - len(tools)
        tools += [bytes(tool) for tool in page.tools[:room]]
        if len(page.tools) > room:
            return _cut(line, tools, pages, f"cut after {settings.max_list_tools} tools (max_list_tools)")
        cursor = page.cursor
        if cursor is None:
            return Listing(tuple(tools), pages=pages)
        if cursor in seen:
            why = "the server repeated a cursor; the walk ends here with the tools that it gave until then"
            return Listing(tuple(tools), (Problem(f"{line.name} tools/list", why),), pages)
        seen.add(cursor)
        left -= page.bytes
    return _cut(line, tools, settings.max_list_pages, f"cut after {settings.max_list_pages} pages (max_list_pages)")


def _new(tools: list[msgspec.Raw], known: list[bytes]) -> list[msgspec.Raw]:
    """A server in a circle sends the same again; what it sends for the first time still counts."""
    before = set(known)
    return [tool for tool in tools if bytes(tool) not in before]


def _cut(line: Line, tools: list[bytes], pages: int, why: str) -> Listing:
    problem = Problem(f"{line.name} tools/list", f"{why}: the tools after that are not served")
    return Listing(tuple(tools), (problem,), pages, partial=True)


@dataclasses.dataclass(frozen=True, slots=True)
class _Refusal:
    stale: era.Stale | None
    broken: Broken


async def _page(line: Line, peer: Peer, cursor: str | None, limit: Limit, hear: Hear) -> _Page | _Refusal:
    number = line.number()
    further = b"" if cursor is None else b'"cursor":' + wire.encode(cursor)
    headers = requests.for_peer(line.base, peer, "tools/list")
    headers["accept-encoding"] = "gzip, deflate"
    body = wire.request(number, "tools/list", requests.plain_params(peer, further))
    answer = await line.ask(peer, number, headers, body, limit=limit, hear=hear)
    message = answer.message
    if message is None:
        broken = refused_status(line.name, answer.status, answer.headers.get("location"))
    elif message.error or answer.status >= 300:
        error = wire.error_of(message.error)
        said = error if isinstance(error, str) else f"error {error.code} ({error.message[:200]})"
        broken = malformed(line.name, f"{said} to tools/list")
    else:
        page = _read(message.result)
        if not isinstance(page, str):
            return page
        raise malformed(line.name, page)
    return _Refusal(era.stale(peer, answer.status, message), broken)


def _read(result: msgspec.Raw) -> _Page | str:
    try:
        parts = wire.members(result)
        # A server whose language writes an empty list as null means an empty list.
        tools = [] if bytes(parts.get("tools", b"")) == b"null" else _tools(parts["tools"])
        cursor = msgspec.json.decode(parts.get("nextCursor", b"null"), type=str | None)
    except KeyError:
        return "a tools/list result without tools"
    except wire.BAD_JSON as error:
        return f"a tools/list result that is not one: {error}"
    return _Page(tools, cursor, len(bytes(result)))
