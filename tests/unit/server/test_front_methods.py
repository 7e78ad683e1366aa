"""What is answered without a backend."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from front_samples import ADMINS, published, put, tool
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.methods import validate_server_result

from arion_tds.model.caller import Anonymous
from arion_tds.model.result import CallResult, RpcError
from arion_tds.server import jsonrpc
from arion_tds.server.methods import MAX_PAGES, Call, Methods
from arion_tds.server.packing import Listed
from arion_tds.server.settings import ExtraTool, FrontSettings, MethodsConfig
from arion_tds.view import View

ANYONE = Anonymous()


class Everybody(Anonymous):
    """May use everything."""

    def allows(self, rbac: Any) -> bool:
        return True

    def denied(self, guards: Any) -> int:
        return 0


def methods(config: MethodsConfig | None = None, **settings: Any) -> Methods:
    return Methods(FrontSettings(name="gw", version="1", **settings), config or MethodsConfig())


def request(method: str = "tools/list", **params: dict[str, Any]) -> jsonrpc.Request:
    found = jsonrpc.parse(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
    assert isinstance(found, jsonrpc.Request)
    return found


def page(
    here: Any, view: View, cursor: str | None = None, *, modern: bool = True, caller: Any = ANYONE
) -> dict[str, Any]:
    asked = request() if cursor is None else request(cursor=cursor)
    found = here.tools_list(view, asked, caller, modern=modern)
    assert isinstance(found, Listed), found
    return json.loads(found.plain(b"1"))["result"]


def walk(here: Any, view_of: Any, **more: Any) -> list[str]:
    """Names of a whole walk; `view_of` gives the View of each request."""
    names, cursor = [], None
    for _ in range(100):
        result = page(here, view_of(), cursor, **more)
        names += [one["name"] for one in result["tools"]]
        cursor = result.get("nextCursor")
        if cursor is None:
            return names
    raise AssertionError("the walk does not end")


def test_a_page_is_valid_in_every_revision() -> None:
    view = published(tool("a", output=b'{"type":"object"}'), tool("b", output=b'{"type":"array"}')).view
    validate_server_result("tools/list", "2026-07-28", page(methods(), view))
    for revision in ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"):
        validate_server_result("tools/list", revision, page(methods(), view, modern=False))


def test_the_modern_page_says_how_long_it_holds_and_who_made_it() -> None:
    result = page(methods(ttl_ms=7, cache_scope="private"), published().view)
    assert result == {
        "resultType": "complete",
        "tools": [],
        "ttlMs": 7,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "gw", "version": "1"}},
    }
    assert page(methods(), published().view, modern=False) == {"tools": []}


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 17])
def test_a_walk_finds_every_tool_once_and_ends(count: int) -> None:
    view = published(*[tool(f"t{number:02}") for number in range(count)]).view
    assert walk(methods(page_size=8), lambda: view) == [f"shop.t{number:02}" for number in range(count)]


@given(st.integers(1, 5), st.randoms(use_true_random=False))
def test_a_walk_across_changes_neither_loses_nor_doubles_what_was_there_throughout(
    size: int, chance: random.Random
) -> None:
    tools = {f"t{number:02}": tool(f"t{number:02}") for number in range(0, 30, 2)}
    place = published(*tools.values())
    passing: dict[str, object] = {}

    def changing() -> View:
        for _ in range(chance.randrange(4)):
            name = f"t{chance.randrange(1, 30, 2):02}"
            if name in passing:
                put(place, gone=(passing.pop(name),))
            else:
                passing[name] = tool(name)
                put(place, passing[name])
        return place.view

    names = walk(methods(page_size=size), changing)
    assert len(names) == len(set(names))
    assert {f"shop.{name}" for name in tools} <= set(names)


def test_the_empty_and_the_null_cursor_are_the_start() -> None:
    view = published(tool("a"), tool("b")).view
    here = methods(page_size=1)
    assert page(here, view, "") == page(here, view)
    found = here.tools_list(view, request(cursor=None), ANYONE, modern=True)
    assert isinstance(found, Listed)


@pytest.mark.parametrize("cursor", ["nope", 5, {}])
def test_a_cursor_that_is_not_ours_is_an_error(cursor: str) -> None:
    found = methods().tools_list(published().view, request(cursor=cursor), ANYONE, modern=True)
    assert isinstance(found, RpcError)
    assert found.code == -32602


def test_a_tool_that_the_caller_may_not_use_is_not_there() -> None:
    secret = tool("secret", rbac=ADMINS)
    view = published(tool("a"), secret, tool("z")).view
    here = methods(page_size=1)
    assert walk(here, lambda: view) == ["shop.a", "shop.z"]
    assert walk(here, lambda: view, caller=Everybody()) == ["shop.a", "shop.secret", "shop.z"]
    found = here.call(view, request("tools/call", name="shop.secret").params, ANYONE.allows)
    assert isinstance(found, RpcError)
    assert "Unknown tool" in found.message
    assert isinstance(here.call(view, request("tools/call", name="shop.secret").params, lambda _: True), Call)


def test_a_call_takes_name_and_arguments_and_keeps_the_rest_as_it_came() -> None:
    view = published(tool("a")).view
    params = request("tools/call", name="shop.a", arguments={"x": [1]}, _meta={"k": 1}, requestState="s").params
    found = methods().call(view, params, ANYONE.allows)
    assert isinstance(found, Call)
    assert found.target is view.find("shop.a")
    assert found.arguments == {"x": [1]}
    assert found.rest == {"_meta": b'{"k": 1}', "requestState": b'"s"'}


def test_arguments_may_be_left_out() -> None:
    view = published(tool("a")).view
    for params in ({"name": "shop.a"}, {"name": "shop.a", "arguments": None}):
        found = methods().call(view, request("tools/call", **params).params, ANYONE.allows)
        assert isinstance(found, Call)
        assert found.arguments == {}


@pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": "shop.b"}, {"name": "shop.a", "arguments": [1]}])
def test_a_call_that_cannot_be_made_is_a_protocol_error(params: dict[str, Any]) -> None:
    found = methods().call(published(tool("a")).view, request("tools/call", **params).params, ANYONE.allows)
    assert isinstance(found, RpcError)
    assert found.code == -32602


def test_a_number_beyond_json_s_doubles_is_not_an_argument() -> None:
    params = jsonrpc.parse(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shop.a","arguments":{"n":1e999}}}'
    )
    assert isinstance(params, jsonrpc.Request)
    assert isinstance(methods().call(published(tool("a")).view, params.params, ANYONE.allows), RpcError)


async def _pong(_view: Any, _arguments: Any, _context: Any) -> CallResult:
    return CallResult()


EXTRA = ExtraTool(
    modern=b'{"name":"search_tools","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}',
    legacy=b'{"name":"search_tools","inputSchema":{"type":"object"}}',
    handler=_pong,
)


def test_the_gateways_own_tools_come_first_and_on_the_first_page_only() -> None:
    view = published(tool("a"), tool("b")).view
    here = methods(MethodsConfig({"search_tools": EXTRA}), page_size=1)
    assert walk(here, lambda: view) == ["search_tools", "shop.a", "shop.b"]
    assert "outputSchema" in page(here, view)["tools"][0]
    assert "outputSchema" not in page(here, view, modern=False)["tools"][0]
    found = here.call(view, request("tools/call", name="search_tools").params, ANYONE.allows)
    assert isinstance(found, Call)
    assert found.target is EXTRA


def test_without_the_catalog_they_are_all_there_is() -> None:
    view = published(tool("a")).view
    here = methods(MethodsConfig({"search_tools": EXTRA}, catalog=False))
    assert walk(here, lambda: view) == ["search_tools"]
    assert isinstance(here.call(view, request("tools/call", name="shop.a").params, ANYONE.allows), RpcError)


def test_initialize_and_discover_are_valid_and_agree() -> None:
    here = methods(instructions="Ask first.")
    revision, body = here.initialize(request("initialize", protocolVersion="2025-06-18").params)
    opened, discovered = json.loads(body), json.loads(here.discovered)
    assert revision == opened["protocolVersion"] == "2025-06-18"
    assert opened["instructions"] == discovered["instructions"] == "Ask first."
    assert opened["capabilities"] == discovered["capabilities"] == {"tools": {"listChanged": True}}
    assert discovered["supportedVersions"] == ["2026-07-28"]
    validate_server_result("initialize", "2025-06-18", opened)
    validate_server_result("server/discover", "2026-07-28", discovered)


@pytest.mark.parametrize(("bytes_of_a_page", "pages"), [(10_000, 1), (1_100, 2), (1_000, 4), (10, 4)])
def test_a_page_ends_where_its_bytes_do_and_has_one_tool_at_least(bytes_of_a_page: int, pages: int) -> None:
    view = published(*[tool(name, description="x" * 440) for name in "abcd"]).view
    here = methods(page_bytes=bytes_of_a_page)
    names: list[str] = []
    cursor: str | None = None
    for _ in range(pages):
        result = page(here, view, cursor)
        names += [one["name"] for one in result["tools"]]
        cursor = result.get("nextCursor")
    assert cursor is None
    assert names == ["shop.a", "shop.b", "shop.c", "shop.d"]


def test_a_page_is_put_together_once_for_all_who_may_see_the_same() -> None:
    view = published(*[tool(f"t{number}", rbac=ADMINS if number == 1 else None) for number in range(3)]).view
    here = methods()
    for caller, names in ((ANYONE, "t0 t2"), (Everybody(), "t0 t1 t2"), (ANYONE, "t0 t2")):
        asked = [here.tools_list(view, request(), caller, modern=True) for _ in range(2)]
        first, second = (one.definitions for one in asked if isinstance(one, Listed))
        assert [json.loads(one)["name"] for one in first] == [f"shop.{name}" for name in names.split()]
        assert all(one is other for one, other in zip(first, second, strict=True))


def test_more_pages_than_are_kept_are_still_right() -> None:
    view = published(*[tool(f"t{number:03}") for number in range(MAX_PAGES + 8)]).view
    here = methods(page_size=1)
    for _ in range(2):
        assert walk(here, lambda: view) == [f"shop.t{number:03}" for number in range(MAX_PAGES + 8)]
