"""`POST /mcp/search`: the request's JSON judged, the answer's JSON joined. Pure.

In: a body and the listener's cap. Out: a `SearchAsk` or the field that is wrong, and for what was found the response
body. Called by front, and by the search tool (`read`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final, TypeGuard

import msgspec

from arion_tds.server import jsonrpc
from arion_tds.server.settings import DEFAULT_SEARCH_RESULTS, Found, SearchAsk
from arion_tds.view import Entry

MAX_QUERY: Final = 4096
"""Characters of a query."""

MAX_NAMESPACES: Final = 256
"""Namespaces that one search may name, or an overview shows."""

MAX_OFFSET: Final = 1_000_000
"""How far paging goes."""

_FIELDS: Final = frozenset(("query", "namespace", "limit", "offset"))
_encode = msgspec.json.Encoder().encode


@dataclasses.dataclass(frozen=True, slots=True)
class Wrong:
    """A field of the body that cannot be used (empty: the body itself), and why."""

    field: str
    message: str


def parse(body: bytes, cap: int) -> tuple[SearchAsk, bool] | Wrong:
    """What is asked, with `limit` within `cap`; the flag tells that more was asked for. `cap`: most results allowed."""
    asked = jsonrpc.obj(body)
    if asked is None:
        return Wrong("", 'the body must be a JSON object such as {"query": "create invoice"}')
    return read(asked, cap)


def read(asked: Mapping[str, object], cap: int) -> tuple[SearchAsk, bool] | Wrong:
    """Like `parse`, for an object that is decoded already."""
    for field in asked:
        if field not in _FIELDS:
            return Wrong(field[:256], "unknown field: use query, namespace, limit, offset")
    query = asked.get("query", "")
    if not isinstance(query, str):
        return Wrong("query", "must be a string")
    if len(query) > MAX_QUERY:
        return Wrong("query", f"is longer than {MAX_QUERY} characters")
    namespaces = _namespaces(asked.get("namespace"))
    if isinstance(namespaces, Wrong):
        return namespaces
    limit = asked.get("limit", min(DEFAULT_SEARCH_RESULTS, cap))
    if not _whole(limit, 1):
        return Wrong("limit", "must be an integer of at least 1")
    offset = asked.get("offset", 0)
    if not _whole(offset, 0) or offset > MAX_OFFSET:
        return Wrong("offset", f"must be an integer from 0 to {MAX_OFFSET}")
    return SearchAsk(query=query, namespaces=namespaces, limit=min(limit, cap), offset=offset), limit > cap


def _namespaces(given: object) -> tuple[str, ...] | Wrong | None:
    if given is None:
        return None
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        return Wrong("namespace", "must be a string or a list of strings")
    if len(given) > MAX_NAMESPACES:
        return Wrong("namespace", f"names more than {MAX_NAMESPACES} namespaces")
    return tuple(given)


def _whole(value: object, least: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def render(found: Found, ask: SearchAsk, *, capped: bool) -> bytes:
    """The answer of /mcp/search."""
    costs: Sequence[int | None] = found.tokens or (None,) * len(found.hits)
    tools = [_tool(entry, score, cost) for (entry, score), cost in zip(found.hits, costs, strict=True)]
    return joined(tools, found, ask, capped=capped)


def joined(tools: Sequence[bytes], found: Found, ask: SearchAsk, *, capped: bool) -> bytes:
    """`{"tools","total","ranking"}`; where they apply `namespaces`, `degraded`, `corrected`, `next_offset`, `capped`.

    `tools` are the hits as JSON.
    """
    rest: dict[str, object] = {"total": found.total, "ranking": found.ranking}
    if found.namespaces:
        rest["namespaces"] = dict(islice(found.namespaces.items(), MAX_NAMESPACES))
    if found.degraded is not None:
        rest["degraded"] = found.degraded
    if found.corrected:
        rest["corrected"] = found.corrected
    following = ask.offset + len(found.hits)
    if found.hits and following < found.total:
        rest["next_offset"] = following
    if capped:
        rest["capped"] = ask.limit
    return b'{"tools":[' + b",".join(tools) + b"]," + _encode(rest)[1:]


def _tool(entry: Entry, score: float, cost: int | None) -> bytes:
    tool = entry.tool
    output = b"" if tool.output_schema is None else b',"outputSchema":' + tool.output_schema.text
    return b"".join(
        (
            b'{"name":',
            _encode(entry.published),
            b',"namespace":',
            _encode(tool.namespace),
            b',"description":',
            _encode(tool.description),
            b',"inputSchema":',
            tool.input_schema.text,
            output,
            b"" if cost is None else b',"tokens":%d' % cost,
            b',"score":',
            _encode(round(float(score), 6)),
            b"}",
        )
    )


def wrong(problem: Wrong) -> bytes:
    """`{"error":{"field","message"}}`."""
    return _encode({"error": {"field": problem.field, "message": problem.message}})
