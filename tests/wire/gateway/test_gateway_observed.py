"""What a running gateway writes down about requests, calls and pushes: access log and metrics."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from gateway_house import House, house, listener, tool


def sample(page: str, name: str, **labels: str) -> float:
    """The value of the one sample of that name with these labels."""
    found = [
        float(line.rsplit(" ", 1)[1])
        for line in page.splitlines()
        if line.split("{")[0].split(" ")[0] == name and all(f'{key}="{value}"' in line for key, value in labels.items())
    ]
    assert len(found) == 1, (name, labels, found)
    return found[0]


async def some_calls(here: House) -> None:
    """One good call, one of a tool that is not there, one search, one list, one GET that is refused."""
    await here.put("McpTool", "a/main/ns.echo", tool("ns.echo"))
    await here.a.echo("ns.echo")
    await here.a.call("ns.nowhere")
    await here.a.search("echo")
    await here.a.listed()
    async with here.http.get(f"{here.a.url}/elsewhere?token=secret") as response:
        assert response.status == 404


async def test_a_line_per_request_tells_who_did_what_and_what_became_of_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "access.log"
    async with house(access_log={"path": str(path)}) as here:
        await some_calls(here)
    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(one.get("method"), one.get("tool"), one.get("outcome"), one["status"]) for one in lines] == [
        ("tools/call", "ns.echo", "ok", 200),
        ("tools/call", "ns.nowhere", "rpc_error", 200),
        (None, None, None, 200),
        ("tools/list", None, None, 200),
        (None, None, None, 404),
    ]
    assert {(one["listener"], one["remote"]) for one in lines} == {("a", "127.0.0.1")}
    assert lines[0]["request_id"]
    assert lines[0]["ms"] > 0
    assert lines[2]["path"] == "/mcp/search"
    assert "secret" not in path.read_text()


async def test_the_text_format_is_a_line_in_envoys_order(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "access.log"
    async with house(access_log={"path": str(path), "format": "text"}) as here:
        await some_calls(here)
    first = path.read_text().splitlines()[0]
    assert '"POST /mcp" 200 ' in first
    assert ' a "tools/call" "ns.echo" ok ' in first


async def test_calls_pushes_rejections_and_upstreams_are_counted() -> None:
    async with house(listener("a")) as here:
        await some_calls(here)
        await here.refused("McpTool", "a/main/ns.bad", tool("ns.bad", "", description=""), "description")
        await here.a.initialize()
        page = await here.metrics()
        assert sample(page, "arion_tds_ready") == 1
        assert sample(page, "arion_tds_tool_calls_total", tool="ns.echo", outcome="ok") == 1
        assert sample(page, "arion_tds_rejections_total", type="Tool", reason="payload") == 1
        assert sample(page, "arion_tds_push_seconds_count", type="Tool") == 2
        assert sample(page, "arion_tds_searches_total", via="http") == 1
        assert sample(page, "arion_tds_sessions_total") == 1
        assert sample(page, "arion_tds_cluster_endpoints", cluster="echo", state="up") == 1
        assert sample(page, "arion_tds_cluster_events_total", cluster="echo", event="call") == 1
        assert sample(page, "arion_tds_request_seconds_count", method="tools/list") == 1
        assert sample(page, "process_resident_memory_bytes") > 1 << 20
        again = await here.metrics()
        assert sample(again, "arion_tds_cluster_events_total", cluster="echo", event="call") == 1


async def test_the_tools_of_a_listener_have_as_many_lines_as_the_config_says() -> None:
    async with house(metrics={"tools": 1}) as here:
        for name in ("ns.one", "ns.two", "ns.three"):
            await here.put("McpTool", f"a/main/{name}", tool(name))
            await here.a.echo(name)
        page = await here.metrics()
        assert sample(page, "arion_tds_tool_calls_total", tool="ns.one") == 1
        assert sample(page, "arion_tds_tool_calls_total", tool="other") == 2
