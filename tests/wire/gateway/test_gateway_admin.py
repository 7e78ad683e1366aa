"""The operator's listener over a running gateway: why a tool is there or not, lists, history, live events, the page."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp.compression_utils import ZLibDecompressor
from gateway_house import BOUND, House, Spec, house, inline, listener, tool


@pytest.fixture
async def here() -> AsyncIterator[House]:
    async with house(listener("a"), listener("b", tool_names="portable")) as made:
        yield made


async def explained(here: House, name: str, **more: str) -> Spec:
    """The one answer to why."""
    query = "&".join(f"{key}={value}" for key, value in {"name": name, **more}.items())
    (answer,) = (await here.admin(f"explain?{query}"))["answers"]
    assert isinstance(answer, dict)
    return answer


async def asked(here: House, path: str, **headers: str) -> tuple[int, Any]:
    async with here.http.get(f"http://{here.gateway.admin}{path}", headers=headers) as response:
        return response.status, await response.json()


async def test_a_wrong_tool_is_explained_by_the_reason_of_its_rejection_and_what_still_serves(here: House) -> None:
    await here.refused("McpTool", "a/main/ns.new", tool("ns.new", "", description=""), "description")
    new = await explained(here, "ns.new")
    assert (new["state"], new["scope"]) == ("rejected", "a/main")
    assert "description" in new["summary"]

    first = await here.put("McpTool", "a/main/ns.old", tool("ns.old"))
    second = await here.plane.put("McpTool", "a/main/ns.old", tool("ns.old", rest_backend=None))
    await here.plane.nacked("McpTool", "a/main/ns.old")
    old = await explained(here, "ns.old")
    assert (old["state"], old["listed"], old["callable"]) == ("older_version", True, True)
    assert old["origin"]["version"] == first
    assert [(one["outcome"], one["version"]) for one in old["history"]] == [("accepted", first), ("rejected", second)]


async def test_the_scope_is_found_and_a_name_may_be_spelt_as_clients_see_it(here: House) -> None:
    await here.put("McpTool", "b/main/ns.tool", tool("ns.tool"))
    for name in ("ns.tool", "ns__tool", "b/main/ns.tool"):
        assert (await explained(here, name))["scope"] == "b/main"
    assert (await explained(here, "ns.tool", scope="a/main"))["details"] == ["it is served in scope b/main"]
    await here.remove("McpTool", "b/main/ns.tool")
    assert (await explained(here, "ns.tool"))["state"] == "removed"


async def test_claims_show_the_catalog_as_a_caller_sees_it(here: House) -> None:
    rbac = {"action": "ALLOW", "permissions": [{"jwt_claim": {"field": "role", "value": "admin"}}]}
    await here.put("McpTool", "a/main/ns.tool", tool("ns.tool", rbac=rbac))
    assert (await explained(here, "ns.tool"))["state"] == "restricted"
    assert (await explained(here, "ns.tool", claim="role=user"))["state"] == "restricted"
    assert (await explained(here, "ns.tool", claim="role=admin"))["state"] == "served"


async def test_a_server_that_is_not_there_is_pending(here: House) -> None:
    spec = {"namespace": "up", "description": "d", "transport": "StreamableHttp", "url": "http://127.0.0.1:9/mcp"}
    await here.refused("McpDynamicServer", "a/main/up", spec, "127.0.0.1:9")
    answer = await explained(here, "up.tool")
    assert answer["state"] == "pending"
    (pending,) = (await here.admin("status"))["pending_servers"]
    assert (pending["scope"], pending["namespace"]) == ("a/main", "up")


async def test_lists_are_paged_searched_and_narrowed_and_one_tool_has_its_schemas(here: House) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    for name in ("sky.rain", "sky.sun", "zoo.lion"):
        await here.put("McpTool", f"a/main/{name}", tool(name, f"About {name}", input_schema=inline(schema)))
    first = await here.admin("tools?scope=a/main&limit=2")
    assert ([one["name"] for one in first["tools"]], first["total"]) == (["sky.rain", "sky.sun"], 3)
    rest = await here.admin(f"tools?scope=a/main&limit=2&after={first['next']}")
    assert [one["name"] for one in rest["tools"]] == ["zoo.lion"]
    assert "next" not in rest
    narrowed = await here.admin("tools?scope=a/main&namespace=zoo")
    assert [one["name"] for one in narrowed["tools"]] == ["zoo.lion"]
    found = await here.admin("tools?scope=a/main&query=lion")
    assert [one["qualified"] for one in found["tools"]] == ["zoo.lion"]
    one = await here.admin("tool?scope=a/main&name=zoo.lion")
    assert (one["inputSchema"], one["owner"], one["backend"]) == (schema, "tools", "rest")
    assert (await asked(here, "/tools?scope=nobody/main"))[0] == 404
    assert (await asked(here, "/tool?scope=a/main&name=zoo.tiger"))[0] == 404


async def test_history_names_the_resource_heard_of_last_first(here: House) -> None:
    await here.put("McpTool", "a/main/ns.one", tool("ns.one"))
    await here.put("McpTool", "b/main/ns.two", tool("ns.two"))
    resources = (await here.admin("history"))["resources"]
    assert [one["name"] for one in resources] == ["b/main/ns.two", "a/main/ns.one"]
    (mine,) = (await here.admin("history?scope=a/main&name=ns.one"))["resources"]
    assert [verdict["outcome"] for verdict in mine["verdicts"]] == ["accepted"]


async def test_status_counts_where_config_dump_names(here: House) -> None:
    await here.put("McpTool", "a/main/ns.one", tool("ns.one"))
    status, dump = await here.admin("status"), await here.admin("config_dump")
    assert status["scopes"][0]["namespaces"]["ns"]["tools"] == 1
    assert dump["scopes"][0]["namespaces"]["ns"]["tools"] == ["ns.one"]
    assert status["listeners"]["a"]["scope"] == "a/main"
    assert status["listeners"]["a"]["endpoint"] == f"http://{here.gateway.bound['a']}/mcp"
    assert status["listeners"]["a"]["address"] == here.gateway.bound["a"]
    assert "config" in dump
    assert "config" not in status


async def events(response: aiohttp.ClientResponse, wanted: str) -> Spec:
    """The next event of that name."""
    async with asyncio.timeout(BOUND):
        name = ""
        while True:
            line = (await response.content.readline()).decode().rstrip()
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name == wanted:
                found: Spec = json.loads(line.removeprefix("data: "))
                return found


async def test_a_change_and_a_rejection_are_told_as_they_happen(here: House) -> None:
    async with here.http.get(f"http://{here.gateway.admin}/events") as response:
        await here.put("McpTool", "a/main/ns.one", tool("ns.one"))
        told = await events(response, "catalog")
        assert (told["scope"], told["added"]) == ("a/main", {"count": 1, "names": ["ns.one"]})
        await here.refused("McpTool", "a/main/ns.bad", tool("ns.bad", "", description=""), "description")
        told = await events(response, "rejected")
        assert (told["type"], told["name"]) == ("Tool", "a/main/ns.bad")
        await here.cut()
        assert (await events(response, "control_plane"))["connected"] is False
        assert (await events(response, "control_plane"))["connected"] is True
        await here.remove("McpTool", "a/main/ns.one")
        assert (await events(response, "catalog"))["removed"]["names"] == ["ns.one"]


async def test_a_reader_that_comes_back_hears_what_it_missed(here: House) -> None:
    await here.put("McpTool", "a/main/ns.one", tool("ns.one"))
    await here.put("McpTool", "a/main/ns.two", tool("ns.two"))
    last = here.gateway.panel.events.last
    headers = {"last-event-id": str(last - 1)}
    async with here.http.get(f"http://{here.gateway.admin}/events", headers=headers) as response:
        assert (await events(response, "catalog"))["added"]["names"] == ["ns.two"]


async def test_the_page_and_its_files_come_with_a_strict_policy(here: House) -> None:
    for path, kind in (("/", "text/html"), ("/ui/page.js", "text/javascript"), ("/ui/page.css", "text/css")):
        async with here.http.get(f"http://{here.gateway.admin}{path}") as response:
            assert response.status == 200
            assert response.content_type == kind
            policy = response.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'")
            assert "unsafe" not in policy
    assert (await asked(here, "/ui/../http.py"))[0] == 404
    assert (await asked(here, "/ui/__init__.py"))[0] == 404


@pytest.mark.parametrize(
    ("path", "status", "why"),
    [
        ("/explain", 400, "say which tool"),
        ("/explain?name=" + "x" * 600, 400, "longer than 512"),
        ("/explain?name=a&claim=role", 400, "NAME=VALUE"),
        ("/tools?limit=0", 400, "limit must be"),
        ("/tools?limit=9999999999", 400, "limit must be"),
        ("/nowhere", 404, "Not Found: GET /nowhere"),
    ],
)
async def test_a_question_that_cannot_be_answered_says_why(here: House, path: str, status: int, why: str) -> None:
    got, body = await asked(here, path)
    assert got == status
    assert why in body["error"]


async def test_a_web_page_cannot_read_it_under_a_name_of_its_own(here: House) -> None:
    assert (await asked(here, "/status", host="evil.example:9901"))[0] == 421
    for host in ("localhost:9901", "[::1]:9901", "127.0.0.1"):
        assert (await asked(here, "/status", host=host))[0] == 200
    async with here.http.post(f"http://{here.gateway.admin}/status") as response:
        assert response.status == 405


@pytest.mark.parametrize("door", ["admin", "listener"])
async def test_a_bomb_that_nobody_reads_is_not_unpacked_to_be_put_away(
    here: House, door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = 0
    real = ZLibDecompressor.decompress_sync

    def counting(self: ZLibDecompressor, *data: Any, **more: Any) -> bytes:
        nonlocal unpacked
        unpacked += 1
        return real(self, *data, **more)

    monkeypatch.setattr(ZLibDecompressor, "decompress_sync", counting)
    address = here.gateway.admin if door == "admin" else here.a.url.split("/")[2]
    bomb = gzip.compress(b" " * (8 << 20))
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = ("POST /elsewhere HTTP/1.1", f"Host: {address}", "Content-Encoding: gzip", f"Content-Length: {len(bomb)}")
    writer.write("\r\n".join((*lines, "", "")).encode() + bomb)
    async with asyncio.timeout(BOUND):
        assert b" 404 " in await reader.readline()
        writer.write(f"GET /elsewhere HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
        assert b" 404 " in await reader.read()
    writer.close()
    assert unpacked == 0
