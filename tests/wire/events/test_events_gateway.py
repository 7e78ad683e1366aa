"""What a running gateway tells a webhook, and that its traffic does not depend on one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from events_receiver import Receiver, receiver
from gateway_house import BOUND, House, house, tool
from gateway_upstreams import mcp_upstream, server

from arion_tds.config import judging
from arion_tds.errors import ConfigError
from arion_tds.search import tokens


@contextlib.asynccontextmanager
async def telling(**more: Any) -> AsyncIterator[tuple[House, Receiver]]:
    async with receiver() as to, house(events={"webhook": to.url, "batch_interval": "10ms", **more}) as here:
        yield here, to


def without_times(event: dict[str, Any]) -> dict[str, Any]:
    return {name: event[name] for name in ("type", "subject", "data")}


async def test_each_verdict_on_a_pushed_resource_is_an_event() -> None:
    async with telling() as (here, to):
        first = await here.put("McpTool", "a/main/ns.echo", tool("ns.echo"))
        await here.refused("McpTool", "a/main/ns.echo", tool("ns.echo", rest_backend=None), "backend")
        await here.remove("McpTool", "a/main/ns.echo")
        await to.until(lambda: to.of("tds.resource.removed"))
    accepted, rejected, removed = map(without_times, to.events)
    about = {"type": "Tool", "scope": "a/main", "name": "ns.echo"}
    assert accepted == {
        "type": "tds.resource.accepted",
        "subject": "a/main/ns.echo",
        "data": {**about, "version": first},
    }
    assert rejected["type"] == "tds.resource.rejected"
    assert rejected["data"]["class"] == "payload"
    assert "backend" in rejected["data"]["reason"]
    assert rejected["data"]["version"] != first
    assert removed == {"type": "tds.resource.removed", "subject": "a/main/ns.echo", "data": about}
    assert to.events[0]["source"] == "/arion-tds/arion/arion-tds"


async def test_discovered_tools_come_with_what_they_cost() -> None:
    async with telling(types=["mcp.tools.discovered"]) as (here, to), mcp_upstream("one", "two", "three") as up:
        await here.put("McpDynamicServer", "a/main/up", server("up", up.url))
        await to.until(lambda: to.events)
        (event,) = to.events
        assert event["subject"] == "a/main/up"
        data = event["data"]
        assert (data["scope"], data["namespace"]) == ("a/main", "up")
        assert sorted(one["name"] for one in data["tools"]) == ["one", "three", "two"]
        one = next(one for one in data["tools"] if one["name"] == "one")
        assert one["description"] == "Discovered one"
        assert one["input_schema"] == {"type": "object"}
        assert [one["token_count"]] == tokens.count(
            [f"up.one\nDiscovered one\n{json.dumps(one['input_schema'], separators=(',', ':'))}"]
        )
        assert data["total_token_count"] == sum(one["token_count"] for one in data["tools"])
        assert data["token_count_exact"] is tokens.exact()
        assert data["discovered_at"] == event["time"]

        up.tools = ["one"]
        await here.put("McpDynamicServer", "a/main/up", server("up", up.url, cache_duration="60s"))
        await to.until(lambda: len(to.events) == 2)
        assert [one["name"] for one in to.events[1]["data"]["tools"]] == ["one"]


async def test_a_server_that_fails_and_comes_back_is_told_once_each() -> None:
    async with telling(types=["upstream.state_changed"]) as (here, to), mcp_upstream("one") as up:
        await here.put("McpDynamicServer", "a/main/up", server("up", up.url))
        up.status = 500
        for _ in range(3):
            assert (await here.a.call("up.one"))["isError"]
        up.status = 200
        assert not (await here.a.call("up.one")).get("isError")
        await to.until(lambda: len(to.events) == 3)
    assert [event["data"]["state"] for event in to.events] == ["ok", "failing", "ok"]
    assert {event["data"]["kind"] for event in to.events} == {"mcp_server"}
    assert {event["subject"] for event in to.events} == {up.url}
    assert "500" in to.events[1]["data"]["reason"]


async def test_an_endpoint_that_refuses_connections_is_told_once(free_endpoint: str) -> None:
    cluster = {"name": "dead", "endpoints": [free_endpoint]}
    async with (
        receiver() as to,
        house(events={"webhook": to.url, "batch_interval": "10ms"}, more_clusters=[cluster]) as here,
    ):
        backend = {"method": "GET", "path": "/", "cluster": "dead"}
        await here.put("McpTool", "a/main/ns.dead", tool("ns.dead", rest_backend=backend))
        for _ in range(3):
            assert (await here.a.call("ns.dead"))["isError"]
        await to.until(lambda: to.of("upstream.state_changed"))
    (event,) = to.of("upstream.state_changed")
    assert event["data"] == {
        "kind": "endpoint",
        "cluster": "dead",
        "name": free_endpoint,
        "state": "down",
        "reason": "no connection: Connection refused",
    }


@pytest.fixture
async def free_endpoint() -> str:
    """An origin where nobody listens."""
    listening = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    listening.close()
    await listening.wait_closed()
    return f"http://127.0.0.1:{port}"


async def test_pushes_and_calls_go_on_while_the_receiver_hangs_and_drops_are_counted() -> None:
    async with telling(max_queue=3, max_batch=1, timeout="50ms", retries=0) as (here, to):
        to.open.clear()
        async with asyncio.timeout(BOUND):
            for number in range(10):
                await here.put("McpTool", f"a/main/ns.t{number}", tool(f"ns.t{number}"))
            assert await here.a.echo("ns.t9")
        page = await here.metrics()
        assert 'arion_tds_events_total{outcome="overflow"}' in page
        assert "arion_tds_events_waiting" in page
        to.open.set()


async def test_a_header_whose_secret_is_not_there_is_a_mistake_of_the_config(tmp_path: Path) -> None:
    wrong = {"webhook": "http://127.0.0.1:1/", "headers": {"authorization": {"file": str(tmp_path / "none")}}}
    with pytest.raises(ConfigError, match="events: a secret or ca_file cannot be read"):
        async with house(events=wrong):
            pass


@pytest.mark.parametrize("url", ["ftp://x/", "http://user:secret@host/", "host/hook", "http:///x"])
def test_a_webhook_is_an_http_url(url: str) -> None:
    block = {
        "name": "l",
        "address": "127.0.0.1:0",
        "mcp_gateway": {"server_info": {"name": "a", "version": "1"}, "tools_mode": {}},
    }
    with pytest.raises(ConfigError, match=r"events\.webhook: .* is not an http or https URL"):
        judging.judge({"listeners": [block], "events": {"webhook": url}})
