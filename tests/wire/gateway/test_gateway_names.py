"""`tool_names`: what a listener publishes, both spellings callable, and collisions refused by both names."""

from __future__ import annotations

import pytest
from gateway_house import House, house, listener, tool
from gateway_upstreams import mcp_upstream, server, source

PUBLISHED = {
    "qualified": ("shop.order", "gh.repos/get"),
    "portable": ("shop__order", "gh__repos_get"),
    "bare": ("order", "repos/get"),
}


@pytest.mark.parametrize("naming", PUBLISHED)
async def test_tools_are_published_as_the_listener_says_and_called_by_either_name(naming: str) -> None:
    async with house(listener(tool_names=naming)) as here:
        await here.put("McpTool", "a/main/shop.order", tool("shop.order"))
        await here.put("McpTool", "a/main/gh.repos/get", tool("gh.repos/get"))

        await here.a.serves(*PUBLISHED[naming])
        for qualified, published in zip(("shop.order", "gh.repos/get"), PUBLISHED[naming], strict=True):
            assert await here.a.echo(qualified) == await here.a.echo(published)
            assert qualified.partition(".")[2] in (await here.a.echo(qualified))["path"]

        await here.remove("McpTool", "a/main/shop.order")
        await here.a.refuses(PUBLISHED[naming][0])
        assert "Unknown tool" in (await here.a.call("shop.order"))["message"]


@pytest.mark.parametrize("naming", ["portable", "bare"])
async def test_sources_and_servers_are_published_so_too(naming: str) -> None:
    async with mcp_upstream("add", "find") as upstream, house(listener(tool_names=naming)) as here:
        await here.put("McpOpenApiSource", "a/main/shop", source("shop", "get_order"))
        await here.put("McpDynamicServer", "a/main/notes", server("notes", upstream.url))
        shown = {
            "portable": ("notes__add", "notes__find", "shop__get_order"),
            "bare": ("add", "find", "get_order"),
        }[naming]
        await here.a.serves(*shown)
        assert (await here.a.echo("notes.add"))["path"] == "add"  # upstream it has its own name
        assert (await here.a.echo("shop.get_order"))["path"] == "/api/get_order"


async def test_a_portable_name_that_is_too_long_is_cut_with_a_digest_and_stays_callable() -> None:
    async with house(listener(tool_names="portable")) as here:
        long = "n." + "x" * 100
        await here.put("McpTool", f"a/main/{long}", tool(long))
        await here.put("McpTool", f"a/main/{long}y", tool(f"{long}y"))
        names = await here.a.listed()
        assert [len(name) for name in names] == [64, 64]
        assert {(await here.a.echo(name))["path"] for name in names} == {f"/n/{'x' * 100}", f"/n/{'x' * 100}y"}


COLLISIONS = {
    "portable": ("portable", "shop.get.one", "shop.get_one", "shop__get_one"),
    "portable-across-namespaces": ("portable", "shop.a__b", "shop__a.b", "shop__a__b"),
    "bare": ("bare", "shop.order", "store.order", "order"),
}


@pytest.mark.parametrize(("naming", "first", "second", "published"), COLLISIONS.values(), ids=COLLISIONS)
async def test_a_tool_whose_published_name_is_taken_is_nacked_with_both_names(
    naming: str, first: str, second: str, published: str
) -> None:
    async with house(listener(tool_names=naming)) as here:
        await here.put("McpTool", f"a/main/{first}", tool(first, "The first"))

        reason = f"{second!r} and {first!r} would both be published as {published!r}"
        await here.refused("McpTool", f"a/main/{second}", tool(second, "The second"), reason)
        await here.a.serves(published)
        await _calls(here, published, first)
        assert "Unknown tool" in (await here.a.call(second))["message"]

        await here.put("McpTool", f"a/main/{first}", tool(first, "The first again"))  # its own name is no collision
        await here.remove("McpTool", f"a/main/{first}")
        await here.put("McpTool", f"a/main/{second}", tool(second, "The second again"))
        await _calls(here, published, second)
        assert await here.problems() == []


async def _calls(here: House, published: str, qualified: str) -> None:
    namespace, _, name = qualified.partition(".")
    assert (await here.a.echo(published))["path"] == f"/{namespace}/{name}"


async def test_two_tools_of_one_response_with_one_published_name_first_come_first_served() -> None:
    async with house(listener(tool_names="bare")) as here:
        here.plane.hold()
        await here.plane.put("McpTool", "a/main/a.x", tool("a.x"))
        await here.plane.put("McpTool", "a/main/b.x", tool("b.x"))
        here.plane.release()
        nack = await here.plane.nacked("McpTool")
        assert nack.names == ("a/main/b.x",)
        assert "'b.x' and 'a.x' would both be published as 'x'" in nack.reason
        await here.a.serves("x")
        await _calls(here, "x", "a.x")


async def test_a_source_or_server_with_a_taken_published_name_is_nacked_whole() -> None:
    async with mcp_upstream("order", "other") as upstream, house(listener(tool_names="bare")) as here:
        await here.put("McpTool", "a/main/shop.order", tool("shop.order"))
        for kind, spec, first in (
            ("McpOpenApiSource", source("sourced", "fine", "order"), "sourced.order"),
            ("McpDynamicServer", server("served", upstream.url), "served.order"),
        ):
            name = f"a/main/{spec['namespace']}"
            await here.refused(kind, name, spec, f"{first!r} and 'shop.order' would both be published as 'order'")
            await here.a.serves("order")
            await _calls(here, "order", "shop.order")


async def test_with_qualified_names_the_same_local_name_in_two_namespaces_is_fine() -> None:
    async with house() as here:
        await here.put("McpTool", "a/main/a.x", tool("a.x"))
        await here.put("McpTool", "a/main/b.x", tool("b.x"))
        await here.a.serves("a.x", "b.x")


async def test_a_bare_name_that_is_the_qualified_name_of_another_tool_calls_the_tool_that_is_listed_so() -> None:
    async with house(listener(tool_names="bare")) as here:
        await here.put("McpTool", "a/main/x.y.z", tool("x.y.z"))  # published as y.z
        await here.put("McpTool", "a/main/y.z", tool("y.z"))  # published as z, and qualified it is y.z
        await here.a.serves("y.z", "z")
        await _calls(here, "y.z", "x.y.z")
        await _calls(here, "z", "y.z")
