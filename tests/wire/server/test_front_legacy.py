"""The handshake revisions over HTTP: sessions, 404 to make clients initialize again, errors in a 200."""

from __future__ import annotations

from typing import Any

import pytest
from front_house import BOTH, house, tool

from arion_tds.model.result import CallResult

REVISIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_whole_session_in_every_revision(revision: str) -> None:
    async with house(tool("a")) as here:
        session = await here.open(revision)
        assert await here.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session) == (202, None)
        assert await here.legacy("ping", **session) == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})
        _, found = await here.legacy("tools/list", **session)
        assert found["result"]["tools"][0]["name"] == "shop.a"
        _, found = await here.legacy("tools/call", {"name": "shop.a", "arguments": {"x": 1}}, **session)
        assert found["result"] == {"content": [{"type": "text", "text": '{"x": 1}'}], "isError": False}
        async with here.http.delete(here.url, headers=session) as response:
            assert response.status == 204
        status, _ = await here.legacy("ping", **session)
        assert status == 404


async def test_an_unknown_or_expired_session_is_404_for_every_method() -> None:
    async with house() as here:
        session = await here.open()
        here.wall.now += 101
        for headers in (session, {"Mcp-Session-Id": "nope"}):
            status, found = await here.legacy("tools/list", **headers)
            assert status == 404
            assert "initialize again" in found["error"]["message"]
            for method in ("GET", "DELETE"):
                async with here.http.request(method, here.url, headers={**headers, **BOTH}) as response:
                    assert response.status == 404


async def test_initialize_works_whatever_old_session_id_comes_along() -> None:
    async with house() as here:
        status, _ = await here.legacy("initialize", {"protocolVersion": "2025-11-25"}, Mcp_Session_Id="gone")
        assert status == 200


async def test_an_unknown_revision_gets_the_newest_with_a_handshake() -> None:
    async with house() as here:
        _, found = await here.legacy("initialize", {"protocolVersion": "2026-07-28"})
        assert found["result"]["protocolVersion"] == "2025-11-25"


async def test_a_client_without_a_session_is_served() -> None:
    async with house(tool("a")) as here:
        status, found = await here.legacy("tools/call", {"name": "shop.a"})
        assert (status, found["result"]["isError"]) == (200, False)


async def test_errors_of_requests_come_in_a_200() -> None:
    async with house() as here:
        session = await here.open()
        status, found = await here.legacy("resources/list", **session)
        assert (status, found["id"], found["error"]["code"]) == (200, 1, -32601)
        status, found = await here.legacy("tools/call", {"name": "none"}, **session)
        assert (status, found["error"]["code"]) == (200, -32602)
        status, found = await here.legacy("tools/list", {"cursor": "nope"}, **session)
        assert (status, found["error"]["code"]) == (200, -32602)


async def test_a_batch_is_refused_clearly_and_a_posted_answer_is_taken() -> None:
    async with house() as here:
        session = await here.open("2025-03-26")
        status, found = await here.post([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], session)
        assert (status, found["error"]["code"]) == (400, -32600)
        assert "batch" in found["error"]["message"]
        assert await here.post({"jsonrpc": "2.0", "id": 1, "result": {}}, session) == (202, None)


async def test_an_upstreams_question_back_is_an_error_with_words() -> None:
    async def ask_back(_arguments: dict[str, Any], _context: object) -> CallResult:
        return CallResult(result_type="input_required", extra=b',"requestState":"s"')

    async with house(tool("a")) as here:
        here.backend.does["a"] = ask_back
        _, found = await here.legacy("tools/call", {"name": "shop.a"})
        assert found["result"]["isError"] is True


async def test_get_and_delete_want_a_session() -> None:
    async with house() as here:
        for method in ("GET", "DELETE"):
            async with here.http.request(method, here.url, headers=BOTH) as response:
                assert response.status == 400
                assert "Mcp-Session-Id" in (await response.json())["error"]["message"]


async def test_the_session_of_one_caller_is_unknown_to_another() -> None:
    class Named:
        def __init__(self, subject: str) -> None:
            self.subject = subject

        def allows(self, rbac: object) -> bool:
            return rbac is None

    class ByHeader:
        async def admit(self, headers: Any) -> Named:
            return Named(headers["X-User"])

    async with house(access=ByHeader()) as here:
        here.http.headers["X-User"] = "alice"
        session = await here.open()
        assert (await here.legacy("ping", **session))[0] == 200
        assert (await here.legacy("ping", **session, X_User="bob"))[0] == 404
