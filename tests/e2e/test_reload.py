"""A gateway process whose config changes under it, and one that is told to stop while it is busy."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from aiohttp import web
from e2e_processes import Demo, eventually, free_ports
from test_demo import ADMIN, A, B, call, listed

pytestmark = pytest.mark.e2e


def change(demo: Demo, **keys: Any) -> None:
    """Write other top-level keys into the gateway's file."""
    path = demo.folder / "gateway.yaml"
    config = yaml.safe_load(path.read_text("utf-8"))
    path.write_text(yaml.safe_dump({**config, **keys}), encoding="utf-8")


def config(demo: Demo) -> Any:
    return yaml.safe_load((demo.folder / "gateway.yaml").read_text("utf-8"))


def hang_up(demo: Demo) -> None:
    os.kill(demo.processes["gateway"].child.pid, signal.SIGHUP)


async def until(demo: Demo, **state: Any) -> None:
    """Until /readyz says so."""

    async def says() -> None:
        found = await demo.get(ADMIN, "/readyz")
        assert {key: found[key] for key in state} == state, demo.logs()

    await eventually(says)


async def test_a_signal_brings_a_tenant_and_takes_it_away_and_a_bad_file_changes_nothing(demo: Demo) -> None:
    await demo.ready()
    (port,) = free_ports(1)
    demo.ports[9999] = port
    before = config(demo)["listeners"]
    third = {**before[1], "name": "tenant-new", "address": f"127.0.0.1:{port}", "tool_names": "bare"}
    third["mcp_gateway"] = {**third["mcp_gateway"], "server_info": {"name": "tenant-new-mcp", "version": "1"}}
    document = yaml.safe_load((demo.catalog / "tenant-b-climate.get_monthly_normals.yaml").read_text("utf-8"))
    document["metadata"]["name"] = document["metadata"]["name"].replace("tenant-b", "tenant-new")
    (demo.catalog / "tenant-new.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")

    change(demo, listeners=[*before, third])
    hang_up(demo)
    await until(demo, config_generation=2, last_reload_error="")

    async def serves() -> None:
        assert await listed(demo, 9999) == ["get_monthly_normals"]

    await eventually(serves)

    change(demo, listeners=[{**before[0], "page_syze": 3}])
    hang_up(demo)
    await until(
        demo, config_generation=2, last_reload_error="listeners[0].page_syze: unknown key: did you mean 'page_size'?"
    )
    await serves()
    assert "unknown key" in demo.processes["gateway"].log()

    change(demo, listeners=before, reload={"watch": True})
    hang_up(demo)
    await until(demo, config_generation=3, last_reload_error="")
    with pytest.raises(OSError, match=r"refused|connect"):
        await listed(demo, 9999)

    change(demo, listeners=before[:1])  # nobody is told
    await until(demo, config_generation=4)
    with pytest.raises(OSError, match=r"refused|connect"):
        await listed(demo, B)
    assert await listed(demo, A)


@pytest.fixture
async def slow() -> AsyncIterator[tuple[str, asyncio.Event, asyncio.Event]]:
    """A backend that answers when it is told to: its origin, whether it was asked, and how it is told."""
    asked, told = asyncio.Event(), asyncio.Event()

    async def answer(_request: web.BaseRequest) -> web.Response:
        asked.set()
        await told.wait()
        return web.Response(text="done")

    runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked, told
    await runner.cleanup()


async def test_told_to_stop_it_is_not_ready_at_once_serves_on_for_a_while_and_finishes_its_calls(
    demo: Demo, slow: tuple[str, asyncio.Event, asyncio.Event]
) -> None:
    origin, asked, told = slow
    await demo.ready()
    tool = {
        "namespace": "slow",
        "name": "call",
        "description": "Takes its time",
        "rest_backend": {"method": "GET", "path": "/", "cluster": "slow"},
    }
    listeners = config(demo)["listeners"]
    listeners[0]["mcp_gateway"]["tools"] = [tool]
    clusters = [*config(demo)["clusters"], {"name": "slow", "endpoints": [origin]}]
    change(demo, listeners=listeners, clusters=clusters, drain_delay="2s")
    hang_up(demo)
    await until(demo, config_generation=2)

    running = asyncio.create_task(call(demo, A, "slow.call", {}))
    async with asyncio.timeout(10):
        await asked.wait()
    gateway = demo.processes["gateway"].child
    gateway.send_signal(signal.SIGTERM)
    await until(demo, ready=False, draining=True)
    assert "slow.call" in await listed(demo, A)  # there is time for load balancers to look elsewhere
    gateway.send_signal(signal.SIGTERM)  # who is in a hurry does not wait for them

    async def takes_nobody() -> None:
        try:
            await listed(demo, A)
        except OSError:
            return
        raise AssertionError

    await eventually(takes_nobody)
    told.set()
    answer = await running
    assert answer["result"]["content"][0]["text"] == "done"
    assert await asyncio.to_thread(gateway.wait, 15) == 0
    assert "Traceback" not in demo.processes["gateway"].log()
