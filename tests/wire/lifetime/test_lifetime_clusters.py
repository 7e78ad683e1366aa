"""Clusters and endpoints that the control plane pushes: a new backend needs no restart."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from gateway_house import House, Spec, Tenant, echoing, house, listener, settings, tool
from test_lifetime_coldstart import lives

from arion_tds.config import judging

EDS = {"eds_config": {"ads": {}}}


def place(origin: str) -> Spec:
    host, _, port = origin.removeprefix("http://").rpartition(":")
    return {"endpoint": {"address": {"socket_address": {"address": host, "port_value": int(port)}}}}


def load(name: str, *origins: str) -> Spec:
    return {"cluster_name": name, "endpoints": [{"lb_endpoints": [place(origin) for origin in origins]}]}


def static(name: str, *origins: str, **more: Any) -> Spec:
    return {"name": name, "type": "STATIC", "load_assignment": load(name, *origins), **more}


@contextlib.asynccontextmanager
async def pushing(**more: Any) -> AsyncIterator[House]:
    async with house(control_plane={"clusters": True}, **more) as here:
        yield here


async def calls(tenant: Tenant, name: str) -> str:
    """What came of a call: the path that a backend saw, or the error."""
    result = await tenant.call(name)
    if result.get("isError"):
        return str(result["structuredContent"]["error"]["message"])
    return str(result["content"][0]["text"])


def on(cluster: str, name: str = "x.tool") -> Spec:
    return tool(name, rest_backend={"method": "GET", "path": "/", "cluster": cluster})


async def test_a_new_backend_needs_no_restart_and_one_that_goes_is_named() -> None:
    async with echoing() as backend, pushing() as here:
        await here.put("McpTool", "a/main/x.tool", on("weather"))
        assert 'there is no cluster "weather"' in await calls(here.a, "x.tool")
        await here.put("Cluster", "weather", static("weather", backend))
        assert '"path": "/"' in await calls(here.a, "x.tool")
        await here.remove("Cluster", "weather")
        assert 'there is no cluster "weather"' in await calls(here.a, "x.tool")


async def test_endpoints_come_apart_from_their_cluster_and_change_under_it() -> None:
    async with echoing() as one, echoing() as other, pushing() as here:
        await here.put("McpTool", "a/main/x.tool", on("weather"))
        await here.put("Cluster", "weather", {"name": "weather", "type": "EDS", "eds_cluster_config": EDS})
        assert "has no endpoints" in await calls(here.a, "x.tool")
        await here.put("ClusterLoadAssignment", "weather", load("weather", one))
        assert '"path": "/"' in await calls(here.a, "x.tool")
        await here.put("ClusterLoadAssignment", "weather", load("weather", other))
        assert '"path": "/"' in await calls(here.a, "x.tool")
        (status,) = [found for found in (await here.admin("config_dump"))["clusters"] if found["name"] == "weather"]
        assert [found["origin"] for found in status["endpoints"]] == [other]
        assert status["calls"] == 3
        await here.remove("ClusterLoadAssignment", "weather")
        assert "has no endpoints" in await calls(here.a, "x.tool")


async def test_only_endpoints_that_a_cluster_names_are_asked_for() -> None:
    async with echoing() as backend, pushing() as here:
        await here.plane.put("ClusterLoadAssignment", "others", load("others", backend))
        await here.plane.put("ClusterLoadAssignment", "eu/weather", load("eu/weather", backend))
        spec = {"name": "weather", "type": "EDS", "eds_cluster_config": {**EDS, "service_name": "eu/weather"}}
        await here.put("Cluster", "weather", spec)
        await here.plane.acked("ClusterLoadAssignment", "eu/weather")
        first, *_ = here.plane.requests("ClusterLoadAssignment")
        assert list(first.resource_names_subscribe) == ["eu/weather"]
        assert here.gateway._cds is not None
        assert set(here.gateway._cds._endpoints) == {"eu/weather"}
        await here.put("Cluster", "weather", static("weather", backend))
        assert here.gateway._cds._endpoints == {}


async def test_the_configs_cluster_wins_and_the_nack_names_it() -> None:
    async with echoing() as backend, pushing() as here:
        nack = await here.refused("Cluster", "echo", static("echo", backend), "the gateway's config has a cluster")
        assert nack.names == ("echo",)
        await here.put("McpTool", "a/main/x.tool", tool("x.tool"))
        assert '"path": "/x/tool"' in await calls(here.a, "x.tool")


async def test_what_cannot_be_served_is_refused_and_what_served_before_still_does() -> None:
    async with echoing() as backend, pushing() as here:
        await here.put("McpTool", "a/main/x.tool", on("weather"))
        await here.put("Cluster", "weather", static("weather", backend))
        await here.refused("Cluster", "weather", static("weather", backend, lb_policy="RING_HASH"), "RING_HASH")
        assert '"path": "/"' in await calls(here.a, "x.tool")
        tls = {
            "name": "tls",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
                "sni": "h",
                "common_tls_context": {
                    "validation_context": {"trusted_ca": {"inline_string": "-----BEGIN CERTIFICATE-----\nnone"}}
                },
            },
        }
        await here.refused("Cluster", "weather", static("weather", backend, transport_socket=tls), "cannot be used")
        assert '"path": "/"' in await calls(here.a, "x.tool")
        assert (await here.metrics()).count('arion_tds_resources_total{type="Cluster",verdict="rejected"} 2.0') == 1


async def test_without_the_setting_nobody_asks_for_clusters() -> None:
    async with house() as here:
        await here.plane.put("Cluster", "weather", static("weather", "http://127.0.0.1:1"))
        await here.put("McpTool", "a/main/x.tool", on("weather"))
        assert here.plane.requests("Cluster") == []
        assert 'there is no cluster "weather"' in await calls(here.a, "x.tool")


async def test_clusters_survive_a_cut_and_are_claimed_on_the_next_stream() -> None:
    async with echoing() as backend, pushing() as here:
        version = await here.put("Cluster", "weather", static("weather", backend))
        await here.put("McpTool", "a/main/x.tool", on("weather"))
        await here.cut()
        assert here.plane.requests("Cluster")[-1].initial_resource_versions in ({"weather": version}, {})
        claims = [r.initial_resource_versions for r in here.plane.requests("Cluster") if r.initial_resource_versions]
        assert claims == [{"weather": version}]
        assert '"path": "/"' in await calls(here.a, "x.tool")


async def test_a_reload_that_takes_a_name_puts_the_pushed_cluster_aside_and_one_that_frees_it_brings_it_back() -> None:
    async with echoing() as backend, pushing() as here:
        await here.put("McpTool", "a/main/x.tool", on("weather"))
        await here.put("Cluster", "weather", static("weather", backend))
        base = settings(here.plane.address, backend, (listener(),), control_plane={"clusters": True})

        async def change(*clusters: Spec) -> None:
            judged = judging.judge({**base, "clusters": [*base["clusters"], *clusters]})
            assert await here.gateway.reloader.take(lambda: judged)

        await change({"name": "weather", "endpoints": ["http://127.0.0.1:1"]})
        assert "no connection" in await calls(here.a, "x.tool")
        await here.refused("Cluster", "weather", static("weather", backend, connect_timeout="1s"), "which wins")
        await change()
        await here.plane.acked("Cluster", "weather")
        assert '"path": "/"' in await calls(here.a, "x.tool")
        assert await here.problems() == []


async def test_a_restarted_gateway_has_its_pushed_clusters_before_the_control_plane_is_back(tmp_path: Path) -> None:
    async with lives(tmp_path) as here, echoing() as backend:
        await here.plane.put("McpTool", "a/main/x.tool", on("weather"))
        await here.plane.put("Cluster", "weather", {"name": "weather", "type": "EDS", "eds_cluster_config": EDS})
        await here.plane.put("ClusterLoadAssignment", "weather", load("weather", backend))
        plane: Spec = {"control_plane": {"clusters": True}}
        async with here.begins(**plane) as tenant:
            assert '"path": "/"' in await calls(tenant, "x.tool")
        await here.plane.stop()
        async with here.begins(ready=False, **plane) as tenant:
            assert '"path": "/"' in await calls(tenant, "x.tool")
        await here.plane.restart()
        here.plane.remove("Cluster", "weather")
        async with here.begins(**plane) as tenant:
            assert 'there is no cluster "weather"' in await calls(tenant, "x.tool")


@pytest.mark.parametrize("kind", ["Cluster", "ClusterLoadAssignment"])
async def test_bytes_that_are_no_cluster_are_a_nack(kind: str) -> None:
    async with pushing() as here, aiohttp.ClientSession():
        if kind == "ClusterLoadAssignment":
            await here.put("Cluster", "weather", {"name": "weather", "type": "EDS", "eds_cluster_config": EDS})
        url = {"Cluster": "cluster.v3.Cluster", "ClusterLoadAssignment": "endpoint.v3.ClusterLoadAssignment"}[kind]
        here.plane.put_raw(f"type.googleapis.com/envoy.config.{url}", "weather", "1", b"\xff\xff")
        nack = await here.plane.nacked(kind, "weather")
        assert f"weather: cannot be decoded as {kind}" in nack.reason
