"""Two workers in this process, each with its place: what is done once, what is told, when one begins to listen."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from events_receiver import receiver
from gateway_house import BOUND, Tenant, echoing, listener, settings, tool

from arion_tds import app
from arion_tds.cli.main import main
from arion_tds.config import judging
from arion_tds.errors import ConfigError
from arion_tds.workers.role import Role
from control_plane_example.mock import MockControlPlane

NAME = "a/main/ns.echo"


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path for sockets."""
    made = Path(tempfile.mkdtemp(prefix="team-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
async def plane() -> AsyncIterator[MockControlPlane]:
    async with MockControlPlane() as running:
        yield running


@contextlib.asynccontextmanager
async def worker(
    number: int, folder: Path, plane: MockControlPlane, *, patient: bool = False, **more: Any
) -> AsyncIterator[app.Gateway]:
    """Started, and not yet told to open."""
    async with echoing() as backend:
        judged = judging.judge(settings(plane.address, backend, [listener()], **more))
        async with app.running(judged, role=Role(number, 2, folder, b"k" * 32, patient)) as gateway:
            yield gateway


def tenant(gateway: app.Gateway, http: aiohttp.ClientSession) -> Tenant:
    return Tenant(f"http://{gateway.bound['a']}", http)


def failures(gateway: app.Gateway, what: str) -> float:
    return value(gateway.metrics.page(), f'arion_tds_worker_failures_total{{what="{what}"}}')


def value(page: bytes, line: str) -> float:
    found = [float(one.rpartition(" ")[2]) for one in page.decode().splitlines() if one.startswith(line)]
    assert len(found) == 1, page
    return found[0]


async def counted(gateway: app.Gateway) -> tuple[float, float, float]:
    """Searches and seconds of calls on the page of all, which are kept, and workers, which are not."""
    assert gateway.siblings is not None
    page = await gateway.siblings.metrics()
    lines = ('arion_tds_searches_total{listener="a",via="t"}', 'arion_tds_call_seconds_sum{backend="t",listener="a"}')
    return value(page, lines[0]), value(page, lines[1]), value(page, "arion_tds_workers ")


def count(gateway: app.Gateway) -> None:
    gateway.metrics.searches.labels("a", "t").inc()
    gateway.metrics.call_seconds.labels("a", "t").observe(0.5)


async def test_events_and_the_cache_are_the_business_of_worker_0(short: Path, plane: MockControlPlane) -> None:
    async with receiver() as to:
        more = {"events": {"webhook": to.url, "batch_interval": "10ms"}, "cache": {"directory": str(short / "cache")}}
        async with worker(0, short, plane, **more) as first, worker(1, short, plane, **more) as second:
            await asyncio.gather(first.open(), second.open())
            await plane.put("McpTool", NAME, tool("ns.echo"))
            for one in (first, second):
                held = asyncio.Event()
                stop = one.catalogs[0].published.listen(lambda _old, _new, held=held: held.set())  # type: ignore[misc]
                async with asyncio.timeout(BOUND):
                    if not one.catalogs[0].published.view.tools:
                        await held.wait()
                stop()
            await to.until(lambda: to.events)
            assert second.cache is not None
            assert second.cache.status().pending_bytes == 0
        assert second.cache.status().written == 0
        assert first.cache is not None
        assert first.cache.status().written >= 1
    assert len(to.of("tds.resource.accepted")) == 1  # each sends what waits when it ends


async def test_one_that_stands_in_does_not_listen_before_it_has_content(short: Path, plane: MockControlPlane) -> None:
    await plane.put("McpTool", NAME, tool("ns.echo"))
    plane.hold()
    async with worker(1, short, plane, patient=True) as gateway, aiohttp.ClientSession() as http:
        opening = asyncio.create_task(gateway.open())
        await plane.connected()
        here = tenant(gateway, http)
        with pytest.raises(aiohttp.ClientConnectionError):
            await here.listed()
        assert gateway.admin == ""
        assert gateway.ready()["ready"] is False
        plane.release()
        async with asyncio.timeout(BOUND):
            await opening
        assert await here.listed() == ["ns.echo"]
        assert gateway.admin
        assert gateway.ready()["ready"] is True


async def test_with_nobody_beside_it_a_worker_listens_in_the_end(short: Path, plane: MockControlPlane) -> None:
    plane.hold()
    waits = {"address": plane.address, "initial_fetch_timeout": "50ms"}
    async with worker(0, short, plane, control_plane=waits) as gateway, aiohttp.ClientSession() as http:
        async with asyncio.timeout(BOUND):
            await gateway.open()
        assert await tenant(gateway, http).listed() == []


async def test_a_note_that_nobody_takes_is_counted(short: Path, plane: MockControlPlane) -> None:
    async with worker(0, short, plane) as gateway, aiohttp.ClientSession() as http:
        await gateway.open()
        url = f"http://{gateway.bound['a']}/mcp"
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        async with http.post(
            url, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        ) as response:
            session = {"mcp-session-id": response.headers["mcp-session-id"]}
        gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
        async with http.post(url, json=gone, headers=session) as response:
            assert response.status == 202
        async with asyncio.timeout(BOUND):
            while failures(gateway, "note") < 1:  # noqa: ASYNC110 - a counter tells nobody
                await asyncio.sleep(0)
        assert gateway.siblings is not None
        state = await gateway.siblings.ready()
        assert state["ready"] is False  # until both have taken connections
        gateway.siblings.complete.set()
        assert (await gateway.siblings.ready())["ready"] is True  # without the one that is not there
        assert failures(gateway, "state") == 2


async def test_what_a_worker_has_counted_stays_when_it_ends_and_when_it_is_replaced(
    short: Path, plane: MockControlPlane
) -> None:
    async with worker(0, short, plane) as first:
        async with worker(1, short, plane) as second:
            for one in (first, second, second):
                count(one)
            assert await counted(first) == await counted(second) == (3, 1.5, 2)
            count(second)  # after the last look, and yet not lost: it ends in order
        assert await counted(first) == (4, 2, 1)
        async with worker(1, short, plane) as second:
            assert await counted(first) == await counted(second) == (4, 2, 2)
            count(second)
            assert await counted(first) == await counted(second) == (5, 2.5, 2)
        assert await counted(first) == (5, 2.5, 1)


async def test_counts_that_cannot_be_kept_are_shown_all_the_same(short: Path, plane: MockControlPlane) -> None:
    async with worker(0, short, plane) as first, worker(1, short, plane) as second:
        for one in (first, second):
            count(one)
        (short / "1.counts").mkdir()  # nothing can be written there
        assert await counted(first) == (2, 1, 2)
        assert failures(second, "counts") == 1


async def explained(gateway: app.Gateway) -> dict[str, Any]:
    found: Any = await gateway.panel.explain("ns.echo", None, None)
    (answer,) = found["answers"]
    return dict(answer)


async def test_explain_tells_of_a_worker_that_says_otherwise(
    short: Path, plane: MockControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    version = await plane.put("McpTool", NAME, tool("ns.echo"))
    async with MockControlPlane() as behind, worker(0, short, plane) as first:
        await first.open()
        typed = ["explain", "ns.echo", "--admin", first.admin]
        async with worker(1, short, behind) as second:
            await second.open()
            answer = await explained(first)
            assert answer["state"] == "served"
            (other,) = answer["workers"]
            assert (other["worker"], other["state"]) == (1, "unknown")
            assert await asyncio.to_thread(main, typed) == 0
            assert "worker 1: unknown: the control plane has sent nothing called 'ns.echo'" in capsys.readouterr().out
            await behind.put("McpTool", NAME, tool("ns.echo"))
            await behind.acked("McpTool", NAME, version)
            assert "workers" not in await explained(second)
        assert (await explained(first))["workers"] == [{"worker": 1}]
        assert failures(first, "explain") == 1
        assert await asyncio.to_thread(main, typed) == 0
        assert "worker 1: has no answer" in capsys.readouterr().out


async def test_a_config_that_workers_cannot_share_is_refused(short: Path, plane: MockControlPlane) -> None:
    async with worker(0, short, plane) as gateway:
        await gateway.open()
        config = judging.judge(settings(plane.address, "http://127.0.0.1:1", [listener()]))
        with pytest.raises(ConfigError, match=r"2 processes cannot serve this config: .* port 0"):
            await gateway.apply(config)
