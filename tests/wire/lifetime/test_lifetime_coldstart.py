"""A gateway that comes back, with its control plane or without it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
from gateway_house import BOUND, Spec, Tenant, echoing, listener, settings, tool
from gateway_upstreams import mcp_upstream, server, source

from arion_tds import app
from arion_tds.cache.store import FILE
from arion_tds.config import judging
from arion_tds.model.delivery import Kind
from control_plane_example.mock import MockControlPlane


class Lives:
    """One gateway after another on the same directory, with one control plane and one backend."""

    def __init__(self, plane: MockControlPlane, backend: str, cache: Path, http: aiohttp.ClientSession) -> None:
        self.plane = plane
        self.backend = backend
        self.cache = cache
        self.http = http
        self.gateway: app.Gateway | None = None

    @contextlib.asynccontextmanager
    async def begins(self, *listeners: Spec, ready: bool = True, **more: Any) -> AsyncIterator[Tenant]:
        """A gateway; `ready`: once the control plane has said everything."""
        config = settings(
            self.plane.address, self.backend, listeners or (listener(),), cache={"directory": str(self.cache)}, **more
        )
        async with app.running(judging.judge(config)) as gateway:
            self.gateway = gateway
            if ready:
                await self.agreed()
            yield Tenant(f"http://{gateway.bound['a']}", self.http)

    async def agreed(self) -> None:
        """Until the control plane has answered for every type."""
        assert self.gateway is not None
        assert self.gateway.ads is not None
        async with asyncio.timeout(BOUND):
            await self.gateway.ads.wait_complete()

    async def page(self, name: str) -> tuple[int, Spec]:
        """A page of the operator's listener."""
        assert self.gateway is not None
        async with self.http.get(f"http://{self.gateway.admin}/{name}") as response:
            return response.status, await response.json()

    async def until(self, condition: Any) -> None:
        """Until a publication after which the condition holds."""
        assert self.gateway is not None
        (catalog,) = self.gateway.catalogs
        held = asyncio.Event()
        stop = catalog.published.listen(lambda _old, _new: held.set() if condition() else None)
        async with asyncio.timeout(BOUND):
            if not condition():
                await held.wait()
        stop()

    def names(self) -> set[str]:
        """What is served."""
        assert self.gateway is not None
        return set(self.gateway.catalogs[0].published.view.tools)


@contextlib.asynccontextmanager
async def lives(cache: Path) -> AsyncIterator[Lives]:
    async with MockControlPlane() as plane, echoing() as backend, aiohttp.ClientSession() as http:
        yield Lives(plane, backend, cache, http)


async def test_without_its_control_plane_it_serves_what_it_served_and_says_how_old_that_is(tmp_path: Path) -> None:
    async with lives(tmp_path) as here, mcp_upstream("find", "fetch", "drop") as upstream:
        await here.plane.put("McpTool", "a/main/x.tool", tool("x.tool"))
        await here.plane.put("McpOpenApiSource", "a/main/api", source("api", "one", "two"))
        await here.plane.put("McpDynamicServer", "a/main/up", server("up", upstream.url))
        served = {"x.tool", "api.one", "api.two", "up.find", "up.fetch", "up.drop"}
        async with here.begins() as tenant:
            assert set(await tenant.listed()) == served
            state = (await here.page("readyz"))[1]["cache"]
            assert (state["serving_from_disk"], state["resources_restored"]) == (False, 0)
        await here.plane.stop()
        async with here.begins(ready=False) as tenant:
            await here.until(lambda: here.names() == served)
            await tenant.serves(*served)
            status, state = await here.page("readyz")
            assert (status, state["ready"], state["control_plane"]["connected"]) == (200, True, False)
            assert state["cache"]["serving_from_disk"] is True
            assert state["cache"]["resources_restored"] == 3
            assert 0 <= state["cache"]["age_seconds"] < 30
            async with here.http.get(f"http://{here.gateway.admin}/metrics") as page:  # type: ignore[union-attr]
                assert "arion_tds_cache_age_seconds -1.0" not in await page.text()


async def test_the_control_plane_is_told_what_is_served_and_sends_the_difference_alone(tmp_path: Path) -> None:
    async with lives(tmp_path) as here:
        for name in ("x.same", "x.changed", "x.gone"):
            await here.plane.put("McpTool", f"a/main/{name}", tool(name))
        async with here.begins():
            pass
        same = here.plane.version("McpTool", "a/main/x.same")
        await here.plane.put("McpTool", "a/main/x.changed", tool("x.changed", "another text"))
        await here.plane.put("McpTool", "a/main/x.new", tool("x.new"))
        here.plane.remove("McpTool", "a/main/x.gone")
        async with here.begins() as tenant:
            # What is gone is said in a response of its own, after the first.
            await here.until(lambda: here.names() == {"x.same", "x.changed", "x.new"})
            await tenant.serves("x.same", "x.changed", "x.new")
            assert await tenant.text("x.changed") == "another text"
            claimed = [
                r.initial_resource_versions for r in here.plane.requests("McpTool") if r.initial_resource_versions
            ]
            assert claimed[-1].keys() == {"a/main/x.same", "a/main/x.changed", "a/main/x.gone"}
            assert claimed[-1]["a/main/x.same"] == same
            latest = max(stream for stream, _ in here.plane._answers)

            def sent() -> set[str]:
                answers = [one for stream, one in here.plane._answers if stream == latest]
                return {name for one in answers if one.type_url == Kind.TOOL.value for name in one.versions}

            await here.plane._await(
                lambda: sent() == {"a/main/x.changed", "a/main/x.new"} or None, BOUND, "the difference"
            )
            assert (await here.page("readyz"))[1]["cache"]["serving_from_disk"] is False


async def test_a_server_that_does_not_answer_is_listed_all_the_same_and_asked_as_soon_as_it_does(
    tmp_path: Path,
) -> None:
    async with lives(tmp_path) as here, mcp_upstream("find") as upstream:
        await here.plane.put("McpDynamicServer", "a/main/up", server("up", upstream.url))
        async with here.begins():
            assert here.names() == {"up.find"}
        await here.plane.stop()
        upstream.status = 503
        async with here.begins(ready=False) as tenant:
            assert await tenant.listed() == ["up.find"]
            upstream.status, upstream.tools = 200, ("find", "fetch")
            await here.until(lambda: here.names() == {"up.find", "up.fetch"})
        async with here.begins(ready=False) as tenant:
            assert await tenant.listed() == ["up.fetch", "up.find"]


async def test_a_static_server_that_does_not_answer_is_listed_all_the_same(tmp_path: Path) -> None:
    async with lives(tmp_path) as here, mcp_upstream("find") as upstream:
        static = listener(gateway={"dynamic_mcp_servers": [server("up", upstream.url)]})
        async with here.begins(static):
            assert here.names() == {"up.find"}
        upstream.status = 503
        async with here.begins(static) as tenant:
            assert await tenant.listed() == ["up.find"]


async def test_a_source_that_was_withdrawn_meanwhile_does_not_live_on(tmp_path: Path) -> None:
    async with lives(tmp_path) as here:
        await here.plane.put("McpOpenApiSource", "a/main/api", source("api", "one"))
        async with here.begins():
            assert here.names() == {"api.one"}
        here.plane.remove("McpOpenApiSource", "a/main/api")
        async with here.begins() as tenant:
            await tenant.serves()
        await here.plane.stop()
        async with here.begins(ready=False) as tenant:
            await tenant.serves()


async def test_what_was_rejected_is_not_kept_and_what_served_in_its_place_is(tmp_path: Path) -> None:
    async with lives(tmp_path) as here:
        await here.plane.put("McpTool", "a/main/x.tool", tool("x.tool", "good"))
        async with here.begins():
            await here.plane.put("McpTool", "a/main/x.tool", tool("x.tool", rest_backend=None))
            await here.plane.nacked("McpTool", "a/main/x.tool")
        await here.plane.stop()
        async with here.begins(ready=False) as tenant:
            assert await tenant.text("x.tool") == "good"


async def test_a_damaged_file_is_set_aside_and_the_control_plane_asked_for_everything(tmp_path: Path) -> None:
    async with lives(tmp_path) as here:
        await here.plane.put("McpTool", "a/main/x.tool", tool("x.tool"))
        async with here.begins():
            pass
        (tmp_path / FILE).write_bytes(b"\xa5" * 5000)
        async with here.begins() as tenant:
            await tenant.serves("x.tool")
            assert (tmp_path / f"{FILE}.damaged-1").exists()
            assert "damaged-1" in (await here.page("readyz"))[1]["cache"]["last_error"]
        await here.plane.stop()
        async with here.begins(ready=False) as tenant:
            await tenant.serves("x.tool")


async def test_a_scope_without_kept_content_is_not_ready_before_its_control_plane_answers(tmp_path: Path) -> None:
    async with lives(tmp_path) as here:
        await here.plane.put("McpTool", "a/main/x.tool", tool("x.tool"))
        async with here.begins():
            pass
        await here.plane.stop()
        async with here.begins(listener(), listener("b"), ready=False) as tenant:
            assert await tenant.listed() == ["x.tool"]
            status, state = await here.page("readyz")
            assert (status, state["ready"]) == (503, False)


async def test_what_was_restored_does_not_stay_in_memory_nor_is_it_written_again(tmp_path: Path) -> None:
    async with lives(tmp_path) as here:
        await here.plane.put("McpTool", "a/main/x.tool", tool("x.tool"))
        async with here.begins():
            pass
        async with here.begins():
            assert here.gateway is not None
            assert here.gateway.coldstart is not None
            assert here.gateway.coldstart._restored.kept.resources == {}
            assert here.gateway.cache is not None
            assert here.gateway.cache.status().pending_bytes == 0
