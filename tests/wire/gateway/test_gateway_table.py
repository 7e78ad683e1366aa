"""The rows of the update/remove table that accept, and what holds for one response as a whole."""

from __future__ import annotations

import asyncio
import json

import pytest
from gateway_house import BOUND, House, Spec, house, inline, listener, settings, tool
from gateway_upstreams import document, mcp_upstream, server, source

from arion_tds.config import judging
from arion_tds.errors import ConfigError
from control_plane_example import documents
from control_plane_example.wire import DeltaDiscoveryResponse, ProtoAny, Resource

TOOL = documents.TYPE_URLS["McpTool"]
STATIC = listener(gateway={"tools": [tool("shop.order", "As configured"), tool("shop.other", "As configured")]})
CODE = listener(gateway={"code_mode": {"toolkits": []}})


def resource(kind: str, name: str, spec: Spec, version: str = "1", type_url: str | None = None) -> Resource:
    held = documents.encode(kind, spec)
    assert isinstance(held, documents.Held)
    content = ProtoAny(type_url=type_url or documents.TYPE_URLS[kind], value=held.payload)
    return Resource(name=name, version=version, resource=content)


async def send(here: House, *resources: Resource, removed: tuple[str, ...] = (), kind: str = "McpTool") -> None:
    """One response, written as it stands."""
    response = DeltaDiscoveryResponse(
        type_url=documents.TYPE_URLS[kind], resources=list(resources), removed_resources=list(removed)
    )
    assert await here.plane.send_raw(response) == 1


# Tools


async def test_a_delivered_tool_replaces_another_and_goes_when_it_is_removed() -> None:
    async with house() as here:
        await here.put("McpTool", "a/main/shop.order", tool("shop.order", "First"))
        await here.put("McpTool", "a/main/shop.order", tool("shop.order", "Second"))
        await here.a.serves("shop.order")
        assert await here.a.text("shop.order") == "Second"
        assert await here.a.search("second") == ["shop.order"]
        assert await here.a.search("first") == []

        await here.remove("McpTool", "a/main/shop.order")
        await here.a.refuses("shop.order")


async def test_a_static_tool_is_replaced_and_does_not_return_when_its_replacement_is_removed() -> None:
    async with house(STATIC) as here:
        await here.a.serves("shop.order", "shop.other")
        await here.put("McpTool", "a/main/shop.order", tool("shop.order", "As delivered"))
        assert await here.a.text("shop.order") == "As delivered"

        await here.remove("McpTool", "a/main/shop.order")
        await here.a.serves("shop.other")


async def test_a_static_tool_can_be_removed_by_name() -> None:
    async with house(STATIC) as here:
        await send(here, removed=("a/main/shop.other",))
        await here.plane.acked_removal("McpTool", "a/main/shop.other")
        await here.a.serves("shop.order")


async def test_a_bad_version_of_a_static_tool_leaves_the_static_one() -> None:
    async with house(STATIC) as here:
        await here.refused("McpTool", "a/main/shop.order", tool("shop.order", ""), "description is empty")
        await here.a.serves("shop.order", "shop.other")
        assert await here.a.text("shop.order") == "As configured"


async def test_removing_a_derived_a_discovered_or_an_absent_name_is_accepted_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with mcp_upstream("add") as upstream, house() as here:
        await here.put("McpOpenApiSource", "a/main/shop", source("shop", "get_order"))
        await here.put("McpDynamicServer", "a/main/notes", server("notes", upstream.url))
        for name, why in (
            ("shop.get_order", "comes from OpenAPI source 'shop' and is only removed with it"),
            ("notes.add", "comes from MCP server 'notes' and is only removed with it"),
            ("nothing.there", "is not here: nothing to remove"),
        ):
            caplog.clear()
            await send(here, removed=(f"a/main/{name}",))
            await here.plane.acked_removal("McpTool", f"a/main/{name}")
            assert f"tool {name!r} {why}" in caplog.text
        await here.a.serves("notes.add", "shop.get_order")


async def test_removing_an_absent_source_server_or_toolkit_is_accepted_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with house(CODE) as here:
        await here.put("McpTool", "a/main/shop.order", tool("shop.order"))
        for kind in ("McpOpenApiSource", "McpDynamicServer", "McpToolkit"):
            caplog.clear()
            await send(here, removed=("a/main/shop",), kind=kind)
            await here.plane.acked_removal(kind, "a/main/shop")
            assert "'shop' is not here" in caplog.text
        assert (await here.dump())["namespaces"]["shop"]["tools"] == ["shop.order"]


# The resource name wins


async def test_the_resource_name_wins_over_the_payload_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with mcp_upstream("add") as upstream, house() as here:
        await here.put("McpTool", "a/main/real.name", tool("other.thing"))
        await here.put("McpOpenApiSource", "a/main/sourced", source("else", "x"))
        await here.put("McpDynamicServer", "a/main/served", server("else", upstream.url))
        await here.a.serves("real.name", "served.add", "sourced.x")
        assert caplog.text.count("not the resource name") == 3


async def test_the_payload_says_where_a_name_of_several_dots_splits() -> None:
    async with house() as here:
        split = {**tool("a.x"), "namespace": "a.b", "name": "c"}
        await here.put("McpTool", "a/main/a.b.c", split)
        assert set((await here.dump())["namespaces"]) == {"a.b"}

        await here.put(
            "McpTool", "a/main/a.b.c", {**split, "namespace": "elsewhere"}
        )  # disagrees: the first dot splits
        assert set((await here.dump())["namespaces"]) == {"a"}
        await here.a.serves("a.b.c")


async def test_a_name_with_further_slashes_is_one_name_and_served_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with house() as here:
        await here.put("McpTool", "a/main/gh.repos/get", tool("gh.repos/get"))
        await here.a.serves("gh.repos/get")
        assert "outside [A-Za-z0-9_.-]" in caplog.text


# Sources and servers


async def test_a_source_update_makes_the_namespace_exactly_the_new_set_and_its_removal_empties_it() -> None:
    async with house() as here:
        await here.put("McpOpenApiSource", "a/main/shop", source("shop", "list_orders", "get_order"))
        await here.put("McpOpenApiSource", "a/main/shop", source("shop", "get_order", "new_order"))
        await here.a.serves("shop.get_order", "shop.new_order")

        await here.remove("McpOpenApiSource", "a/main/shop")
        await here.a.serves()
        await here.put("McpTool", "a/main/shop.order", tool("shop.order"))  # the namespace is free again
        await here.a.serves("shop.order")


async def test_a_server_brings_every_page_of_its_tools_and_takes_them_all_along() -> None:
    async with mcp_upstream("a", "b", "c", "d", "e") as upstream, mcp_upstream("e", "f") as other, house() as here:
        await here.put("McpDynamicServer", "a/main/notes", server("notes", upstream.url))
        await here.a.serves("notes.a", "notes.b", "notes.c", "notes.d", "notes.e")
        assert (await here.a.echo("notes.c", text="x"))["arguments"] == {"text": "x"}

        await here.put("McpDynamicServer", "a/main/notes", server("notes", other.url))
        await here.a.serves("notes.e", "notes.f")

        await here.remove("McpDynamicServer", "a/main/notes")
        await here.a.serves()


async def test_skipped_operations_stand_in_problems_beside_the_accepted_source() -> None:
    written = json.loads(document("fine"))
    written["paths"]["/odd/{id}"] = {"get": {"operationId": "odd", "responses": {"200": {"description": "ok"}}}}
    spec = {**source("shop"), "spec": inline(written)}
    async with house() as here:
        await here.refused("McpOpenApiSource", "a/main/shop", spec, "{id}, but no path parameter")

        version = await here.put("McpOpenApiSource", "a/main/shop", {**spec, "skip_unsupported_operations": True})
        await here.a.serves("shop.fine")
        (problem,) = await here.problems()
        assert (problem["state"], problem["version"]) == ("partly served", version)
        assert "{id}, but no path parameter" in problem["reason"]
        await here.remove("McpOpenApiSource", "a/main/shop")
        assert await here.problems() == []


async def test_the_last_tool_of_a_namespace_frees_it_for_every_kind_of_owner() -> None:
    async with mcp_upstream("add") as upstream, house() as here:
        await here.put("McpTool", "a/main/n.x", tool("n.x"))
        await here.put("McpTool", "a/main/n.y", tool("n.y"))
        await here.remove("McpTool", "a/main/n.x")
        await here.refused("McpOpenApiSource", "a/main/n", source("n", "op"), "owned by tools, such as 'n.y'")

        await here.remove("McpTool", "a/main/n.y")
        await here.put("McpOpenApiSource", "a/main/n", source("n", "op", "op2"))
        await here.a.serves("n.op", "n.op2")
        await here.remove("McpOpenApiSource", "a/main/n")
        await here.put("McpDynamicServer", "a/main/n", server("n", upstream.url))
        await here.a.serves("n.add")
        await here.remove("McpDynamicServer", "a/main/n")
        await here.put("McpTool", "a/main/n.add", tool("n.add"))
        await here.a.serves("n.add")
        assert (await here.a.echo("n.add"))["path"] == "/n/add"


async def test_a_newer_version_that_is_refused_leaves_the_older_one_that_is_still_being_asked_to_be_served() -> None:
    async with mcp_upstream("add") as upstream, house() as here:
        upstream.open.clear()
        good = server("notes", upstream.url)
        version = await here.plane.put("McpDynamicServer", "a/main/notes", good)
        async with asyncio.timeout(BOUND):
            await upstream.asked.wait()
        await here.plane.put("McpDynamicServer", "a/main/notes", {**good, "url": ""})
        catalog = here.gateway.catalogs[0]
        async with asyncio.timeout(BOUND):
            while not await here.problems():
                pass
        upstream.open.set()

        await here.plane.acked("McpDynamicServer", "a/main/notes", version)
        assert "url is empty" in (await here.plane.nacked("McpDynamicServer", "a/main/notes")).reason
        assert "notes.add" in catalog.published.view.tools
        await here.a.serves("notes.add")
        (problem,) = await here.problems()  # of the newer one, which is what the control plane has
        assert "url is empty" in problem["reason"]


async def test_a_server_removed_while_it_is_being_asked_is_not_served_afterwards() -> None:
    async with mcp_upstream("add") as upstream, house() as here:
        upstream.open.clear()
        await here.plane.put("McpDynamicServer", "a/main/notes", server("notes", upstream.url))
        async with asyncio.timeout(BOUND):
            await upstream.asked.wait()
        assert here.plane.remove("McpDynamicServer", "a/main/notes")
        await here.put("McpTool", "a/main/shop.order", tool("shop.order"))  # other types do not wait for the server
        upstream.open.set()
        await here.plane.acked_removal("McpDynamicServer", "a/main/notes")
        await here.a.serves("shop.order")
        assert await here.problems() == []


async def test_a_refused_server_is_served_without_a_new_push_once_it_can_be_asked() -> None:
    async with mcp_upstream("add") as upstream, house() as here:
        upstream.status = 503
        await here.refused("McpDynamicServer", "a/main/notes", server("notes", upstream.url), "503")
        upstream.status = 200
        catalog = here.gateway.catalogs[0]
        await here.published(lambda: "notes.add" in catalog.published.view.tools)
        await here.a.serves("notes.add")
        assert await here.problems() == []


# Toolkits

KIT = {
    "name": "trip",
    "instructions": "First",
    "tools": [{"namespace": "weather", "name": "today"}, {"namespace": "maps", "name": "route"}],
}


async def test_a_toolkit_in_code_mode_is_added_replaced_and_deleted() -> None:
    async with house(CODE) as here:
        view = here.gateway.catalogs[0].published
        await here.put("McpToolkit", "a/main/trip", KIT)
        assert (await here.dump())["toolkits"] == ["trip"]
        await here.put("McpToolkit", "a/main/trip", {**KIT, "instructions": "Second"})
        assert view.view.toolkits["trip"].instructions == "Second"
        await here.remove("McpToolkit", "a/main/trip")
        assert (await here.dump())["toolkits"] == []


BAD_KITS: dict[str, tuple[Spec, str]] = {
    "no-tools": ({**KIT, "tools": []}, "tools has 0 of at least two tools"),
    "one-tool": ({**KIT, "tools": KIT["tools"][:1]}, "tools has 1 of at least two tools"),
    "namespace-empty": ({**KIT, "tools": [{"name": "x"}, {"namespace": "n", "name": "y"}]}, "namespace is empty"),
    "name-empty": ({**KIT, "tools": [{"namespace": "n"}, {"namespace": "n", "name": "y"}]}, "name is empty"),
}


@pytest.mark.parametrize(("spec", "why"), BAD_KITS.values(), ids=BAD_KITS)
async def test_a_bad_toolkit_is_nacked_and_its_last_good_version_stays(spec: Spec, why: str) -> None:
    async with house(CODE) as here:
        await here.put("McpToolkit", "a/main/trip", KIT)
        await here.refused("McpToolkit", "a/main/trip", {**spec, "instructions": "Bad"}, why)
        assert here.gateway.catalogs[0].published.view.toolkits["trip"].instructions == "First"
        await here.put("McpToolkit", "a/main/trip", {**KIT, "instructions": "Second"})
        assert await here.problems() == []


async def test_a_toolkit_in_tools_mode_is_accepted_and_ignored() -> None:
    async with house() as here:
        await here.put("McpToolkit", "a/main/trip", KIT)
        assert (await here.dump())["toolkits"] == []
        await here.remove("McpToolkit", "a/main/trip")
        assert await here.problems() == []


# Scopes


async def test_resources_of_a_scope_that_no_gateway_consumes_are_accepted_without_effect() -> None:
    async with house(listener(), listener("b")) as here:
        for number, scope in enumerate(("nobody/main", "a/other", "aa/main", "A/main")):
            name = f"{scope}/shop.order"
            await send(here, resource("McpTool", name, tool("shop.order"), f"v{number}"))
            await here.plane.acked("McpTool", name, f"v{number}")
            await send(here, removed=(name,))
            await here.plane.acked_removal("McpTool", name)
        bad = Resource(name="nobody/main/x.y", version="1", resource=ProtoAny(type_url=TOOL, value=b"\xff"))
        await send(here, bad)  # nobody judges what nobody serves
        await here.plane.acked("McpTool", "nobody/main/x.y", "1")
        await here.a.serves()
        await here.tenants["b"].serves()
        assert await here.problems() == []


async def test_each_scope_gets_its_own_of_one_response_and_a_bad_one_harms_no_neighbour() -> None:
    async with house(listener(), listener("b"), control_plane={"subscription": "scope"}) as here:
        here.plane.hold()
        await here.plane.put("McpTool", "a/main/shop.order", tool("shop.order", "For a"))
        await here.plane.put("McpTool", "b/main/shop.order", tool("shop.order", ""))
        await here.plane.put("McpTool", "b/main/shop.other", tool("shop.other", "For b"))
        here.plane.release()
        nack = await here.plane.nacked("McpTool")
        assert nack.names == ("b/main/shop.order",)
        await here.a.serves("shop.order")
        await here.tenants["b"].serves("shop.other")


async def test_the_same_tds_server_name_twice_is_a_start_up_error_that_names_both() -> None:
    twin = listener("twin", gateway={"server_info": {"name": "a", "version": "1"}, "tds": {"config_name": "other"}})
    with pytest.raises(ConfigError) as found:
        judging.judge(settings("127.0.0.1:1", "http://127.0.0.1:1", [listener(), twin]))
    (problem,) = found.value.problems
    assert "'a' and 'twin'" in problem


async def test_static_content_is_judged_as_delivered_content_is() -> None:
    bad = listener(gateway={"tools": [tool("shop.order"), tool("shop.bad", "", rest_backend={"method": "GET"})]})
    with pytest.raises(ConfigError) as found:
        judging.judge(settings("127.0.0.1:1", "http://127.0.0.1:1", [bad]))
    said = "\n".join(found.value.problems)
    for path in ("tools[1].description", "tools[1].rest_backend.path", "tools[1].rest_backend.cluster"):
        assert f"listeners[0].mcp_gateway.{path}: is empty" in said


@pytest.mark.parametrize("field", ["name", "version"])
async def test_an_empty_server_info_is_a_start_up_error(field: str) -> None:
    info = {"name": "a", "version": "1", field: ""}
    with pytest.raises(ConfigError, match=rf"server_info\.{field}: is empty"):
        judging.judge(settings("127.0.0.1:1", "http://127.0.0.1:1", [listener(gateway={"server_info": info})]))


# One response as a whole


async def test_removals_apply_before_updates_within_one_response() -> None:
    async with house(listener(tool_names="portable")) as here:
        await here.put("McpTool", "a/main/shop.get.one", tool("shop.get.one"))
        # Both are published as shop__get_one: the new one can only be taken if the old one goes first.
        new = resource("McpTool", "a/main/shop.get_one", tool("shop.get_one", "New"), "new")
        await send(here, new, removed=("a/main/shop.get.one",))
        await here.plane.acked("McpTool", "a/main/shop.get_one", "new")
        await here.a.serves("shop__get_one")
        assert await here.a.text("shop__get_one") == "New"


def _tools(*names: str) -> list[Resource]:
    return [resource("McpTool", f"a/main/{name}", tool(name, "Changed"), f"v{at}") for at, name in enumerate(names)]


WHOLE: dict[str, tuple[list[Resource], tuple[str, ...], str]] = {
    "name-twice": (_tools("shop.new", "shop.order", "shop.order"), (), "'a/main/shop.order' is named twice"),
    "updated-and-removed": (_tools("shop.new", "shop.order"), ("a/main/shop.order",), "'a/main/shop.order' is named"),
    "removed-twice": (_tools("shop.new"), ("a/main/shop.order", "a/main/shop.order"), "'a/main/shop.order' is named"),
    "any-of-another-type": (
        [*_tools("shop.new"), resource("McpTool", "a/main/shop.order", tool("shop.order"), "v", TOOL + "kit")],
        (),
        "'a/main/shop.order' is of type",
    ),
    "any-of-another-type-elsewhere": (
        [*_tools("shop.new"), resource("McpTool", "nobody/main/x.y", tool("x.y"), "v", "type.googleapis.com/x")],
        ("a/main/shop.order",),
        "'nobody/main/x.y' is of type",
    ),
    "no-name": ([*_tools("shop.new"), Resource(name="", version="1")], ("a/main/shop.order",), "has no name"),
}


@pytest.mark.parametrize(("resources", "removed", "why"), WHOLE.values(), ids=WHOLE)
async def test_a_response_that_contradicts_itself_is_nacked_whole_and_nothing_of_it_applies(
    resources: list[Resource], removed: tuple[str, ...], why: str
) -> None:
    async with house() as here:
        used = await here.put("McpTool", "a/main/shop.order", tool("shop.order", "Before"))

        await send(here, *resources, removed=removed)
        nack = await here.plane.nacked("McpTool")
        assert nack.reason.startswith("response refused as a whole, nothing of it was applied")
        assert why in nack.reason
        await here.a.serves("shop.order")
        assert await here.a.text("shop.order") == "Before"

        await here.cut()
        await here.put("McpTool", "a/main/shop.after", tool("shop.after"))
        first = [ask for ask in here.plane.requests("McpTool") if ask.resource_names_subscribe][-1]
        assert first.initial_resource_versions == {"a/main/shop.order": used}
        await here.a.serves("shop.after", "shop.order")


async def test_a_response_of_a_type_that_was_not_asked_for_is_dropped_and_counted() -> None:
    async with house() as here:
        url = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
        await here.plane.send_raw(DeltaDiscoveryResponse(type_url=url, resources=[Resource(name="a/main/x.y")]))
        await here.put("McpTool", "a/main/shop.order", tool("shop.order"))
        assert here.plane.requests(url) == []
        assert here.gateway.ads is not None
        assert here.gateway.ads.status().dropped == 1
        await here.a.serves("shop.order")


async def test_equal_content_again_is_acked_and_changes_nothing() -> None:
    async with house() as here:
        spec = tool("shop.order")
        await here.put("McpTool", "a/main/shop.order", spec)
        before = here.gateway.catalogs[0].published.view
        await send(here, resource("McpTool", "a/main/shop.order", spec, "other"))
        await here.plane.acked("McpTool", "a/main/shop.order", "other", timeout=BOUND)
        assert here.gateway.catalogs[0].published.view is before
