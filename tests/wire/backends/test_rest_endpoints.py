"""Endpoints of a cluster that come, go, fall ill and answer badly, over real connections."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from aiohttp import web
from rest_upstreams import CONTEXT, LIMITS, Calls, Serve, Upstream

from arion_tds.backends.clusters import Clusters
from arion_tds.model.cluster import Cluster, HealthCheck, LbPolicy, Outlier
from arion_tds.model.http import HttpRequest, HttpResponse
from arion_tds.model.policy import DEFAULT_POLICY
from arion_tds.model.result import CallFailure

CHECK = HealthCheck(path="/up", interval=0.01, timeout=1.0, unhealthy_threshold=2, healthy_threshold=2, host="checked")


async def fine(_request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="fine")


async def bad(_request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(status=503)


def pushed(*endpoints: str, **more: object) -> dict[str, Cluster]:
    return {"c": Cluster(name="c", endpoints=endpoints, pushed=True, **more)}  # type: ignore[arg-type]


async def ask(clusters: Clusters) -> HttpResponse | CallFailure:
    async with asyncio.timeout(10):
        return await clusters.send("c", HttpRequest("GET", "/"), DEFAULT_POLICY, LIMITS, CONTEXT)


async def asked(clusters: Clusters, count: int) -> Counter[object]:
    answers = [await ask(clusters) for _ in range(count)]
    return Counter(one.status for one in answers)


async def until(clusters: Clusters, down: list[bool]) -> None:
    """Until the endpoints are as ill as that."""
    async with asyncio.timeout(10):
        while [one.down for one in clusters.status()[0].endpoints] != down:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.005)


async def test_an_endpoint_that_answers_5xx_again_and_again_is_passed_over(calls: Calls, serve: Serve) -> None:
    good, ill = await serve(fine), await serve(bad)
    await calls.clusters.replace(pushed(good.origin, ill.origin, outlier=Outlier(consecutive_5xx=3)))
    assert await asked(calls.clusters, 6) == {200: 3, 503: 3}
    assert await asked(calls.clusters, 10) == {200: 10}
    assert [one.down for one in calls.clusters.status()[0].endpoints] == [False, True]


async def test_health_checks_find_the_ill_before_a_call_does_and_see_it_recover(calls: Calls, serve: Serve) -> None:
    well = True

    async def moody(request: web.BaseRequest) -> web.StreamResponse:
        assert request.path == "/up"
        assert request.headers["host"] == "checked"
        return web.Response(status=200 if well else 500)

    good, ill = await serve(fine), await serve(moody)
    await calls.clusters.replace(pushed(good.origin, ill.origin, health_check=CHECK))
    well = False
    await until(calls.clusters, [False, True])
    assert await asked(calls.clusters, 6) == {200: 6}
    assert "health check: it answered 500" in (calls.clusters.status()[0].endpoints[1].last_error or "")
    well = True
    await until(calls.clusters, [False, False])


async def test_where_all_are_ill_any_is_better_than_none(calls: Calls, serve: Serve) -> None:
    async def only_calls(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=500 if request.path == "/up" else 200)

    upstreams = [await serve(only_calls) for _ in range(2)]
    await calls.clusters.replace(pushed(*(one.origin for one in upstreams), health_check=CHECK))
    await until(calls.clusters, [True, True])
    assert await asked(calls.clusters, 4) == {200: 4}


async def test_endpoints_change_without_a_connection_being_dropped(calls: Calls, serve: Serve) -> None:
    stays, goes, comes = [await serve(fine) for _ in range(3)]
    await calls.clusters.replace(pushed(stays.origin, goes.origin))
    await asked(calls.clusters, 4)
    for origins in ((stays, comes), (stays,), (), (stays, comes, goes)):
        await calls.clusters.replace(pushed(*(one.origin for one in origins)))
        if origins:
            assert await asked(calls.clusters, 6) == {200: 6}
    assert len(stays.connections) == 1
    assert calls.clusters.status()[0].calls == 4 + 18


async def test_a_pushed_cluster_without_endpoints_says_so(calls: Calls) -> None:
    await calls.clusters.replace(pushed())
    answer = await ask(calls.clusters)
    assert isinstance(answer, CallFailure)
    assert answer.message == 'cluster "c": the cluster has no endpoints'
    with pytest.raises(ValueError, match="has no endpoints"):
        await calls.clusters.replace({"c": Cluster(name="c", endpoints=())})


async def test_least_request_spares_the_busy_one(calls: Calls, serve: Serve) -> None:
    release, held = asyncio.Event(), asyncio.Event()

    async def slow(_request: web.BaseRequest) -> web.StreamResponse:
        held.set()
        await release.wait()
        return web.Response(text="slow")

    busy, free = await serve(slow), await serve(fine)
    dice = iter([0.0] * 100)
    await calls.clusters.close()
    calls.clusters = Clusters(
        pushed(busy.origin, free.origin, lb_policy=LbPolicy.LEAST_REQUEST), rng=lambda: next(dice), sleep=asyncio.sleep
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(ask(calls.clusters))
        await held.wait()
        assert await asked(calls.clusters, 5) == {200: 5}
        release.set()
    assert (len(busy.seen), len(free.seen)) == (1, 5)


async def test_checks_end_with_their_cluster(calls: Calls, serve: Serve) -> None:
    upstream: Upstream = await serve(fine)
    before = len(asyncio.all_tasks())
    await calls.clusters.replace(pushed(upstream.origin, health_check=CHECK))
    assert len(asyncio.all_tasks()) == before + 1
    await calls.clusters.replace({})
    async with asyncio.timeout(5):
        while len(asyncio.all_tasks()) > before:  # noqa: ASYNC110 - a task that ends tells nobody
            await asyncio.sleep(0.005)
