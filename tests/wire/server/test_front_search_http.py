"""POST /mcp/search."""

from __future__ import annotations

from typing import Any

from front_house import House, NameSearch, house, tool

from arion_tds.model.rbac import Rbac


async def ask(here: House, body: Any) -> tuple[int, Any]:
    async with here.http.post(here.url + "/search", json=body) as response:
        return response.status, await response.json()


async def test_a_search_answers_with_definitions_that_can_be_called() -> None:
    async with house(tool("find_invoice"), tool("other"), search=NameSearch()) as here:
        status, found = await ask(here, {"query": "invoice"})
        assert (status, found["total"]) == (200, 1)
        (one,) = found["tools"]
        assert (one["name"], one["namespace"], one["score"]) == ("shop.find_invoice", "shop", 1.0)
        assert (await here.ask("tools/call", {"name": one["name"]}))[0] == 200


async def test_an_empty_query_pages_through_everything_in_name_order() -> None:
    async with house(*[tool(f"t{number}") for number in range(5)], search=NameSearch(), max_search_results=2) as here:
        names: list[str] = []
        offset: int | None = 0
        while offset is not None:
            _, found = await ask(here, {"query": "", "limit": 9, "offset": offset})
            assert (found["total"], found["capped"]) == (5, 2)
            names += [one["name"] for one in found["tools"]]
            offset = found.get("next_offset")
        assert names == [f"shop.t{number}" for number in range(5)]


async def test_an_unknown_namespace_is_empty() -> None:
    async with house(tool("a"), search=NameSearch()) as here:
        status, found = await ask(here, {"query": "a", "namespace": "none"})
        assert (status, found["tools"], found["total"]) == (200, [], 0)


async def test_what_the_caller_may_not_use_is_not_found() -> None:
    async with house(tool("a", rbac=Rbac(deny=False, permissions=())), search=NameSearch()) as here:
        assert (await ask(here, {"query": "a"}))[1]["total"] == 0


async def test_bad_bodies_name_the_field() -> None:
    async with house(search=NameSearch()) as here:
        status, found = await ask(here, {"query": "a", "k": 5})
        assert (status, found["error"]["field"]) == (400, "k")
        async with here.http.post(here.url + "/search", data=b"{", headers={"Content-Type": "application/json"}) as bad:
            assert bad.status == 400
        async with here.http.post(here.url + "/search", data=b"{}") as bad:
            assert bad.status == 415
        async with here.http.get(here.url + "/search") as bad:
            assert bad.status == 405


async def test_without_search_there_is_no_such_place() -> None:
    async with house() as here:
        status, found = await ask(here, {"query": "a"})
        assert status == 404
        assert "not enabled" in found["error"]["message"]
