"""The comparison's tables from a sample of results; the load client against the benchmarks' own MCP server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks import chunked, mcp_server
from benchmarks.peers import contenders, load, report
from benchmarks.peers.setting import Setting

CALLS = {"cpu_ms_per_call": 0.25, "calls_per_second": 4000.0}
RESULTS: dict[str, Any] = {
    "machine": {
        "date": "2026-01-02",
        "cpu": "A processor",
        "cores": 2,
        "memory_gb": 8,
        "kernel": "Linux 6",
        "python": "3.11.7",
        "arion-tds": "0.1.0",
        "libraries": {},
    },
    "quick": False,
    "pinned": True,
    "load": 0.1,
    "seconds": 300,
    "gateways": {
        "arion-tds": {
            "version": "0.1.0",
            "rest 1": {"start_s": 1.0, "rss_mb": 90.0, "calls 16": CALLS},
            "mcp 1000": {"start_s": 1.0, "rss_mb": 95.0, "list": {"cpu_ms": 0.5}},
        },
        "FastMCP": {
            "version": "4",
            "rest 1": {"start_s": 2.0, "rss_mb": 70.0, "calls 16": {"cpu_ms_per_call": 5.0, "calls_per_second": 200.0}},
            "mcp 1000": {"failed": "250 of 1000 tools are listed"},
        },
        "Envoy": {"version": "1", "failed": "cannot be installed: no wheel"},
    },
}


def test_a_ratio_above_one_always_means_that_ours_is_better() -> None:
    told = report.table(RESULTS)
    assert "| REST tool, 16 at once: CPU per call | 0.25 ms | 5 ms (×20) | – (1) |" in told
    assert "| REST tool, 16 at once: calls per second | 4,000 /s | 200 /s (×20) | – (1) |" in told
    assert "| one REST tool: memory | 90 MB | 70 MB (×0.778) | – (1) |" in told


def test_what_could_not_be_measured_has_its_reason_once_below_the_table() -> None:
    told = report.table(RESULTS)
    assert told.count("Envoy: cannot be installed: no wheel") == 1
    assert "2. FastMCP: 250 of 1000 tools are listed" in told


def test_the_readme_has_a_column_for_every_gateway() -> None:
    lines = report.short(RESULTS).splitlines()
    assert lines[0] == "| | arion-tds | FastMCP | Envoy |"
    assert "| 1,000 tools of an MCP server listed, CPU | 0.5 ms | – | – |" in lines
    assert {line.count("|") for line in lines} == {5}


def test_the_bars_are_cpu_per_call_of_those_who_have_it() -> None:
    assert report.bars(RESULTS) == [("REST tool, arion-tds 0.1.0", 0.25), ("REST tool, FastMCP 4", 5.0)]


def test_every_contender_gets_the_same_tools(tmp_path: Any) -> None:
    setting = Setting("rest", 3, 1, tmp_path)
    document = contenders.openapi(3)
    bridge = contenders.envoy(setting, 2)["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]
    told = bridge["typed_config"]["http_filters"][0]["typed_config"]["tool_config"]["tools"]
    operations = [one["post"] for one in document["paths"].values()]
    assert [one["name"] for one in told] == [one["operationId"] for one in operations]
    assert [one["tool_list_config"]["description"] for one in told] == [one["description"] for one in operations]


def test_chunks_are_one_body_when_the_last_has_come() -> None:
    buffer = b"4\r\nabcd\r\n2;x=y\r\nef\r\n0\r\n\r\nrest"
    assert chunked.body(buffer, 0) == (b"abcdef", len(buffer) - 4)
    assert all(chunked.body(buffer[:end], 0) is None for end in range(len(buffer) - 4))


@pytest.fixture
async def url(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(mcp_server.Server, "tools", [mcp_server.tool(number) for number in range(5)], raising=False)
    monkeypatch.setattr(mcp_server.Server, "page", 2)
    server = await asyncio.get_running_loop().create_server(mcp_server.Server, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


async def test_the_client_shakes_hands_walks_every_page_and_counts_its_calls(url: str) -> None:
    session = await load.Session(url, {}).open()
    assert [tool["name"] for tool in await session.tools()] == [f"tool_{number}" for number in range(5)]
    loaded = await load.drive([session], "tool_0", {"message": "hello"}, 0.02)
    assert loaded.calls == len(loaded.latencies) > 0
    assert loaded.failed == 0
    session.close()


async def test_an_answer_without_what_was_sent_is_a_failed_call(url: str) -> None:
    session = await load.Session(url, {}).open()
    loaded = await load.drive([session], "tool_0", {"message": "good day"}, 0.02)
    assert loaded.calls == 0
    assert "good day" in loaded.first_failure
    session.close()
