"""Replicas behind a load balancer that keeps nobody where they were: one service to clients of both eras."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from e2e_replicas import ERAS, LEGACY, NAMES, Client, Replicas, Start, replicas, told

from control_plane_example.mock import MockControlPlane

pytest_plugins = ["control_plane_example.pytest_plugin"]
pytestmark = pytest.mark.e2e

CLIENTS = 8
CALLS = 40
BOUND = 60


@pytest.fixture
async def three(gateway: Start, control_plane: MockControlPlane, tmp_path: Path) -> AsyncIterator[Replicas]:
    async with replicas(gateway, control_plane, tmp_path) as running:
        yield running


async def test_each_serves_whoever_comes_and_tells_the_streams_that_it_got(three: Replicas) -> None:
    for era in ERAS:
        before = await three.metric("arion_tds_calls_total")
        for _ in range(2 * len(NAMES)):
            await three.client.call(era)
        after = await three.metric("arion_tds_calls_total")
        assert {name: after[name] - before[name] for name in NAMES} == dict.fromkeys(NAMES, 2)
    async with contextlib.AsyncExitStack() as stack, asyncio.timeout(BOUND):
        streams = [await stack.enter_async_context(three.client.stream(era)) for era in ERAS for _ in range(len(NAMES))]
        assert await three.metric("arion_tds_streams") == dict.fromkeys(NAMES, len(ERAS))
        listening = [asyncio.create_task(told(stream)) for stream in streams]
        await three.push("second")
        assert all(await asyncio.gather(*listening))
    for era in ERAS:
        for _ in NAMES:
            (tool,) = (await three.client.ask(era, "tools/list"))["tools"]
            assert tool["description"] == "second"


async def test_one_is_killed_under_load_and_only_what_it_had_in_hand_is_lost(three: Replicas) -> None:
    done = 0
    lost: list[bool] = []  # of each failed call: whether the replica had gone before it began
    half, gone = asyncio.Event(), asyncio.Event()

    async def drive(era: str) -> None:
        nonlocal done
        for _ in range(CALLS):
            late = gone.is_set()
            try:
                await three.client.call(era)
                done += 1
            except aiohttp.ClientError:
                lost.append(late)
            if done >= CLIENTS * CALLS // 3:
                half.set()

    async with contextlib.AsyncExitStack() as stack, asyncio.timeout(BOUND):
        clients = [Client(three.client.url, three.client.http) for _ in NAMES]
        for client in clients:
            await client.initialize()
        streams = [await stack.enter_async_context(client.stream(LEGACY)) for client in clients]
        listening = [asyncio.create_task(told(stream)) for stream in streams]
        async with asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                group.create_task(drive(ERAS[number % len(ERAS)]))
            await half.wait()
            await three.kill("two")
            gone.set()
        assert not any(lost)
        assert len(lost) <= CLIENTS
        assert done == CLIENTS * CALLS - len(lost)

        # Its stream is opened again, with the same session, and is somebody else's.
        ended, _ = await asyncio.wait(listening, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result() for task in ended] == [False]
        (which,) = [number for number, task in enumerate(listening) if task in ended]
        again = await stack.enter_async_context(clients[which].stream(LEGACY))
        assert again.status == 200
        listening[which] = asyncio.create_task(told(again))
        await three.push("second")
        assert all(await asyncio.gather(*listening))
