"""Fixtures for integration tests of gateways and control planes.

    pytest_plugins = ["control_plane_example.pytest_plugin"]

`control_plane`  a MockControlPlane on a free port of 127.0.0.1.
`gateway`        starts real gateways as processes: `await gateway(config)` writes the config to a file, runs
                 `python -m arion_tds serve -c FILE`, waits until the admin listener says ready, returns a Gateway.
                 What the config leaves out is filled in: `control_plane` is the fixture of that name, `admin` a free
                 port of 127.0.0.1, `workers` 1, the `address` of a listener any free port (`Gateway.url` tells which it
                 became).
                 Every gateway is stopped at the end of the test; the log of one that failed to start is in the error.
`free_port`      a function that returns a free TCP port of 127.0.0.1.

Needs pytest and pytest-asyncio. Registered for nobody by itself: it loads where it is named.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from control_plane_example import ports
from control_plane_example.gateway import Gateway
from control_plane_example.mock import MockControlPlane


@pytest_asyncio.fixture
async def control_plane() -> AsyncIterator[MockControlPlane]:
    """A control plane that serves what the test puts."""
    async with MockControlPlane() as running:
        yield running


@pytest.fixture
def free_port() -> Callable[[], int]:
    """A function that returns a port nobody listens on at that moment."""
    return ports.free_port


@pytest_asyncio.fixture
async def gateway(
    tmp_path: Path, control_plane: MockControlPlane
) -> AsyncIterator[Callable[[dict[str, Any]], Awaitable[Gateway]]]:
    """A function: config in (as in the config file, gaps filled), a Gateway that is ready out."""
    started: list[Gateway] = []

    async def start(config: dict[str, Any]) -> Gateway:
        path = tmp_path / f"gateway-{len(started)}.json"
        filled = {
            "control_plane": {"address": control_plane.address},
            "admin": {"address": f"127.0.0.1:{ports.free_port()}"},
            "workers": 1,
            **config,
            "listeners": [{"address": "127.0.0.1:0", **listener} for listener in config["listeners"]],
        }
        path.write_text(json.dumps(filled), encoding="utf-8")  # JSON is YAML
        running = Gateway(path, filled["admin"]["address"])
        started.append(running)
        await running.start()
        return running

    try:
        yield start
    finally:
        for running in started:
            await running.stop()
