"""2026-07-28 over HTTP: stateless, every rule with its status."""

from __future__ import annotations

from typing import Any

import pytest
from front_house import META, REVISION, house, tool

from arion_tds.model.result import CallResult, RpcError


async def test_discover_list_and_call_without_any_handshake() -> None:
    async with house(tool("a")) as here:
        status, found = await here.ask("server/discover")
        assert (status, found["result"]["supportedVersions"]) == (200, [REVISION])
        status, found = await here.ask("tools/list")
        assert [one["name"] for one in found["result"]["tools"]] == ["shop.a"]
        status, found = await here.ask("tools/call", {"name": "shop.a", "arguments": {"x": 1}}, id="seven")
        assert (status, found["id"]) == (200, "seven")
        assert found["result"]["content"] == [{"type": "text", "text": '{"x": 1}'}]
        assert found["result"]["resultType"] == "complete"


async def test_a_session_id_means_nothing_and_none_is_given() -> None:
    async with house() as here:
        sent = here.modern("tools/list", headers={"Mcp-Session-Id": "nope"})
        async with here.http.post(here.url, **sent) as response:
            assert response.status == 200
            assert "Mcp-Session-Id" not in response.headers


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_get_and_delete_are_not_part_of_it(method: str) -> None:
    async with house() as here:
        headers = {"MCP-Protocol-Version": REVISION, "Mcp-Session-Id": here.sessions.issue("2025-11-25")}
        async with here.http.request(method, here.url, headers=headers) as response:
            assert response.status == 405
            assert response.headers["Allow"] == "POST"


@pytest.mark.parametrize("missing", list(META))
async def test_a_missing_envelope_key_is_named(missing: str) -> None:
    async with house() as here:
        sent = here.modern("tools/list")
        del sent["json"]["params"]["_meta"][missing]
        status, found = await here.post(sent["json"], sent["headers"])
        assert (status, found["id"], found["error"]["code"]) == (400, 1, -32602)
        assert missing in found["error"]["message"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Mcp-Method": "tools/call"},
        {"Mcp-Method": "TOOLS/LIST"},
        {"MCP-Protocol-Version": "2025-11-25"},
    ],
)
async def test_headers_that_contradict_the_body_are_refused(headers: dict[str, str]) -> None:
    async with house() as here:
        status, found = await here.ask("tools/list", headers=headers)
        assert (status, found["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("name", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
async def test_headers_that_are_missing_or_doubled_are_refused(name: str) -> None:
    async with house(tool("a")) as here:
        sent = here.modern("tools/call", {"name": "shop.a"})
        value = sent["headers"].pop(name)
        status, found = await here.post(sent["json"], sent["headers"])
        assert (status, found["error"]["code"]) == (400, -32020)
        doubled = [*sent["headers"].items(), (name, value), (name, value)]
        async with here.http.post(here.url, json=sent["json"], headers=doubled) as response:
            assert response.status == 400
            assert "more than once" in (await response.json())["error"]["message"]


async def test_an_unserved_revision_is_told_what_is_served() -> None:
    async with house() as here:
        meta = {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}
        status, found = await here.ask("tools/list", meta=meta, headers={"MCP-Protocol-Version": "2030-01-01"})
        assert status == 400
        assert found["error"]["code"] == -32022
        assert found["error"]["data"] == {"supported": [REVISION], "requested": "2030-01-01"}


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/list", "nonsense"])
async def test_methods_that_it_does_not_have_are_not_found(method: str) -> None:
    async with house() as here:
        status, found = await here.ask(method)
        assert (status, found["id"], found["error"]["code"]) == (404, 1, -32601)


async def test_an_unknown_tool_is_a_protocol_error() -> None:
    async with house() as here:
        status, found = await here.ask("tools/call", {"name": "shop.none"})
        assert (status, found["error"]["code"]) == (400, -32602)


async def test_an_upstreams_rpc_error_keeps_code_and_data_and_gets_its_status() -> None:
    async def refuse(_arguments: dict[str, Any], _context: object) -> RpcError:
        return RpcError(-32021, "needs sampling", b'{"requiredCapabilities":{"sampling":{}}}')

    async with house(tool("a")) as here:
        here.backend.does["a"] = refuse
        status, found = await here.ask("tools/call", {"name": "shop.a"})
        assert status == 400
        assert found["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}


async def test_notifications_are_taken_and_dropped() -> None:
    async with house() as here:
        body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        assert await here.post(body, {"MCP-Protocol-Version": REVISION}) == (202, None)
        status, found = await here.post(body, {"MCP-Protocol-Version": "v9"})
        assert (status, found["error"]["code"]) == (400, -32022)


async def test_mirrored_arguments_are_checked_and_passed_on() -> None:
    inputs = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    async with house(tool("a", inputs)) as here:
        params = {"name": "shop.a", "arguments": {"region": "eu"}}
        status, _ = await here.ask("tools/call", params, headers={"Mcp-Param-Region": "eu", "mcp-param-other": "x"})
        assert status == 200
        assert here.backend.contexts[0].param_headers == (("mcp-param-region", "eu"), ("mcp-param-other", "x"))
        status, found = await here.ask("tools/call", params, headers={"Mcp-Param-Region": "us"})
        assert (status, found["error"]["code"]) == (400, -32020)
        assert len(here.backend.contexts) == 1


async def test_further_params_reach_the_backend_as_they_were_sent_and_a_question_back_returns() -> None:
    async def ask_back(_arguments: dict[str, Any], _context: object) -> CallResult:
        return CallResult(result_type="input_required", extra=b',"inputRequests":{"q":{"method":"roots/list"}}')

    async with house(tool("a")) as here:
        here.backend.does["a"] = ask_back
        params = {"name": "shop.a", "inputResponses": {"q": {"roots": []}}, "requestState": "s"}
        status, found = await here.ask("tools/call", params)
        assert (status, found["result"]["resultType"]) == (200, "input_required")
        assert found["result"]["inputRequests"] == {"q": {"method": "roots/list"}}
        (context,) = here.backend.contexts
        assert context.modern
        assert context.params["inputResponses"] == b'{"q": {"roots": []}}'
        assert context.params["requestState"] == b'"s"'
        assert b"clientCapabilities" in context.params["_meta"]


async def test_trace_and_request_id_are_taken_over_or_made() -> None:
    async with house(tool("a")) as here:
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        await here.ask("tools/call", {"name": "shop.a"}, headers={"traceparent": trace, "x-request-id": "mine"})
        await here.ask("tools/call", {"name": "shop.a"}, headers={"traceparent": "junk"})
        taken, made = here.backend.contexts
        assert (taken.traceparent, taken.request_id) == (trace, "mine")
        assert (made.traceparent, made.request_id) == (f"00-{'01' * 16}-{'01' * 8}-00", "01" * 8)


async def test_a_fault_of_ours_is_an_internal_error_that_says_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    async def explode(_arguments: dict[str, Any], _context: object) -> CallResult:
        msg = "secret detail"
        raise RuntimeError(msg)

    async with house(tool("a")) as here:
        here.backend.does["a"] = explode
        status, found = await here.ask("tools/call", {"name": "shop.a"})
        assert (status, found["error"]) == (200, {"code": -32603, "message": "Internal error"})
    assert "secret detail" in caplog.text
