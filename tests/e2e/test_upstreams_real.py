"""MCP servers that other people wrote, discovered over TDS and called by clients of both eras through a gateway.

The servers on Node run with every `make test`. Those on Python need environments of their own, which take their time to
install: they run where these are there already, and in `make upstreams-e2e`, which installs them.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from e2e_processes import ROOT, Process, eventually, free_ports
from mcp import Client

from control_plane_example.gateway import Gateway
from control_plane_example.mock import MockControlPlane

pytest_plugins = ["control_plane_example.pytest_plugin"]
pytestmark = pytest.mark.e2e

HERE = ROOT / "tests" / "e2e" / "upstreams"
SCOPE = "real/main"
MODES = ("legacy", "2026-07-28")
PATIENCE = 60
INSTALL = "ARION_TDS_INSTALL_UPSTREAMS"
Start = Callable[[dict[str, Any]], Awaitable[Gateway]]


@dataclasses.dataclass(frozen=True)
class Server:
    """A server's command (`{port}` is filled in), the era that it is to be met in, and one call of it.

    supergateway 4 answers 2026-07-28 requests whatever the server behind it speaks.
    """

    name: str
    command: Sequence[str]
    era: str
    tools: int
    tool: str
    arguments: dict[str, Any]
    says: str
    env: dict[str, str] = dataclasses.field(default_factory=dict)


def _installed(script: str, *arguments: Path) -> Path:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / script, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"the servers cannot be installed: {done.stderr.strip()[-500:]}")
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def node_servers(node: Path) -> dict[str, str]:
    """The environment in which the commands of upstreams/package.json are found, and a recent Node."""
    commands = _installed("node_packages.py", HERE)
    shutil.copy(HERE / "server.mjs", commands.parents[1])  # beside the packages that it imports
    return {
        "PATH": os.pathsep.join((str(node), str(commands), os.environ["PATH"])),
        "SERVERS": str(commands.parents[1]),
    }


@pytest.fixture(scope="session")
def python_servers() -> Callable[[str], Path]:
    """A function: the name of a requirements file in, the commands of its environment out."""

    def found(name: str) -> Path:
        if not (ROOT / f".venv-{name}" / "installed").exists() and INSTALL not in os.environ:
            pytest.skip(f"`make upstreams-e2e` installs {name}.txt")
        return _installed("python_packages.py", HERE / f"{name}.txt")

    return found


@contextlib.contextmanager
def running(servers: Sequence[Server], env: dict[str, str], logs: Path) -> Iterator[dict[str, int]]:
    """All of them, each on a free port: ports by name. Nothing of them is left afterwards."""
    ports = dict(zip((one.name for one in servers), free_ports(len(servers)), strict=True))
    processes: list[Process] = []
    try:
        for one in servers:
            port = str(ports[one.name])
            command = [part.replace("{port}", port) for part in one.command]
            more = {key: value.replace("{port}", port) for key, value in one.env.items()}
            processes.append(
                Process(logs / f"{one.name}.log", *command, cwd=logs, env={**env, "HOME": str(logs), **more})
            )
        yield ports
    finally:
        for process in processes:
            process.kill()


@contextlib.asynccontextmanager
async def discovered(
    servers: Sequence[Server], ports: dict[str, int], start: Start, plane: MockControlPlane
) -> AsyncIterator[Gateway]:
    """A gateway that has found the tools of them all."""
    block: dict[str, Any] = {
        "server_info": {"name": "real", "version": "1"},
        "tools_mode": {},
        "tds": {"config_name": "main"},
    }
    block["upstream_timeout"] = f"{PATIENCE}s"  # a bridge starts a process for every request
    patient = {"discovery_timeout": PATIENCE, "default": {"handshake_timeout": PATIENCE}}
    running = await start({"listeners": [{"name": "a", "mcp_gateway": block}], "mcp_servers": patient})
    for one in servers:
        await eventually(lambda one=one: _listens(ports[one.name]), PATIENCE)  # type: ignore[misc]
    for one in servers:
        url = f"http://127.0.0.1:{ports[one.name]}/mcp"
        spec = {"namespace": one.name, "description": one.name, "transport": "StreamableHttp", "url": url}
        await plane.put("McpDynamicServer", f"{SCOPE}/{one.name}", spec)
    for one in servers:
        await plane.acked("McpDynamicServer", f"{SCOPE}/{one.name}", timeout=PATIENCE)
    yield running


async def _listens(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


async def proven(servers: Sequence[Server], ports: dict[str, int], gateway: Gateway) -> None:
    """Each was met in its era, lists all its tools to both eras, and answers its call to both."""
    async with aiohttp.ClientSession() as http, http.get(f"{gateway.admin}/config_dump") as response:
        eras = {one["url"]: one["era"] for one in (await response.json())["mcp_servers"]}
    assert {one.name: eras[f"http://127.0.0.1:{ports[one.name]}/mcp"] for one in servers} == {
        one.name: one.era for one in servers
    }
    for mode in MODES:
        async with asyncio.timeout(PATIENCE), Client(gateway.url(), mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            for one in servers:
                own = [name for name in names if name.startswith(f"{one.name}.")]
                assert len(own) == one.tools, own
                result = await client.call_tool(f"{one.name}.{one.tool}", one.arguments)
                assert result.is_error is False, result
                assert one.says in result.model_dump_json(), (one.name, result)


async def test_servers_on_node_old_and_new_stateful_and_behind_a_bridge(
    node_servers: dict[str, str], gateway: Start, control_plane: MockControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "hello.txt").write_text("a file's text")
    bridge = ("supergateway", "--outputTransport", "streamableHttp", "--port", "{port}", "--streamableHttpPath", "/mcp")
    person = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
    servers = [
        Server(
            *("everything", ["mcp-server-everything", "streamableHttp"], "legacy", 13),
            *("echo", {"message": "anybody?"}, "anybody?", {"PORT": "{port}"}),
        ),
        Server(
            *("files", [*bridge, "--stdio", f"mcp-server-filesystem {tmp_path / 'files'}"], "modern", 14),
            *("read_text_file", {"path": str(tmp_path / "files" / "hello.txt")}, "a file's text"),
        ),
        Server(
            *("memory", [*bridge, "--stateful", "--stdio", "mcp-server-memory"], "modern", 9),
            *("create_entities", {"entities": [person]}, ""),
            {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")},
        ),
        Server(
            *("typescript", ["node", f"{node_servers['SERVERS']}/server.mjs", "{port}"], "modern", 1),
            *("shout", {"text": "quietly"}, "QUIETLY"),
        ),
    ]
    with running(servers, node_servers, tmp_path) as ports:
        async with discovered(servers, ports, gateway, control_plane) as here:
            await proven(servers, ports, here)
            async with asyncio.timeout(PATIENCE), Client(here.url(), mode="legacy") as client:
                # What one client wrote another reads: they share the gateway's own session.
                graph = await client.call_tool("memory.read_graph", {})
                assert "wrote programs" in graph.model_dump_json()

                steps: list[float] = []

                async def step(progress: float, total: float | None, message: str | None) -> None:
                    del total, message
                    steps.append(progress)

                slow = {"duration": 0.3, "steps": 3}
                name = "everything.trigger-long-running-operation"
                done = await client.call_tool(name, slow, progress_callback=step)
                assert done.is_error is False
                assert steps == [1, 2, 3]


async def test_servers_on_both_lines_of_the_python_sdk(
    python_servers: Callable[[str], Path],
    gateway: Start,
    control_plane: MockControlPlane,
    node_servers: dict[str, str],
    tmp_path: Path,
) -> None:
    modern, handshake = python_servers("modern"), python_servers("handshake")
    repository = tmp_path / "repository"
    made = await asyncio.create_subprocess_exec("git", "init", "--quiet", str(repository))
    assert await made.wait() == 0
    script = str(HERE / "fastmcp_server.py")
    bridge = ("supergateway", "--outputTransport", "streamableHttp", "--port", "{port}", "--streamableHttpPath", "/mcp")
    greeting = ("greet", {"name": "Ada", "title": None}, "Hello Ada!")
    servers = [
        Server("fast", [str(modern / "python"), script, "{port}"], "modern", 2, *greeting),
        Server("older", [str(handshake / "python"), script, "{port}"], "legacy", 2, *greeting),
        Server(
            *("git", [*bridge, "--stdio", f"{modern / 'mcp-server-git'} -r {repository}"], "modern", 12),
            *("git_status", {"repo_path": str(repository)}, "No commits yet"),
        ),
    ]
    with running(servers, node_servers, tmp_path) as ports:
        async with discovered(servers, ports, gateway, control_plane) as here:
            await proven(servers, ports, here)
            async with asyncio.timeout(PATIENCE), Client(here.url(), mode="2026-07-28") as client:
                for name in ("fast", "older"):
                    failed = await client.call_tool(f"{name}.fail", {"why": "broken"})
                    assert failed.is_error is True
                    assert "broken" in failed.model_dump_json()
