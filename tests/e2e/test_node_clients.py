"""Clients that are not Python against a gateway process: the TypeScript SDK and the inspector's command line."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from e2e_catalog import FORECAST, PUSHED, TOOLS, Tenant
from e2e_processes import ROOT

pytest_plugins = ["control_plane_example.pytest_plugin"]
pytestmark = pytest.mark.e2e

ERAS = (("legacy", "2025-11-25"), ("modern", "2026-07-28"))
ARGUMENTS = {"city": "Osaka", "days": 1}


@asynccontextmanager
async def command(node: Path, home: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command of the Node folder while the block runs; whatever it keeps goes into `home`."""
    process = await asyncio.create_subprocess_exec(
        *arguments,
        env={**os.environ, "PATH": f"{node}{os.pathsep}{os.environ['PATH']}", "HOME": str(home)},
        cwd=home,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def line(process: asyncio.subprocess.Process) -> Any:
    assert process.stdout is not None
    return json.loads(await process.stdout.readline() or '"it ended without a word: see its standard error"')


@pytest.mark.parametrize(("era", "version"), ERAS)
async def test_the_typescript_sdk_lists_calls_and_hears_of_a_push(
    served: Tenant, node: Path, tmp_path: Path, era: str, version: str
) -> None:
    script = node.parents[1] / "client.mjs"  # beside the packages that it imports
    shutil.copy(ROOT / "tests" / "e2e" / "node" / "client.mjs", script)
    arguments = (str(script), served.url, era, FORECAST, json.dumps(ARGUMENTS))
    async with asyncio.timeout(30), command(node, tmp_path, "node", *arguments) as client:
        said = await line(client)
        assert said["version"] == version
        assert said["server"]["name"] == "tenant-a-mcp"
        assert len(set(said["tools"])) == TOOLS
        assert said["result"]["structuredContent"]["country"] == "JP"

        await served.until_listened_to()
        await served.push()
        assert PUSHED in (await line(client))["changed"]
        assert await client.wait() == 0


async def test_the_inspector_lists_every_page_and_calls_in_both_eras(
    served: Tenant, node: Path, tmp_path: Path
) -> None:
    async def inspect(era: str, *arguments: str) -> Any:
        options = ("--cli", served.url, "--transport", "http", "--protocol-era", era, *arguments)
        async with command(node, tmp_path, "mcp-inspector", *options) as process:
            said, _ = await process.communicate()
        assert process.returncode == 0
        return json.loads(said)

    for era, _ in ERAS:
        async with asyncio.timeout(30):
            listed, called = await asyncio.gather(
                inspect(era, "--method", "tools/list", "--strict"),
                inspect(era, "--method", "tools/call", "--tool-name", FORECAST, "--tool-arg", "city=Osaka", "days=1"),
            )
        assert len({tool["name"] for tool in listed["tools"]}) == TOOLS
        assert called["structuredContent"]["country"] == "JP"
        assert called.get("isError", False) is False


async def test_claude_desktops_bridge_speaks_stdio_and_hears_of_a_push(
    served: Tenant, node: Path, tmp_path: Path
) -> None:
    """What stands in claude_desktop_config.json: `npx mcp-remote URL`, here as the desktop application drives it."""
    bridge = await asyncio.create_subprocess_exec(
        node / "mcp-remote",
        served.url,
        env={**os.environ, "PATH": f"{node}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)},
        cwd=tmp_path,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=1 << 20,
    )
    assert bridge.stdin is not None

    def say(method: str, params: dict[str, Any], **more: Any) -> None:
        assert bridge.stdin is not None
        bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode() + b"\n")

    async def ask(number: int, method: str, params: dict[str, Any]) -> Any:
        say(method, params, id=number)
        while (said := await line(bridge)).get("id") != number:
            pass
        return said["result"]

    async def names(number: int) -> set[str]:
        found: set[str] = set()
        params: dict[str, Any] = {}
        while True:
            page = await ask(number, "tools/list", params)
            found |= {tool["name"] for tool in page["tools"]}
            if "nextCursor" not in page:
                return found
            number, params = number + 1, {"cursor": page["nextCursor"]}

    try:
        async with asyncio.timeout(30):
            client = {"name": "claude-ai", "version": "0.1.0"}
            opened = await ask(
                0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
            )
            assert opened["serverInfo"]["name"] == "tenant-a-mcp"
            say("notifications/initialized", {})
            assert len(await names(10)) == TOOLS
            called = await ask(20, "tools/call", {"name": FORECAST, "arguments": ARGUMENTS})
            assert called["structuredContent"]["country"] == "JP"
            await served.until_listened_to(streams=2)  # the bridge tries the endpoint with a client of its own first
            await served.push()
            assert (await line(bridge))["method"] == "notifications/tools/list_changed"
            assert PUSHED in await names(30)
    finally:
        if bridge.returncode is None:
            bridge.kill()
        await bridge.wait()
