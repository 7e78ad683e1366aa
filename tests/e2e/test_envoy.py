"""Envoy as a client of the example control plane: a stranger's delta xDS against ours, for `*` and for globs."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from e2e_envoy import MODES, Envoy, Naming, Spec, cluster, endpoints, installed, listener
from e2e_processes import eventually, free_ports

from control_plane_example.mock import MockControlPlane

pytest_plugins = ["control_plane_example.pytest_plugin"]
pytestmark = pytest.mark.e2e

CLUSTERS, LISTENERS = "dynamic_active_clusters", "dynamic_listeners"
NOWHERE = 9


@pytest.fixture(scope="session")
def commands() -> Path:
    return installed()


@pytest.fixture(params=MODES)
def naming(request: pytest.FixtureRequest) -> Naming:
    return Naming(request.param)


@pytest.fixture
def envoy(tmp_path: Path, commands: Path, control_plane: MockControlPlane, naming: Naming) -> Iterator[Envoy]:
    started = Envoy(tmp_path, commands, control_plane.address, naming)
    yield started
    started.process.kill()


@pytest.fixture
async def backends() -> AsyncIterator[tuple[int, int]]:
    """Ports of two services that say which they are."""
    runners: list[web.AppRunner] = []
    ports: list[int] = []
    for word in ("first", "second"):
        app = web.Application()
        app.router.add_get("/", functools.partial(_say, word))
        runners.append(web.AppRunner(app))
        await runners[-1].setup()
        await web.TCPSite(runners[-1], "127.0.0.1", 0).start()
        ports.append(runners[-1].addresses[0][1])
    yield ports[0], ports[1]
    for runner in runners:
        await runner.cleanup()


async def _say(word: str, _: web.Request) -> web.Response:
    return web.Response(text=word)


async def says(port: int, word: str) -> None:
    """Wait until a request through Envoy is answered by that service."""

    async def look() -> None:
        async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}/") as response:
            assert await response.text() == word

    await eventually(look)


def told(plane: MockControlPlane, kind: str) -> Spec:
    """What the one stream's status says of the kind."""
    (stream,) = plane.status()["streams"]
    assert stream["node"] == "envoy-1"
    found: Spec = stream["types"][kind]
    return found


async def test_clusters_endpoints_and_listeners_are_acked_and_carry_requests(
    control_plane: MockControlPlane, envoy: Envoy, naming: Naming, backends: tuple[int, int]
) -> None:
    first, second = backends
    (port,) = free_ports(1)
    service, front = naming.cluster("service"), naming.listener("front")
    await control_plane.put("Listener", front, listener(front, port, service))
    await control_plane.put("ClusterLoadAssignment", "backends", endpoints("backends", first))
    await control_plane.put("Cluster", service, cluster(service))
    for kind, name in (("Cluster", service), ("ClusterLoadAssignment", "backends"), ("Listener", front)):
        await control_plane.acked(kind, name)
    await says(port, "first")

    # Endpoints alone, then the cluster: each is acknowledged under its own nonce, and taken.
    await control_plane.put("ClusterLoadAssignment", "backends", endpoints("backends", second))
    await control_plane.acked("ClusterLoadAssignment", "backends")
    await says(port, "second")
    await control_plane.put("Cluster", service, cluster(service, first, connect_timeout="2s"))
    await control_plane.acked("Cluster", service)
    await says(port, "first")

    for kind in ("Cluster", "ClusterLoadAssignment", "Listener"):
        assert told(control_plane, kind)["nacked"] == 0
        nonces = [answer.nonce for answer in control_plane.answers(kind)]
        assert len(set(nonces)) == len(nonces) == told(control_plane, kind)["acked"]
    asked = "*" if naming.wild else naming.cluster("*")
    assert told(control_plane, "Cluster")["subscribed"] == [asked]
    assert told(control_plane, "ClusterLoadAssignment")["subscribed"] in (["backends"], [])


async def test_what_is_removed_is_gone_and_what_is_beside_it_stays(
    control_plane: MockControlPlane, envoy: Envoy, naming: Naming
) -> None:
    (port,) = free_ports(1)
    one, two, front = naming.cluster("one"), naming.cluster("two"), naming.listener("front")
    for name in (one, two):
        await control_plane.put("Cluster", name, cluster(name, NOWHERE))
    await control_plane.put("Listener", front, listener(front, port, one))
    await control_plane.acked("Listener", front)
    await envoy.serves(CLUSTERS, one, two)
    await envoy.serves(LISTENERS, front)

    assert control_plane.remove("Cluster", two)
    assert control_plane.remove("Listener", front)
    await control_plane.acked_removal("Cluster", two)
    await control_plane.acked_removal("Listener", front)
    await envoy.serves(CLUSTERS, one)
    await envoy.serves(LISTENERS)


async def test_a_bad_cluster_is_refused_by_name_and_the_status_says_why(
    control_plane: MockControlPlane, envoy: Envoy, naming: Naming
) -> None:
    good, bad = naming.cluster("good"), naming.cluster("bad")
    await control_plane.put("Cluster", good, cluster(good, NOWHERE))
    await control_plane.acked("Cluster", good)

    control_plane.hold()  # so that both travel in one response
    await control_plane.put("Cluster", good, cluster(good, NOWHERE, connect_timeout="2s"))
    await control_plane.put("Cluster", bad, cluster(bad, NOWHERE, lb_policy="CLUSTER_PROVIDED"))
    control_plane.release()
    nack = await control_plane.nacked("Cluster", bad)
    assert "cluster provided LB specified" in nack.reason
    assert nack.names == (bad,)
    (shown,) = told(control_plane, "Cluster")["nacks"]
    assert shown == {"nonce": nack.nonce, "reason": nack.reason, "names": [bad]}
    serving = await envoy.serves(CLUSTERS, good)
    assert serving[good]["connect_timeout"] == "2s"

    version = await control_plane.put("Cluster", bad, cluster(bad, NOWHERE))
    await control_plane.acked("Cluster", bad, version)
    await envoy.serves(CLUSTERS, good, bad)


async def test_a_restart_is_followed_by_what_differs(
    control_plane: MockControlPlane, envoy: Envoy, naming: Naming
) -> None:
    one, two, three = (naming.cluster(name) for name in ("one", "two", "three"))
    before = {name: await control_plane.put("Cluster", name, cluster(name, NOWHERE)) for name in (one, two, three)}
    for name in before:
        await control_plane.acked("Cluster", name)
    await envoy.serves(CLUSTERS, one, two, three)
    known, heard = len(control_plane.requests("Cluster")), len(control_plane.answers("Cluster"))

    control_plane.hold()
    changed = await control_plane.put("Cluster", one, cluster(one, NOWHERE, connect_timeout="2s"))
    assert control_plane.remove("Cluster", two)
    await control_plane.restart()
    await control_plane.connected(timeout=30)
    control_plane.release()
    await control_plane.acked("Cluster", one, changed)
    hello = control_plane.requests("Cluster")[known]
    if naming.wild:
        assert hello.initial_resource_versions == before
        await control_plane.acked_removal("Cluster", two)
        answered = control_plane.answers("Cluster")[heard:]
        assert [dict(answer.versions) for answer in answered] == [{one: changed}, {}]
        assert [answer.removed for answer in answered] == [(), (two,)]
        await envoy.serves(CLUSTERS, one, three)
    else:
        # For a glob Envoy claims nothing, so it is sent everything, and cannot be told of what went meanwhile.
        assert hello.initial_resource_versions == {}
        await control_plane.acked("Cluster", three)
        assert (await envoy.serves(CLUSTERS, one, two, three))[one]["connect_timeout"] == "2s"
