"""A plain client for every test here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import pytest
from plain_client import Client


@pytest.fixture
async def dial() -> AsyncIterator[Callable[..., Awaitable[Client]]]:
    """Opens streams to an address; all are closed at the end."""
    clients: list[Client] = []

    async def open_stream(address: str, options: Iterable[tuple[str, int]] = ()) -> Client:
        clients.append(Client(address, options))
        return clients[-1]

    yield open_stream
    for client in clients:
        await client.close()
