"""Scripted servers of either era, and the client that is tested."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from mcp_scripted import Scripted

from arion_tds.backends.mcp.address import DEFAULT_ADDRESSES
from arion_tds.backends.mcp.connection import Upstream
from arion_tds.backends.mcp.http import Channel
from arion_tds.backends.mcp.settings import UpstreamSettings
from arion_tds.backends.mcp.streamable import HttpLine

Connect = Callable[..., Upstream]


@pytest.fixture
async def legacy() -> AsyncIterator[Scripted]:
    async with Scripted("legacy").serving() as server:
        yield server


@pytest.fixture
async def modern() -> AsyncIterator[Scripted]:
    async with Scripted("modern").serving() as server:
        yield server


@pytest.fixture(params=["legacy", "modern"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Scripted]:
    async with Scripted(request.param).serving() as made:
        yield made


@pytest.fixture
async def connect(
    request: pytest.FixtureRequest,
) -> AsyncIterator[Connect]:
    """`connect(server_or_url, **settings)`: an Upstream that is closed before its server is."""
    for name in ("legacy", "modern", "server"):
        if name in request.fixturenames:
            request.getfixturevalue(name)
    async with contextlib.AsyncExitStack() as stack:

        def made(to: Scripted | str, **settings: object) -> Upstream:
            url = to if isinstance(to, str) else to.url
            given = UpstreamSettings(**settings)  # type: ignore[arg-type]
            channel = Channel(url, given, DEFAULT_ADDRESSES, None)
            upstream = Upstream(url, given, clock=lambda: 100.0, line=lambda _: HttpLine(channel, given.headers))
            stack.push_async_callback(upstream.close)
            return upstream

        yield made
