"""Clients with short times, against servers that the tests script. Every wait is bounded by the test's own timeout."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from xds_peer import Server
from xds_side import Handler, Start

from arion_tds.model.delivery import Delivery, DeliveryVerdict
from arion_tds.xds.stream import AdsClient, AdsSettings, Observer


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as made:
        yield made


@pytest.fixture
async def handler() -> Handler:
    return Handler()


@pytest.fixture
async def start(server: Server, handler: Handler) -> AsyncIterator[Start]:
    """Starts a client against the server (or `address`); it runs until the test is over."""
    tasks: list[asyncio.Task[object]] = []

    def start(
        scopes: tuple[str, ...] = ("s/m",),
        *,
        address: str = "",
        apply: Callable[[Delivery], Awaitable[DeliveryVerdict]] | None = None,
        observer: Observer | None = None,
        **settings: object,
    ) -> AdsClient:
        quick: dict[str, object] = {"backoff_base": 0.02, "backoff_max": 0.1, **settings}
        client = AdsClient(
            AdsSettings(address or server.address, "node", **quick),  # type: ignore[arg-type]
            scopes,
            apply or handler,
            clock=time.monotonic,
            rng=random.Random(7),
            observer=observer,
        )
        tasks.append(asyncio.get_running_loop().create_task(client.run()))
        return client

    yield start
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(result, asyncio.CancelledError), result
