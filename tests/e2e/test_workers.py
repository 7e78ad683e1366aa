"""Several workers serve as one gateway: the same content, sessions on any of them, metrics of all."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from e2e_processes import eventually
from e2e_workers import SCOPE, Caller, Team, team, tool

from control_plane_example.mock import MockControlPlane

pytest_plugins = ["control_plane_example.pytest_plugin"]
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="only Linux shares a port")]

CHANGED = "notifications/tools/list_changed"


@pytest.fixture
async def two(tmp_path: Path, control_plane: MockControlPlane) -> AsyncIterator[Team]:
    """Two workers with a tool that answers, one that does not, and tools to be searched for."""
    for name in ("quick", "slow"):
        eager = {"disclosure_mode": "EAGER"}
        await control_plane.put("McpTool", f"{SCOPE}/n.{name}", {**tool(name, f"/{name}"), **eager})
    await control_plane.put("McpTool", f"{SCOPE}/n.hidden", tool("hidden"))
    async with team(tmp_path, control_plane, search={}) as made:
        yield made


async def told(response: aiohttp.ClientResponse) -> str:
    """The method of the next message of an event stream that is a change."""
    async with asyncio.timeout(15):
        async for line in response.content:
            if line.startswith(b"data:") and json.loads(line[5:]).get("method") == CHANGED:
                return CHANGED
    raise AssertionError("the stream ended")


async def test_all_serve_the_same_count_together_and_tell_of_changes(two: Team) -> None:
    first, second = await two.callers()
    assert (first.worker, second.worker) == (0, 1)
    listed = ["search_tools", "call_tool", "n.quick", "n.slow"]
    assert await first.listed() == await second.listed() == listed
    for caller, calls in ((first, 3), (second, 2)):
        for _ in range(calls):
            assert "error" not in await caller.call("n.quick")
            assert (await caller.modern("tools/call", {"name": "n.quick", "arguments": {}}))["result"]

    async def counted() -> None:
        assert await two.metric('arion_tds_calls_total{backend="rest",listener="a",outcome="ok"}') == 10
        assert await two.metric('arion_tds_call_seconds_count{backend="rest",listener="a"}') == 10
        assert await two.metric('arion_tds_tools{scope="team-mcp/main"}') == 3
        assert await two.metric("arion_tds_workers ") == 2
        assert await two.metric("arion_tds_xds_connected ") == 1

    await eventually(counted)  # a worker whose answer is late is left out
    status = await two.admin("/status")
    assert status["worker"] in {0, 1}
    assert [one["worker"] for one in status["workers"]] == [0, 1]
    command = (sys.executable, "-m", "arion_tds", "status", "--admin", two.admin_url)
    shown = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    for worker in status["workers"]:
        assert re.search(rf"^{worker['worker']}\s+{worker['pid']}\s+ready\s+generation 1\s", shown.stdout, re.MULTILINE)
    streams = [one.node for one in two.control_plane.requests("McpTool") if one.node and one.node.id]
    assert sorted(node.metadata.to_dict()["worker"] for node in streams) == [0, 1]

    await first.initialize()
    await second.initialize()
    modern = [await two.at(caller.worker) for caller in (first, second)]
    asked = {"notifications": {"toolsListChanged": True}}
    async with (
        first.get() as one,
        second.get() as other,
        modern[0].stream("subscriptions/listen", asked) as third,
        modern[1].stream("subscriptions/listen", asked) as fourth,
    ):

        async def are_open() -> None:
            assert [one["open_streams"] for one in await two.workers()] == [2, 2]
            assert await two.metric("arion_tds_streams{") == 4

        await eventually(are_open)
        await two.control_plane.put("McpTool", f"{SCOPE}/n.pushed", {**tool("pushed"), "disclosure_mode": "EAGER"})
        assert await asyncio.gather(*map(told, (one, other, third, fourth))) == [CHANGED] * 4


async def test_a_session_is_good_at_both_with_all_that_belongs_to_it(two: Team) -> None:
    first, second = await two.callers()
    second.session = await first.initialize()
    listed = ["search_tools", "call_tool", "n.quick", "n.slow"]
    assert await second.listed() == listed

    running = asyncio.create_task(first.call("n.slow", identity=7))

    async def is_running() -> None:
        assert "/slow" in two.asked

    await eventually(is_running)
    await second.rpc("notifications/cancelled", {"requestId": 7}, identity=None)
    async with asyncio.timeout(10):
        assert (await running)["error"]["message"] == "Request cancelled"

    await first.rpc("tools/call", {"name": "search_tools", "arguments": {"query": "hidden"}})

    async def is_listed() -> None:
        assert await second.listed() == ["search_tools", "call_tool", "n.hidden", "n.quick", "n.slow"]

    await eventually(is_listed)

    streams = [await opened(two, caller) for caller in (first, second)]
    async with asyncio.timeout(15), streams[0].get() as old:
        assert old.status == 200
        async with streams[1].get() as new:
            assert new.status == 200
            await old.content.read()  # to its end: a session has one stream
            async with second.delete() as response:
                assert response.status == 204
            await new.content.read()

    async def ended() -> None:
        assert await first.rpc("tools/list") == 404

    await eventually(ended)


async def opened(two: Team, caller: Caller) -> Caller:
    """Another connection of the same session to the same worker."""
    made = await two.at(caller.worker)
    made.session = caller.session
    return made


async def test_a_worker_that_does_not_answer_is_left_out_of_the_metrics_and_that_is_counted(two: Team) -> None:
    stuck = (await two.pids())[1]
    first = await two.at(0, two.admin_url)
    with two.frozen(stuck):
        page = await first.page("/metrics")
        assert "arion_tds_workers 1.0" in page
        state = json.loads(await first.page("/readyz"))
        assert (state["ready"], [one["ready"] for one in state["workers"]]) == (True, [True, False])
        page = await first.page("/metrics")
        (failures,) = (
            line for line in page.splitlines() if line.startswith('arion_tds_worker_failures_total{what="met')
        )
        assert float(failures.rpartition(" ")[2]) >= 1
