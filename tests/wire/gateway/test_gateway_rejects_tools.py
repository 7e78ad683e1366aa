"""Every Tool that the contract says is rejected, pushed over a version that serves: that one goes on serving."""

from __future__ import annotations

from typing import Any

import pytest
from gateway_house import House, Spec, house, inline, listener, merged, raw, tool

from control_plane_example import documents
from control_plane_example.wire import DeltaDiscoveryResponse, ProtoAny, Resource

ID = "a/main/shop.order"
TOOL = documents.TYPE_URLS["McpTool"]
GOOD = tool(
    "shop.order",
    input_schema=inline({"type": "object", "properties": {"id": {"type": "string"}}}),
    disclosure_mode="EAGER",  # listed although the gateway of some cases has search
)
NO_REST = merged(GOOD, "rest_backend", None)
MCP = {"transport": "StreamableHttp", "url": "http://127.0.0.1:9/mcp"}
CLAIM = "rbac.permissions"
EMBEDDED = {"embeddings": {"cluster": "echo", "model_id": "m", "dimensions": 3}}

# What is changed of the good tool (dot path and value, None takes it away), and what the reason must say.
CASES: dict[str, tuple[Spec, str, Any, str]] = {
    "description-empty": (GOOD, "description", "", "description is empty"),
    "description-missing": (GOOD, "description", None, "description is empty"),
    "method-empty": (GOOD, "rest_backend.method", "", "rest_backend.method is empty"),
    "method-unknown": (GOOD, "rest_backend.method", "BREW", "rest_backend.method is 'BREW'"),
    "path-empty": (GOOD, "rest_backend.path", "", "rest_backend.path is empty"),
    "path-relative": (GOOD, "rest_backend.path", "orders", "rest_backend.path is 'orders'"),
    "path-with-a-blank": (GOOD, "rest_backend.path", "/a b", "rest_backend.path holds ' '"),
    "path-template-open": (GOOD, "rest_backend.path", "/orders/{{id", "rest_backend.path does not compile"),
    "path-template-empty": (GOOD, "rest_backend.path", "/orders/{{}}", "rest_backend.path does not compile"),
    "cluster-empty": (GOOD, "rest_backend.cluster", "", "rest_backend.cluster is empty"),
    "query-name-empty": (GOOD, "rest_backend.query_params", [{"source": "id"}], "query_params[0].name is empty"),
    "query-source-empty": (GOOD, "rest_backend.query_params", [{"name": "q"}], "query_params[0].source is empty"),
    "query-source-bad": (GOOD, "rest_backend.query_params", [{"name": "q", "source": "a..b"}], "not a dot path"),
    "body-template-bad": (GOOD, "rest_backend.body_template", inline("{{a b}}"), "body_template does not compile"),
    "body-template-unset": (GOOD, "rest_backend.body_template", {}, "body_template is empty"),
    "body-template-file": (GOOD, "rest_backend.body_template", {"filename": "/etc/passwd"}, "does not allow"),
    "body-json-bad": (GOOD, "rest_backend.body_json", "a b", "body_json is 'a b': not a dot path"),
    "authority-bad": (GOOD, "rest_backend.upstream_policy", {"authority": "a b"}, "authority is 'a b'"),
    "timeout-zero": (GOOD, "rest_backend.upstream_policy", {"timeout": "0s"}, "timeout is 0 s"),
    "timeout-negative": (GOOD, "rest_backend.upstream_policy", {"timeout": "-1s"}, "timeout is -1 s"),
    "try-timeout-zero": (
        GOOD, "rest_backend.upstream_policy", {"retry_policy": {"per_try_timeout": "0s"}}, "per_try_timeout is 0 s"),
    "backend-missing": (NO_REST, "namespace", "shop", "upstream_backend is missing"),
    "backend-function-graph": (NO_REST, "function_graph_backend", {}, "function_graph_backend is not supported"),
    "mcp-sse": (NO_REST, "mcp_server_backend", {**MCP, "transport": "Sse"}, "transport is Sse"),
    "mcp-transport-unset": (NO_REST, "mcp_server_backend", {"url": MCP["url"]}, "transport is Sse"),
    "mcp-url-empty": (NO_REST, "mcp_server_backend", {**MCP, "url": ""}, "url is empty"),
    "mcp-url-of-a-file": (NO_REST, "mcp_server_backend", {**MCP, "url": "file:///etc"}, "not an absolute http"),
    "mcp-url-with-a-password": (NO_REST, "mcp_server_backend", {**MCP, "url": "http://u:p@h/"}, "user information"),
    "input-unset": (GOOD, "input_schema", {}, "input_schema is empty"),
    "input-empty": (GOOD, "input_schema", inline(""), "input_schema is empty"),
    "input-not-utf8": (GOOD, "input_schema", raw(b'{"title":"\xff"}'), "input_schema is not UTF-8"),
    "input-file-not-allowed": (GOOD, "input_schema", {"filename": "/etc/hostname"}, "does not allow it to be read"),
    "input-file-outside": (GOOD, "input_schema", {"filename": "/allowed/../etc/hostname"}, "does not allow"),
    "input-file-unreadable": (GOOD, "input_schema", {"filename": "/allowed/nothing.json"}, "cannot be read"),
    "input-variable-not-allowed": (GOOD, "input_schema", {"environment_variable": "PATH"}, "does not allow"),
    "input-variable-not-set": (GOOD, "input_schema", {"environment_variable": "ARION_UNSET"}, "is not set"),
    "input-not-json": (GOOD, "input_schema", inline("{"), "input_schema is not valid JSON"),
    "input-an-array": (GOOD, "input_schema", inline([1]), "input_schema is not a JSON object"),
    "input-not-a-schema": (GOOD, "input_schema", inline({"properties": {"id": {"type": 7}}}), "input_schema is "),
    "input-of-a-string": (GOOD, "input_schema", inline({"type": "string"}), "input_schema has the root type"),
    "output-unset": (GOOD, "output_schema", {}, "output_schema is empty"),
    "output-not-json": (GOOD, "output_schema", inline("nope"), "output_schema is not valid JSON"),
    "output-not-an-object": (GOOD, "output_schema", inline("true"), "output_schema is not a JSON object"),
    "output-not-a-schema": (GOOD, "output_schema", inline({"required": "id"}), "output_schema is "),
    "rbac-empty": (GOOD, "rbac", {}, "rbac.permissions is empty"),
    "rbac-deny-empty": (GOOD, "rbac", {"action": "DENY"}, "rbac.permissions is empty"),
    "rbac-nothing-named": (GOOD, CLAIM, [{}], "permissions[0] names neither"),
    "rbac-claim-field-empty": (GOOD, CLAIM, [{"jwt_claim": {"value": "x"}}], "jwt_claim.field is empty"),
    "rbac-claim-value-empty": (GOOD, CLAIM, [{"jwt_claim": {"field": "x"}}], "jwt_claim.value is empty"),
    "rbac-header-field-empty": (GOOD, CLAIM, [{"jwt_header": {"value": "x"}}], "jwt_header.field is empty"),
    "rbac-header-value-empty": (GOOD, CLAIM, [{"jwt_header": {"field": "x"}}], "jwt_header.value is empty"),
    "embedding-nan": (GOOD, "embedding", [0.5, "NaN", 0.5], "embedding holds a number that is not finite"),
    "embedding-infinite": (GOOD, "embedding", [0.5, "-Infinity", 0.5], "not finite"),
    "embedding-short": (GOOD, "embedding", [0.5, 0.5], "embedding has 2 numbers"),
    "embedding-long": (GOOD, "embedding", [0.5] * 4, "embedding has 4 numbers"),
}  # fmt: skip

RAW = {
    "cut-off": (b"\x0a\xff", "cannot be decoded as Tool"),
    "not-utf8-in-a-string": (b"\x0a\x01\xff", "cannot be decoded as Tool"),
    "no-wire-type": (b"\xff\xff\xff\xff", "cannot be decoded as Tool"),
    "json-instead-of-protobuf": (b'{"namespace":"shop"}', "cannot be decoded as Tool"),
    "nothing-at-all": (b"", "description is empty"),
    "of-another-type": (
        documents.MESSAGES["McpDynamicServer"](transport="StreamableHttp").SerializeToString(),
        "is empty",
    ),
}


async def still_serves_what_it_did(here: House) -> None:
    await here.a.serves("shop.order")
    assert await here.a.text("shop.order") == GOOD["description"]
    assert await here.a.search("echoes") == ["shop.order"]
    assert (await here.a.echo("shop.order", id="7"))["path"] == "/shop/order"


@pytest.mark.parametrize(("base", "path", "value", "why"), CASES.values(), ids=CASES)
async def test_a_bad_tool_is_nacked_by_name_and_its_last_good_version_serves(
    base: Spec, path: str, value: Any, why: str
) -> None:
    tenant = listener(gateway={"search": EMBEDDED} if path == "embedding" else None)
    rules = {"files": ["/allowed/"], "environment": ["ARION_UNSET"]}
    async with house(tenant, data_sources=rules) as here:
        await here.put("McpTool", ID, GOOD)

        await here.refused("McpTool", ID, merged(base, path, value), why)
        await still_serves_what_it_did(here)

        await here.put("McpTool", ID, {**GOOD, "description": "Good again"})
        assert await here.problems() == []
        assert await here.a.text("shop.order") == "Good again"


@pytest.mark.parametrize(("payload", "why"), RAW.values(), ids=RAW)
async def test_bytes_that_are_no_tool_are_nacked_by_name_and_the_last_good_version_serves(
    payload: bytes, why: str
) -> None:
    async with house() as here:
        await here.put("McpTool", ID, GOOD)

        here.plane.put_raw(TOOL, ID, "raw-1", payload)
        nack = await here.plane.nacked("McpTool", ID)
        assert f"{ID}: " in nack.reason
        assert why in nack.reason
        (problem,) = await here.problems()
        assert (problem["name"], problem["version"]) == (ID, "raw-1")
        await still_serves_what_it_did(here)

        await here.put("McpTool", ID, {**GOOD, "description": "Good again"})
        assert await here.problems() == []


NAMES = {
    "129-characters": ("a." + "b" * 127, "longer than 128"),
    "a-blank": ("a.b c", "blank, control and non-ASCII"),
    "a-control-character": ("a.b\n", "blank, control and non-ASCII"),
    "not-ascii": ("a.bé", "blank, control and non-ASCII"),
    "no-dot": ("nodot", "is not namespace, dot and name"),
    "no-namespace": (".b", "is not namespace, dot and name"),
    "no-name": ("a.", "is not namespace, dot and name"),
}


@pytest.mark.parametrize(("name", "why"), NAMES.values(), ids=NAMES)
async def test_a_tool_of_a_name_that_cannot_be_served_is_nacked_until_it_is_withdrawn(name: str, why: str) -> None:
    bad = f"a/main/{name}"
    async with house() as here:
        await here.put("McpTool", ID, GOOD)

        await here.refused("McpTool", bad, tool(name), why)
        await still_serves_what_it_did(here)

        await here.remove("McpTool", bad)
        assert await here.problems() == []
        await still_serves_what_it_did(here)


async def test_a_tool_that_was_never_good_is_nowhere_to_be_seen() -> None:
    async with house() as here:
        await here.refused("McpTool", ID, {**GOOD, "description": ""}, "description is empty")
        await here.a.refuses("shop.order")
        assert (await here.dump())["namespaces"] == {}

        await here.put("McpTool", ID, GOOD)
        await here.a.serves("shop.order")
        assert await here.problems() == []


async def test_a_refused_tool_that_is_withdrawn_takes_its_former_version_along() -> None:
    async with house() as here:
        await here.put("McpTool", ID, GOOD)
        await here.refused("McpTool", ID, {**GOOD, "description": ""}, "description is empty")

        await here.remove("McpTool", ID)
        await here.a.refuses("shop.order")
        assert await here.problems() == []


async def test_every_mistake_of_every_bad_tool_is_in_one_nack_and_the_good_of_the_response_serve() -> None:
    async with house() as here:
        here.plane.hold()
        await here.plane.put("McpTool", "a/main/shop.first", tool("shop.first"))
        await here.plane.put("McpTool", "a/main/shop.bad", tool("shop.bad", text="", rest_backend={"method": "GET"}))
        await here.plane.put("McpTool", "a/main/shop.worse", NO_REST)
        await here.plane.put("McpTool", "a/main/shop.last", tool("shop.last"))
        here.plane.release()

        nack = await here.plane.nacked("McpTool")
        assert nack.reason.startswith("2 of 4 resources rejected: ")
        assert set(nack.names) == {"a/main/shop.bad", "a/main/shop.worse"}
        for said in ("description is empty", "rest_backend.path is empty", "rest_backend.cluster is empty"):
            assert said in nack.reason
        await here.a.serves("shop.first", "shop.last")
        assert {one["name"] for one in await here.problems()} == set(nack.names)
        error = here.plane.requests("McpTool")[-1].error_detail
        assert error is not None
        assert error.code == 3  # INVALID_ARGUMENT


async def test_a_refused_version_is_not_claimed_after_a_reconnect_but_the_one_in_use_is() -> None:
    async with house() as here:
        used = await here.put("McpTool", ID, GOOD)
        await here.refused("McpTool", ID, {**GOOD, "description": ""}, "description is empty")
        await here.refused("McpTool", "a/main/shop.new", tool("shop.new", text=""), "description is empty")

        here.plane.cut()
        nack = await here.plane.nacked("McpTool", "a/main/shop.new")  # sent again: it was not claimed
        assert ID in nack.names
        first = next(ask for ask in reversed(here.plane.requests("McpTool")) if ask.resource_names_subscribe)
        assert first.initial_resource_versions == {ID: used}
        await still_serves_what_it_did(here)


@pytest.mark.parametrize("name", ["shop.order", "a/main", "a/main/", "a//shop.order", "/main/shop.order"])
async def test_a_malformed_id_is_nacked_and_the_rest_of_its_response_applies(name: str) -> None:
    async with house() as here:
        held = documents.encode("McpTool", GOOD)
        assert not isinstance(held, documents.Fault)
        content = ProtoAny(type_url=TOOL, value=held.payload)
        both = [Resource(name=one, version="1", resource=content) for one in (name, ID)]

        await here.plane.send_raw(DeltaDiscoveryResponse(type_url=TOOL, resources=both))

        nack = await here.plane.nacked("McpTool", name)
        assert f"{name}: malformed resource ID" in nack.reason
        assert nack.names == (name,)
        await still_serves_what_it_did(here)
        assert (await here.dump())["tools"] == 1


async def test_a_malformed_id_that_is_removed_is_nacked_too() -> None:
    async with house() as here:
        await here.put("McpTool", ID, GOOD)
        await here.plane.send_raw(DeltaDiscoveryResponse(type_url=TOOL, removed_resources=["shop.order"]))
        assert "malformed resource ID" in (await here.plane.nacked("McpTool", "shop.order")).reason
        await still_serves_what_it_did(here)
