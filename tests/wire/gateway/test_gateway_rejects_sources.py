"""Every OpenApiToolSource and DynamicMcpServer that the contract says is rejected: the previous tools go on serving."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from gateway_house import House, house, inline, merged, raw, tool
from gateway_upstreams import McpUpstream, mcp_upstream, server, source

from control_plane_example import documents

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOURCE = "a/main/shop"
GOOD = source("shop", "list_orders", "get_order")
OPEN = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}}
BROKEN_REF = {**OPEN, "paths": {"/x": {"get": {"operationId": "x", "parameters": [{"$ref": "#/nowhere"}]}}}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[McpUpstream]:
    async with mcp_upstream("add", "find", "drop") as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(upstream: McpUpstream) -> AsyncIterator[House]:
    async with house() as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def here(shared: House, upstream: McpUpstream) -> AsyncIterator[House]:
    """One house for all (its worker process takes half a second to start); each test finds it empty."""
    upstream.status, upstream.tools = 200, ("add", "find", "drop")
    yield shared
    for key, _, _ in list(shared.plane._snapshot.entries()):
        await shared.remove(key.type_url, key.name)
    assert (await shared.dump())["namespaces"] == {}
    assert await shared.problems() == []


BAD_SOURCES: dict[str, tuple[str, Any, str]] = {
    "spec-missing": ("spec", None, "spec is missing"),
    "spec-unset": ("spec", {}, "spec is empty"),
    "spec-empty": ("spec", inline(""), "spec is empty"),
    "spec-not-utf8": ("spec", raw(b"openapi: 3.1.0\ninfo: \xff"), "spec is not UTF-8"),
    "spec-file-not-allowed": ("spec", {"filename": "/etc/hostname"}, "does not allow it to be read"),
    "spec-variable-not-allowed": ("spec", {"environment_variable": "PATH"}, "does not allow it to be read"),
    "cluster-empty": ("cluster", "", "cluster is empty"),
    "timeout-zero": ("upstream_policy", {"timeout": "0s"}, "timeout is 0 s"),
    "rbac-empty": ("rbac", {}, "rbac.permissions is empty"),
    "include-empty": ("include_operations", [""], "include_operations[0] is empty"),
    "document-no-yaml": ("spec", inline("{openapi: [}"), "not valid"),
    "document-a-list": ("spec", inline([1, 2]), "object"),
    "document-no-openapi": ("spec", inline({"info": {}}), "openapi"),
    "document-swagger-2": ("spec", inline({"swagger": "2.0", "paths": {}}), "Swagger 2.0"),
    "document-paths-a-list": ("spec", inline({**OPEN, "paths": []}), "/paths"),
    "document-broken-ref": ("spec", inline(BROKEN_REF), "#/nowhere"),
}


async def the_source_serves(here: House, *, text: str = "Operation get_order") -> None:
    await here.a.serves("shop.get_order", "shop.list_orders")
    assert text in await here.a.text("shop.get_order")
    assert (await here.a.echo("shop.list_orders"))["path"] == "/api/list_orders"


@pytest.mark.parametrize(("path", "value", "why"), BAD_SOURCES.values(), ids=BAD_SOURCES)
async def test_a_bad_source_is_nacked_by_name_and_its_previous_tools_serve(
    here: House, path: str, value: Any, why: str
) -> None:
    await here.put("McpOpenApiSource", SOURCE, GOOD)

    await here.refused("McpOpenApiSource", SOURCE, merged(GOOD, path, value), why)
    await the_source_serves(here)

    await here.put("McpOpenApiSource", SOURCE, source("shop", "list_orders"))
    assert await here.problems() == []
    await here.a.serves("shop.list_orders")


async def test_a_bad_source_that_was_never_good_serves_nothing_until_it_is(here: House) -> None:
    await here.refused("McpOpenApiSource", SOURCE, {**GOOD, "cluster": ""}, "cluster is empty")
    await here.a.serves()
    await here.put("McpOpenApiSource", SOURCE, GOOD)
    await the_source_serves(here)
    assert await here.problems() == []


async def test_a_source_whose_namespace_tools_own_is_nacked_until_the_last_of_them_goes(here: House) -> None:
    await here.put("McpTool", "a/main/shop.order", tool("shop.order"))

    await here.refused("McpOpenApiSource", SOURCE, GOOD, "namespace 'shop' is owned by tools, such as 'shop.order'")
    await here.a.serves("shop.order")

    await here.remove("McpTool", "a/main/shop.order")
    await here.put("McpOpenApiSource", SOURCE, {**GOOD, "tool_disclosure_mode": "EAGER"})
    await the_source_serves(here)
    assert await here.problems() == []


async def test_a_source_whose_namespace_a_server_owns_is_nacked(here: House, upstream: McpUpstream) -> None:
    await here.put("McpDynamicServer", SOURCE, server("shop", upstream.url))

    version = await here.plane.put("McpOpenApiSource", SOURCE, GOOD)
    nack = await here.plane.nacked("McpOpenApiSource", SOURCE)
    assert f"{SOURCE}: namespace 'shop' is owned by MCP server 'shop'" in nack.reason
    (problem,) = await here.problems()
    assert (problem["type"], problem["version"]) == ("OpenApiToolSource", version)
    await here.a.serves("shop.add", "shop.drop", "shop.find")


async def test_a_tool_in_a_namespace_that_a_source_owns_is_nacked_and_nothing_changes(here: House) -> None:
    await here.put("McpOpenApiSource", SOURCE, GOOD)
    for name in ("a/main/shop.order", "a/main/shop.get_order"):
        reason = "namespace 'shop' is owned by OpenAPI source 'shop'"
        await here.refused("McpTool", name, tool(name.removeprefix("a/main/")), reason)
        await the_source_serves(here)


async def test_a_tool_in_a_namespace_that_a_server_owns_is_nacked_and_nothing_changes(
    here: House, upstream: McpUpstream
) -> None:
    await here.put("McpDynamicServer", "a/main/notes", server("notes", upstream.url))
    for name in ("a/main/notes.extra", "a/main/notes.add"):
        reason = "namespace 'notes' is owned by MCP server 'notes'"
        await here.refused("McpTool", name, tool(name.removeprefix("a/main/")), reason)
        await here.a.serves("notes.add", "notes.drop", "notes.find")
        assert await here.a.text("notes.add") == "Discovered add"


@pytest.mark.parametrize("name", ["no blank", "ä", "n" * 129], ids=["a-blank", "not-ascii", "129-characters"])
@pytest.mark.parametrize("kind", ["McpOpenApiSource", "McpDynamicServer"])
async def test_a_namespace_that_cannot_be_served_is_nacked(
    here: House, upstream: McpUpstream, kind: str, name: str
) -> None:
    spec = source(name, "x") if kind == "McpOpenApiSource" else server(name, upstream.url)
    await here.refused(kind, f"a/main/{name}", spec, "namespace cannot be served")
    await here.a.serves()


BAD_SERVERS: dict[str, tuple[str, Any, str]] = {
    "url-empty": ("url", "", "url is empty"),
    "url-missing": ("url", None, "url is empty"),
    "url-of-a-file": ("url", "file:///etc/passwd", "not an absolute http or https URL"),
    "url-with-a-password": ("url", "http://user:secret@h/mcp", "user information"),
    "transport-sse": ("transport", "Sse", "transport is Sse"),
    "transport-unset": ("transport", None, "transport is Sse"),
    "cache-zero": ("cache_duration", "0s", "cache_duration is 0 s"),
    "cache-negative": ("cache_duration", "-5s", "cache_duration is -5 s"),
    "rbac-empty": ("rbac", {"action": "ALLOW"}, "rbac.permissions is empty"),
    "rbac-value-empty": ("rbac", {"permissions": [{"jwt_claim": {"field": "x"}}]}, "jwt_claim.value is empty"),
    "nobody-listens": ("url", "http://127.0.0.1:9/mcp", "127.0.0.1:9"),
    "metadata-service": ("url", "http://169.254.169.254/mcp", "169.254.169.254"),
}


@pytest.mark.parametrize(("path", "value", "why"), BAD_SERVERS.values(), ids=BAD_SERVERS)
async def test_a_bad_server_is_nacked_by_name_and_its_previous_version_serves(
    here: House, upstream: McpUpstream, path: str, value: Any, why: str
) -> None:
    good = server("notes", upstream.url)
    await here.put("McpDynamicServer", "a/main/notes", good)

    nack = await here.refused("McpDynamicServer", "a/main/notes", merged(good, path, value), why)
    assert "secret" not in nack.reason
    await here.a.serves("notes.add", "notes.drop", "notes.find")
    assert (await here.a.echo("notes.add"))["path"] == "add"

    upstream.tools = ("add",)
    await here.put("McpDynamicServer", "a/main/notes", {**good, "description": "again"})
    assert await here.problems() == []
    await here.a.serves("notes.add")


@pytest.mark.parametrize("status", [401, 404, 500, 503])
async def test_a_server_that_does_not_give_its_list_is_nacked_and_its_previous_tools_serve(
    here: House, upstream: McpUpstream, status: int
) -> None:
    async with mcp_upstream("other") as broken:
        broken.status = status
        await here.put("McpDynamicServer", "a/main/notes", server("notes", upstream.url))

        await here.refused("McpDynamicServer", "a/main/notes", server("notes", broken.url), str(status))
        await here.a.serves("notes.add", "notes.drop", "notes.find")
        assert (await here.a.echo("notes.add"))["path"] == "add"


async def test_a_server_whose_namespace_tools_or_a_source_own_is_nacked(here: House, upstream: McpUpstream) -> None:
    await here.put("McpTool", "a/main/tooled.x", tool("tooled.x"))
    await here.put("McpOpenApiSource", "a/main/sourced", source("sourced", "y"))

    for namespace, owner in (("tooled", "tools, such as 'tooled.x'"), ("sourced", "OpenAPI source 'sourced'")):
        await here.plane.put("McpDynamicServer", f"a/main/{namespace}", server(namespace, upstream.url))
        nack = await here.plane.nacked("McpDynamicServer", f"a/main/{namespace}")
        assert f"namespace {namespace!r} is owned by {owner}" in nack.reason
    await here.a.serves("sourced.y", "tooled.x")


@pytest.mark.parametrize("kind", ["McpOpenApiSource", "McpDynamicServer", "McpToolkit"])
async def test_bytes_that_are_no_message_are_nacked_by_name(here: House, kind: str) -> None:
    url = documents.TYPE_URLS[kind]
    here.plane.put_raw(url, "a/main/raw", "raw-1", b"\x0a\xff")
    nack = await here.plane.nacked(kind, "a/main/raw")
    assert f"a/main/raw: cannot be decoded as {documents.MESSAGES[kind].DESCRIPTOR.name}" in nack.reason
    (problem,) = await here.problems()
    assert (problem["name"], problem["version"]) == ("a/main/raw", "raw-1")


async def test_a_bad_source_holds_back_neither_its_response_nor_other_types(here: House, upstream: McpUpstream) -> None:
    here.plane.hold()
    await here.plane.put("McpOpenApiSource", SOURCE, {**GOOD, "cluster": ""})
    await here.plane.put("McpOpenApiSource", "a/main/fine", source("fine", "y"))
    await here.plane.put("McpDynamicServer", "a/main/gone", server("gone", "http://127.0.0.1:9/mcp"))
    await here.plane.put("McpDynamicServer", "a/main/notes", server("notes", upstream.url))
    await here.plane.put("McpTool", "a/main/t.x", tool("t.x"))
    here.plane.release()

    sources = await here.plane.nacked("McpOpenApiSource")
    servers = await here.plane.nacked("McpDynamicServer")
    assert (sources.names, servers.names) == ((SOURCE,), ("a/main/gone",))
    await here.plane.acked("McpTool", "a/main/t.x")
    await here.a.serves("fine.y", "notes.add", "notes.drop", "notes.find", "t.x")
    assert json.dumps(await here.problems()).count('"rejected"') == 2
