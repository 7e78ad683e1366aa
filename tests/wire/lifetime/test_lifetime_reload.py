"""A config that changes while the gateway serves: what moves, what stays, and what is refused whole."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web
from gateway_house import BOUND, House, Spec, Tenant, echoing, house, inline, listener, serving, settings, tool
from gateway_upstreams import document, mcp_upstream, server, source

from arion_tds import reloading
from arion_tds.catalog import Catalog
from arion_tds.cli.main import main
from arion_tds.config import judging
from arion_tds.config.judging import Config
from arion_tds.reloading import Reloader


class Changing:
    """A house whose config the test changes. `config` is the whole file, as values."""

    def __init__(self, here: House, backend: str, listeners: tuple[Spec, ...]) -> None:
        self.here = here
        self.config = settings(here.plane.address, backend, listeners)

    async def change(self, *listeners: Spec, **more: Any) -> bool:
        """Take these listeners (none: those there are) and other keys; False when it was refused."""
        new = {**self.config, **more}
        if listeners:
            new["listeners"] = list(listeners)

        def load() -> Config:
            return judging.judge(new)

        async with asyncio.timeout(BOUND):
            taken = await self.here.gateway.reloader.take(load)
        if taken:
            self.config = new
        return taken

    def tenant(self, name: str) -> Tenant:
        """A listener that there is now."""
        return Tenant(f"http://{self.here.gateway.bound[name]}", self.here.http)

    async def ready(self) -> Spec:
        return await self.here.admin("readyz")

    async def complete(self) -> None:
        """Until the control plane has said everything about the scopes of now."""
        assert self.here.gateway.ads is not None
        async with asyncio.timeout(BOUND):
            await self.here.gateway.ads.wait_complete()


@contextlib.asynccontextmanager
async def changing(*listeners: Spec, **more: Any) -> AsyncIterator[Changing]:
    chosen = listeners or (listener(),)
    async with (
        echoing() as backend,
        house(*chosen, clusters=[{"name": "echo", "endpoints": [backend]}], **more) as here,
    ):
        made = Changing(here, backend, chosen)
        made.config = {**made.config, **more}
        yield made


async def test_a_new_scope_gets_what_was_published_before_and_nobody_else_notices() -> None:
    async with changing() as it, aiohttp.ClientSession() as kept:
        await it.here.put("McpTool", "a/main/x.mine", tool("x.mine"))
        await it.here.plane.put("McpTool", "b/main/x.theirs", tool("x.theirs"))
        await it.here.plane.put("McpOpenApiSource", "b/main/api", source("api", "one"))
        stream = await kept.get(f"{it.tenant('a').url}/mcp", headers=await session(it.tenant("a")))
        assert await it.change(listener(), listener("b"))
        await it.complete()
        await it.tenant("b").serves("x.theirs", "api.one")
        await it.tenant("a").serves("x.mine")
        assert stream.status == 200
        assert not stream.content.at_eof(), "the stream of a listener that did not change is as it was"
        stream.close()
        assert (await it.ready())["config_generation"] == 2


async def test_a_scope_that_goes_takes_its_content_along_and_may_come_back() -> None:
    async with changing(listener(), listener("b")) as it:
        await it.here.put("McpTool", "b/main/x.tool", tool("x.tool"))
        await it.here.refused("McpTool", "b/main/x.bad", tool("x.bad", rest_backend=None), "backend")
        url = it.tenant("b").url
        assert await it.change(listener())
        assert await it.here.problems() == []
        assert 'scope="b/main"' not in await it.here.metrics()
        with pytest.raises(aiohttp.ClientConnectorError):
            await Tenant(url, it.here.http).listed()
        await it.here.plane.put("McpTool", "b/main/x.more", tool("x.more"))
        assert await it.change(listener(), listener("b"))
        await it.complete()
        await it.tenant("b").serves("x.tool", "x.more")


async def test_an_address_stays_bound_while_its_listener_is_replaced() -> None:
    async with changing(listener(page_size=1)) as it:
        await it.here.put("McpTool", "a/main/x.a", tool("x.a"))
        await it.here.put("McpTool", "a/main/x.b", tool("x.b"))
        address = it.here.gateway.bound["a"]
        stop = asyncio.Event()
        failed: list[object] = []

        async def keep_calling() -> int:
            count = 0
            while not stop.is_set():
                async with aiohttp.ClientSession() as http:
                    try:
                        assert await Tenant(f"http://{address}", http).listed() == ["x.a", "x.b"]
                    except (aiohttp.ClientError, AssertionError, KeyError) as error:
                        failed.append(error)
                count += 1
            return count

        async with asyncio.TaskGroup() as group:
            calling = group.create_task(keep_calling())
            for size in (2, 3, 4):
                assert await it.change(listener(page_size=size))
            stop.set()
        assert (failed, it.here.gateway.bound["a"]) == ([], address)
        assert calling.result() >= 1
        assert len((await it.tenant("a").page())[0]) == 2


async def test_a_gateway_that_changes_keeps_what_was_delivered_and_takes_its_new_static_tools() -> None:
    async with (
        mcp_upstream("find") as upstream,
        changing(listener(gateway={"tools": [tool("s.old"), tool("s.both")]})) as it,
    ):
        await it.here.put("McpTool", "a/main/x.tool", tool("x.tool"))
        await it.here.put("McpTool", "a/main/s.both", tool("s.both", "delivered"))
        await it.here.put("McpOpenApiSource", "a/main/api", source("api", "one"))
        await it.here.put("McpDynamicServer", "a/main/up", server("up", upstream.url))
        await it.tenant("a").serves("s.old", "s.both", "x.tool", "api.one", "up.find")
        assert await it.change(listener(gateway={"tools": [tool("s.new"), tool("s.both")]}))
        await it.tenant("a").serves("s.new", "s.both", "x.tool", "api.one", "up.find")
        assert await it.tenant("a").text("s.both") == "delivered"
        await it.here.put("McpTool", "a/main/x.tool", tool("x.tool", "changed later"))
        assert await it.tenant("a").text("x.tool") == "changed later"
        upstream.tools = ("find", "more")
        await it.here.put("McpDynamicServer", "a/main/up", server("up", upstream.url, description="other"))
        await it.here.remove("McpOpenApiSource", "a/main/api")
        await it.tenant("a").serves("s.new", "s.both", "x.tool", "up.find", "up.more")


async def test_names_that_are_spelt_otherwise_from_now_on_are_refused_where_two_become_one() -> None:
    async with changing() as it:
        await it.here.put("McpTool", "a/main/x.same", tool("x.same"))
        await it.here.put("McpTool", "a/main/y.same", tool("y.same"))
        assert await it.change(listener(tool_names="bare"))
        assert await it.tenant("a").listed() == ["same"]
        nack = await it.here.plane.nacked("McpTool")
        assert "both be published as 'same'" in nack.reason
        (problem,) = await it.here.problems()
        assert problem["name"] in {"a/main/x.same", "a/main/y.same"}
        assert await it.change(listener())
        await it.complete()
        await it.here.published(lambda: len(it.here.gateway.catalogs[0].published.view.tools) == 2)
        assert await it.tenant("a").listed() == ["x.same", "y.same"]


async def test_static_sources_and_servers_come_and_go_with_the_config() -> None:
    async with mcp_upstream("find") as upstream, changing() as it:
        api = {"namespace": "api", "cluster": "echo", "spec": inline(document("one"))}
        both = {"open_api_tool_sources": [api], "dynamic_mcp_servers": [server("up", upstream.url)]}
        assert await it.change(listener(gateway=both))
        await it.tenant("a").serves("api.one", "up.find")
        assert await it.change(listener(gateway={"dynamic_mcp_servers": [server("up", upstream.url)]}))
        await it.tenant("a").serves("up.find")
        assert upstream.lists == 1
        assert await it.change(listener())
        await it.tenant("a").serves()
        assert it.here.gateway.freshness._followed == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: {"listeners": [listener(), listener()]}, "used more than once"),
        (lambda: {"listeners": [listener(mcp_gatewey={})]}, "unknown key"),
        (lambda: {"listeners": [listener(), listener("b", address="192.0.2.1:1")]}, "192.0.2.1:1: Cannot assign"),
        (lambda: {"clusters": [{"name": "c", "endpoints": ["https://h:1"], "tls": {"ca_file": "/none"}}]}, "'/none'"),
        (
            lambda: {"listeners": [listener(gateway={"tools": [tool("api.x")], "open_api_tool_sources": [
                {"namespace": "api", "cluster": "echo", "spec": inline(document("one"))}]})]},
            "has already taken",
        ),
        (lambda: {"mcp_servers": {"default": {"headers": {"x": {"file": "/none"}}}}}, "/none"),
    ],
)  # fmt: skip
async def test_a_config_with_mistakes_is_refused_whole_and_the_old_one_serves_on(change: Any, said: str) -> None:
    async with changing() as it:
        await it.here.put("McpTool", "a/main/x.tool", tool("x.tool"))
        before = it.here.gateway.tenants.listeners["a"]
        assert not await it.change(**change())
        assert it.here.gateway.tenants.listeners == {"a": before}
        await it.tenant("a").serves("x.tool")
        state = await it.ready()
        assert (state["config_generation"], state["ready"]) == (1, True)
        assert said in state["last_reload_error"]
        assert "arion_tds_config_refused 1.0" in await it.here.metrics()
        assert await it.change(listener(page_size=7))
        assert (await it.ready())["last_reload_error"] == ""


async def test_status_tells_of_a_config_that_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    async with changing() as it:

        async def status() -> str:
            assert await asyncio.to_thread(main, ["status", "--admin", it.here.gateway.admin]) == 0
            return capsys.readouterr().out

        assert "refused" not in await status()
        assert not await it.change(listeners=[listener(mcp_gatewey={})])
        assert "the config file is refused, generation 1 stays in use: listeners[0].mcp_gatewey" in await status()


async def test_clusters_and_what_may_be_read_and_the_log_change_and_the_rest_is_said_to_wait(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async with echoing() as other, changing() as it:
        await it.here.put(
            "McpTool", "a/main/x.tool", tool("x.tool", rest_backend={"method": "GET", "path": "/", "cluster": "more"})
        )
        assert '"more"' in (await it.tenant("a").call("x.tool"))["content"][0]["text"]
        schema = tmp_path / "schema.json"
        schema.write_text('{"type": "object"}')
        spec = tool("x.file", input_schema={"filename": str(schema)})
        await it.here.refused("McpTool", "a/main/x.file", spec, "does not allow")
        clusters = [*it.config["clusters"], {"name": "more", "endpoints": [other]}]
        admin, level = it.here.gateway.admin, logging.getLogger().level
        try:
            assert await it.change(
                clusters=clusters,
                data_sources={"files": [str(schema)]},
                log={"level": "error"},
                admin={"address": "127.0.0.2:0"},
                node={"id": "another"},
            )
            assert logging.getLogger().level == logging.ERROR
        finally:
            logging.getLogger().setLevel(level)
        assert not (await it.tenant("a").call("x.tool")).get("isError")
        await it.here.put("McpTool", "a/main/x.file", {**spec, "description": "again"})
        assert it.here.gateway.admin == admin
        assert (await it.here.admin("config_dump"))["config"]["node"]["id"] != "another"


async def test_what_takes_effect_at_the_next_start_only_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async with changing() as it:
        assert await it.change(admin={"address": "127.0.0.2:0"}, node={"id": "another"})
        said = {record.message.split(" ")[0] for record in caplog.records if "next start" in record.message}
        assert said == {"admin", "node"}


async def test_a_call_that_is_under_way_on_a_listener_that_goes_is_finished() -> None:
    release, reached = asyncio.Event(), asyncio.Event()

    async with changing(listener(), listener("b", drain_timeout="10s")) as it, waiting(reached, release) as slow:
        assert await it.change(clusters=[{"name": "slow", "endpoints": [slow]}])
        spec = tool("x.tool", rest_backend={"method": "GET", "path": "/", "cluster": "slow"})
        await it.here.put("McpTool", "b/main/x.tool", spec)
        async with asyncio.TaskGroup() as group:
            call = group.create_task(it.tenant("b").call("x.tool"))
            await reached.wait()
            assert await it.change(listener())
            assert not call.done()
            release.set()
        assert call.result()["content"][0]["text"] == "done"


@contextlib.asynccontextmanager
async def waiting(reached: asyncio.Event, release: asyncio.Event) -> AsyncIterator[str]:
    """A backend that answers when it is told to."""

    async def answer(_request: web.BaseRequest) -> web.Response:
        reached.set()
        await release.wait()
        return web.Response(text="done")

    async with serving(answer) as origin:
        yield origin


async def session(tenant: Tenant) -> dict[str, str]:
    """The headers of a handshake session's stream."""
    await tenant.initialize()
    assert tenant.session is not None
    return {"accept": "text/event-stream", "Mcp-Session-Id": tenant.session}


async def test_a_file_is_read_again_when_it_is_asked_for_and_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reloading, "INTERVAL", 0.02)
    path = tmp_path / "gateway.yaml"
    taken: asyncio.Queue[Config] = asyncio.Queue()
    watch = False

    def write(**more: Any) -> None:
        path.write_text(yaml.safe_dump({**settings("127.0.0.1:1", "http://127.0.0.1:1", [listener()]), **more}))

    write()
    made = Reloader(str(path), taken.put, lambda: watch)
    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
        run = group.create_task(made.run())
        await asyncio.sleep(0)
        made.ask()
        assert (await taken.get()).file.node.id == "arion-tds"
        write(node={"id": "two"})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await taken.get()
        watch = True
        assert (await taken.get()).file.node.id == "two"
        path.write_text("listeners: [")
        while not made.last_error:  # noqa: ASYNC110 - nobody is told of a refusal
            await asyncio.sleep(0.01)
        assert "not valid YAML" in made.last_error
        write(node={"id": "three"})
        assert (await taken.get()).file.node.id == "three"
        run.cancel()


async def test_a_gateway_told_to_stop_in_the_middle_of_a_change_ends_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached = asyncio.Event()

    async def stuck(*_: object) -> list[object]:
        reached.set()
        await asyncio.Event().wait()
        return []

    async with changing() as it:
        monkeypatch.setattr(Catalog, "succeed", stuck)
        changed = listener("a", gateway={"tools": [tool("s.new")]})
        changing_it = asyncio.create_task(it.change(changed, listener("b")))
        async with asyncio.timeout(BOUND):
            await reached.wait()
        changing_it.cancel()
        await asyncio.gather(changing_it, return_exceptions=True)
        await it.tenant("a").serves()
