"""Tools of MCP servers stay fresh: what is asked when, who hears of it, and what a change in the middle does."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from aiohttp import web
from gateway_house import House, listener
from gateway_house import tool as rest
from mcp_scripted import Asked, Reply, Scripted, tool
from upstream_house import (
    ERAS,
    Caller,
    Stream,
    announced,
    discovered,
    gateway,
    server,
    text_of,
    until,
    until_served,
)

from arion_tds import freshness
from control_plane_example import documents
from control_plane_example.wire import DeltaDiscoveryResponse, ProtoAny, Resource


@pytest.fixture(params=ERAS)
def up(request: pytest.FixtureRequest) -> Scripted:
    return Scripted(request.param)


def lists(up: Scripted) -> int:
    return len(up.of("tools/list"))


class Gate:
    """Holds a method's answers back until it is opened."""

    def __init__(self, up: Scripted, method: str = "tools/list") -> None:
        self.up = up
        self.waiting = 0
        self.opened = asyncio.Event()
        up.on[method] = self._wait

    async def _wait(self, asked: Asked) -> Reply:
        tools = list(self.up.tools)  # as they are when the question comes
        self.waiting += 1
        try:
            await self.opened.wait()
        finally:
            self.waiting -= 1
        return asked.result(({"resultType": "complete"} if self.up.era == "modern" else {}) | {"tools": tools})

    async def holds(self, count: int = 1) -> None:
        await until(lambda: self.waiting == count)


def failing(up: Scripted, status: int = 503) -> None:
    async def fail(asked: Asked) -> Reply:
        return web.Response(status=status)

    up.on["tools/list"] = fail


def no_watch_is_left(here: House) -> None:
    assert here.gateway.freshness._lookouts == {}
    assert here.gateway.upstreams._watched == {}


# Refreshes


async def test_cache_duration_replaces_the_whole_set_again_and_again(up: Scripted) -> None:
    async with up.serving(), gateway() as here:
        await here.put("McpDynamicServer", "a/main/up", server("up", up, cache_duration="0.05s"))
        up.tools = [tool("b"), tool("c")]
        await until_served(here, "up.b", "up.c")
        up.tools = [tool("c", description="new")]
        await until_served(here, "up.c")
        await until(lambda: here.gateway.catalogs[0].published.view.tools["up.c"].tool.description == "new")
        up.tools = []
        await until_served(here)
        up.tools = [tool("d")]
        await until_served(here, "up.d")  # an empty list was no end


async def test_without_cache_duration_the_first_list_is_kept(up: Scripted) -> None:
    async with discovered(up) as here:
        caller = await Caller.of(here, "modern")
        up.tools = [tool("other")]
        for _ in range(5):
            assert await caller.listed() == ["up.echo"]
            await caller.call("up.echo")
        assert lists(up) == 1


async def test_a_storm_of_announcements_is_a_few_lists_and_the_last_state_is_served(up: Scripted) -> None:
    stream = Stream(up)
    async with discovered(up) as here:
        before = lists(up)
        for number in range(100):
            up.tools = [tool(f"t{number:03}")]
            await stream.announce()
        await until_served(here, "up.t099")
        assert lists(up) - before <= 3


async def test_lists_keep_a_distance_however_often_a_change_is_announced(up: Scripted) -> None:
    times: list[float] = []
    stream = Stream(up)

    async def timed(asked: Asked) -> Reply:
        times.append(asyncio.get_running_loop().time())
        kind = {"resultType": "complete"} if up.era == "modern" else {}
        return asked.result(kind | {"tools": [tool(f"t{len(times)}")]})

    up.on["tools/list"] = timed
    async with discovered(up) as here:
        for number in (2, 3):
            await stream.announce()
            await until_served(here, f"up.t{number}")
    assert times[2] - times[1] >= freshness.QUIET * 0.95


async def test_a_failed_refresh_keeps_the_tools_and_says_it_once_per_reason(
    up: Scripted, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "QUIET", 0.0)
    async with up.serving(), gateway() as here:
        await here.put("McpDynamicServer", "a/main/up", server("up", up, cache_duration="0.02s"))
        for status in (503, 502):
            failing(up, status)
            before = lists(up)
            await until(lambda before=before: lists(up) >= before + 6)  # type: ignore[misc]
            assert await here.a.listed() == ["up.echo"]
        said = [one.getMessage() for one in caplog.records if "its former tools stay" in one.getMessage()]
        assert len(said) == 2
        assert "503" in said[0]
        assert "502" in said[1]
        assert await here.problems() == []  # the resource is served: nothing stands rejected
        del up.on["tools/list"]
        up.tools = [tool("back")]
        await until_served(here, "up.back")


async def test_a_lost_announcement_stream_is_opened_again_and_the_list_asked_for(up: Scripted) -> None:
    stream = Stream(up)
    async with discovered(up) as here:
        await until(lambda: len(stream.open) == 1)
        up.tools = [tool("meanwhile")]  # announced to nobody
        asked, _ = stream.open[0]
        assert asked.http.transport is not None
        asked.http.transport.abort()
        await until_served(here, "up.meanwhile")
        await until(lambda: len(stream.open) == 1)


async def test_a_change_before_a_slow_stream_stands_is_not_missed(up: Scripted) -> None:
    stream, open_now = Stream(up), asyncio.Event()
    opening = up.on["GET" if up.era == "legacy" else "subscriptions/listen"]

    async def slow(asked: Asked) -> Reply:
        await open_now.wait()
        return await opening(asked)

    up.on["GET" if up.era == "legacy" else "subscriptions/listen"] = slow
    async with discovered(up) as here:
        up.tools.append(tool("new"))  # announced to nobody
        open_now.set()
        await until_served(here, "up.echo", "up.new")
        assert len(stream.open) == 1
        assert lists(up) == 2


async def test_a_restarted_server_that_cannot_announce_is_listed_again_once_it_is_met(unused_tcp_port: int) -> None:
    up = Scripted("legacy")  # answers GET with 405
    async with gateway() as here:
        async with up.serving(unused_tcp_port):
            await here.put("McpDynamicServer", "a/main/up", server("up", up))
        up.sessions.clear()
        up.tools = [tool("echo"), tool("new")]
        async with up.serving(unused_tcp_port):
            assert text_of(await (await Caller.of(here, "modern")).call("up.echo")) == "{}"
            await until_served(here, "up.echo", "up.new")


async def test_the_first_list_is_asked_for_once_whatever_the_era(up: Scripted) -> None:
    Stream(up)
    async with discovered(up) as here:
        caller = await Caller.of(here, "legacy")
        for _ in range(20):
            await caller.call("up.echo")
        assert lists(up) == 1
        assert [one.handshakes for one in here.gateway.upstreams.status()] == [1]


# Scopes


async def test_two_scopes_with_one_url_share_one_stream_until_the_last_leaves(up: Scripted) -> None:
    stream = Stream(up)
    async with up.serving(), gateway(listener(), listener("b")) as here, contextlib.AsyncExitStack() as stack:
        for scope, namespace in (("a/main", "one"), ("b/main", "two")):
            await here.put("McpDynamicServer", f"{scope}/{namespace}", server(namespace, up))
        heard = [await stack.enter_async_context((await Caller.of(here, "modern", one)).listening()) for one in "ab"]
        await until(lambda: len(stream.open) == 1)
        up.tools.append(tool("new"))
        await stream.announce()
        for said in heard:
            await announced(said)
        assert await here.a.listed() == ["one.echo", "one.new"]
        assert await here.tenants["b"].listed() == ["two.echo", "two.new"]
        assert len(stream.open) == 1

        await here.remove("McpDynamicServer", "a/main/one")
        up.tools.pop()
        await stream.announce()
        await announced(heard[1])
        assert len(stream.open) == 1
        await here.remove("McpDynamicServer", "b/main/two")
        await until(lambda: not stream.open)
        no_watch_is_left(here)


async def test_a_change_between_the_lists_of_two_scopes_is_missed_by_neither(up: Scripted) -> None:
    stream, gate = Stream(up), Gate(up)
    async with up.serving(), gateway(listener(), listener("b")) as here:
        here.plane.hold()
        for scope in ("a/main", "b/main"):
            await here.plane.put("McpDynamicServer", f"{scope}/up", server("up", up))
        here.plane.release()
        await gate.holds(2)  # both have been read by the server already
        up.tools.append(tool("new"))
        await stream.announce()
        gate.opened.set()
        for scope in ("a/main", "b/main"):
            await until_served(here, "up.echo", "up.new", scope=scope)


# Removal and replacement


async def test_a_removed_server_is_left_and_its_session_ended() -> None:
    up = Scripted("legacy")
    stream = Stream(up)
    async with discovered(up) as here:
        await until(lambda: bool(stream.open))
        await here.remove("McpDynamicServer", "a/main/up")
        await until(lambda: not stream.open and not up.sessions)
        no_watch_is_left(here)
        assert (await here.admin("config_dump"))["mcp_servers"] == []


async def test_a_call_under_way_outlives_the_removal_of_its_server(up: Scripted) -> None:
    gate = Gate(up, "tools/call")

    async with discovered(up) as here:
        call = asyncio.create_task((await Caller.of(here, "modern")).call("up.echo"))
        await gate.holds()
        await here.remove("McpDynamicServer", "a/main/up")
        await here.a.refuses("up.echo")
        gate.opened.set()
        assert "isError" not in await call or not (await call)["isError"]


async def test_a_server_removed_while_it_is_listed_for_the_first_time_does_not_appear(
    up: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate(up)
    async with up.serving(), gateway() as here:
        url = documents.TYPE_URLS["McpDynamicServer"]
        held = documents.encode("McpDynamicServer", server("up", up))
        assert not isinstance(held, documents.Fault)
        found = Resource(name="a/main/up", version="1", resource=ProtoAny(type_url=url, value=held.payload))
        await here.plane.send_raw(DeltaDiscoveryResponse(type_url=url, resources=[found]))
        await gate.holds()
        await here.plane.send_raw(DeltaDiscoveryResponse(type_url=url, removed_resources=["a/main/up"]))
        await until(lambda: "'up' is not here: nothing to remove" in caplog.text)  # its ACK waits its turn
        gate.opened.set()
        await here.plane.acked_removal("McpDynamicServer", "a/main/up")
        await here.a.serves()
        no_watch_is_left(here)


async def test_a_server_removed_while_its_first_list_fails_is_let_go(
    up: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    failed, fail = 0, asyncio.Event()

    async def slow_failure(asked: Asked) -> Reply:
        nonlocal failed
        failed += 1
        await fail.wait()
        return web.Response(status=503)

    up.on["tools/list"] = slow_failure
    async with up.serving(), gateway() as here:
        url = documents.TYPE_URLS["McpDynamicServer"]
        held = documents.encode("McpDynamicServer", server("up", up))
        assert not isinstance(held, documents.Fault)
        found = Resource(name="a/main/up", version="1", resource=ProtoAny(type_url=url, value=held.payload))
        await here.plane.send_raw(DeltaDiscoveryResponse(type_url=url, resources=[found]))
        await until(lambda: failed == 1)
        await here.plane.send_raw(DeltaDiscoveryResponse(type_url=url, removed_resources=["a/main/up"]))
        await until(lambda: "'up' is not here: nothing to remove" in caplog.text)
        fail.set()
        await here.plane.acked_removal("McpDynamicServer", "a/main/up")
        no_watch_is_left(here)
        assert here.gateway.upstreams.status() == ()


async def test_a_server_removed_while_it_is_refreshed_does_not_return(up: Scripted) -> None:
    stream = Stream(up)
    async with discovered(up) as here:
        gate = Gate(up)
        up.tools.append(tool("late"))
        await stream.announce()
        await gate.holds()
        await here.remove("McpDynamicServer", "a/main/up")
        gate.opened.set()
        await until(lambda: not stream.open)
        await here.a.serves()


async def test_a_definition_replaced_while_a_refresh_is_under_way_wins(up: Scripted) -> None:
    stream = Stream(up)
    other = Scripted("modern")
    other.tools = [tool("other")]
    async with discovered(up) as here, other.serving():
        gate = Gate(up)
        up.tools.append(tool("late"))
        await stream.announce()
        await gate.holds()
        await here.put("McpDynamicServer", "a/main/up", server("up", other))
        gate.opened.set()
        await until(lambda: not stream.open)
        assert await here.a.listed() == ["up.other"]
        assert [one.url for one in here.gateway.upstreams.status()] == [other.url]


async def test_a_new_definition_of_the_same_url_is_followed_in_place_of_the_old(up: Scripted) -> None:
    stream = Stream(up)
    async with discovered(up) as here:
        await here.put("McpDynamicServer", "a/main/up", server("up", up, description="changed"))
        await until(lambda: len(stream.open) == 1)
        before = lists(up)
        up.tools.append(tool("new"))
        await stream.announce()
        await until_served(here, "up.echo", "up.new")
        assert lists(up) == before + 1


async def test_a_removal_in_the_middle_of_a_publication_leaves_nothing_in_the_index(up: Scripted) -> None:
    stream = Stream(up)
    async with discovered(up) as here:
        catalog = here.gateway.catalogs[0]
        up.tools = [tool(f"tool_{n}", description=f"word{n} " * 20) for n in range(3000)]
        await stream.announce()
        await until(lambda: not catalog.settled)
        await here.remove("McpDynamicServer", "a/main/up")
        await here.a.serves()
        assert len(catalog.index) == 0


# Refused and tried again


async def test_a_refused_server_is_taken_in_the_background_and_its_version_claimed(up: Scripted) -> None:
    failing(up)
    async with up.serving(), gateway() as here:
        await here.refused("McpDynamicServer", "a/main/up", server("up", up), "503")
        version = here.plane.version("McpDynamicServer", "a/main/up")
        await here.cut()
        assert _claimed(here) == {}
        del up.on["tools/list"]
        await until_served(here, "up.echo")
        await until(lambda: not len(here.gateway.problems))
        await here.cut()
        assert _claimed(here) == {"a/main/up": version}
        assert text_of(await (await Caller.of(here, "legacy")).call("up.echo")) == "{}"


def _claimed(here: House) -> dict[str, str]:
    asks = [one for one in here.plane.requests("McpDynamicServer") if one.resource_names_subscribe]
    return dict(asks[-1].initial_resource_versions)


async def test_a_pending_server_that_is_removed_is_asked_no_more(up: Scripted) -> None:
    failing(up)
    async with up.serving(), gateway() as here:
        await here.refused("McpDynamicServer", "a/main/up", server("up", up), "503")
        await until(lambda: lists(up) >= 3)
        await here.remove("McpDynamicServer", "a/main/up")
        before = lists(up)
        del up.on["tools/list"]
        await until(lambda: here.gateway.freshness._pending == {})
        assert await here.problems() == []
        no_watch_is_left(here)
        assert lists(up) <= before + 1
        await here.a.serves()


async def test_a_pending_server_removed_in_the_middle_of_a_try_leaves_no_watch(up: Scripted) -> None:
    failing(up)
    async with up.serving(), gateway() as here:
        await here.refused("McpDynamicServer", "a/main/up", server("up", up), "503")
        gate = Gate(up)
        await gate.holds()
        await here.remove("McpDynamicServer", "a/main/up")
        gate.opened.set()
        await until(lambda: not here.gateway.freshness._lookouts)
        no_watch_is_left(here)
        await here.a.serves()


async def test_a_pending_server_removed_in_the_middle_of_its_publication_is_not_followed(up: Scripted) -> None:
    failing(up)
    async with up.serving(), gateway() as here:
        await here.refused("McpDynamicServer", "a/main/up", server("up", up), "503")
        catalog = here.gateway.catalogs[0]
        up.tools = [tool(f"tool_{n}", description=f"word{n} " * 20) for n in range(3000)]
        del up.on["tools/list"]
        await until(lambda: not catalog.settled)
        await here.remove("McpDynamicServer", "a/main/up")
        await here.a.serves()
        await until(lambda: not here.gateway.freshness._lookouts)
        no_watch_is_left(here)
        assert len(catalog.index) == 0


async def test_a_newer_definition_supersedes_one_that_is_pending(up: Scripted) -> None:
    other = Scripted("modern")
    failing(up)
    async with up.serving(), other.serving(), gateway() as here:
        await here.refused("McpDynamicServer", "a/main/up", server("up", up), "503")
        other.tools = [tool("other")]
        await here.put("McpDynamicServer", "a/main/up", server("up", other))
        del up.on["tools/list"]
        assert await here.problems() == []
        assert here.gateway.freshness._pending == {}
        await here.a.refuses("up.echo")
        assert await here.a.listed() == ["up.other"]


async def test_a_refused_replacement_leaves_the_former_version_served_and_followed(up: Scripted) -> None:
    stream, other = Stream(up), Scripted("legacy")
    failing(other)
    async with discovered(up) as here, other.serving():
        await here.refused("McpDynamicServer", "a/main/up", server("up", other), "503")
        up.tools.append(tool("new"))
        await stream.announce()
        await until_served(here, "up.echo", "up.new")

        del other.on["tools/list"]  # now the replacement can be asked
        other.tools = [tool("other")]
        await until_served(here, "up.other")
        await until(lambda: not stream.open)
        assert await here.problems() == []


async def test_a_pending_server_whose_namespace_was_taken_meanwhile_stays_refused(
    up: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    failing(up)
    async with up.serving(), gateway() as here:
        await here.refused("McpDynamicServer", "a/main/up", server("up", up), "503")
        await here.put("McpTool", "a/main/up.mine", rest("up.mine"))
        del up.on["tools/list"]
        await until(lambda: "still refused" in caplog.text)
        await here.a.serves("up.mine")
        (problem,) = await here.problems()
        assert problem["name"] == "a/main/up"
        no_watch_is_left(here)


async def test_a_static_server_that_is_down_does_not_keep_the_gateway_from_starting(
    up: Scripted, unused_tcp_port: int
) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}/mcp"
    static = listener(gateway={"dynamic_mcp_servers": [server("up", url)]})
    async with gateway(static) as here:
        await here.a.serves()
        async with up.serving(unused_tcp_port):
            await until_served(here, "up.echo")
