"""Local MCP servers of a gateway process: none outlives it, whichever way it ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from e2e_processes import ROOT, eventually

from control_plane_example.gateway import Gateway

pytest_plugins = ["control_plane_example.pytest_plugin"]
pytestmark = pytest.mark.e2e

CHILD = ROOT / "tests" / "wire" / "upstreams" / "upstream_child.py"
Start = Callable[[dict[str, Any]], Awaitable[Gateway]]


def runs(pid: int) -> bool:
    """Whether a process of that number runs (a dead one that nobody waited for does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def called(gateway: Gateway) -> int:
    """The process that answers the tool."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "c.pid", "arguments": {}}}
    headers = {"Accept": "application/json, text/event-stream"}
    async with aiohttp.ClientSession() as http, http.post(gateway.url(), json=body, headers=headers) as response:
        return int((await response.json())["result"]["content"][0]["text"])


@pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_no_local_server_outlives_the_gateway(gateway: Start, tmp_path: Path, way: signal.Signals) -> None:
    block = {"server_info": {"name": "local", "version": "1"}, "tools_mode": {}}
    server = {"namespace": "c", "command": [sys.executable, str(CHILD), str(tmp_path)]}
    running = await gateway({"listeners": [{"name": "a", "mcp_gateway": block, "stdio_servers": [server]}]})
    pid = await called(running)
    assert runs(pid)
    assert running._process is not None
    os.kill(running._process.pid, way)
    code = await running._process.wait()
    assert code == (-signal.SIGKILL if way is signal.SIGKILL else 0), running.logs()

    async def gone() -> None:
        assert not runs(pid)

    await eventually(gone, 5)  # at once, but for SIGKILL, after which the server sees its input end
