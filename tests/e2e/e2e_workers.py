"""A gateway of several workers as processes, and clients that know which worker has their connection.

`team` starts one on free ports. `Caller` is an HTTP client with one connection; whose it is, the kernel says
(/proc/net/tcp and the descriptors of the workers). Used by test_workers*.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from e2e_processes import START_SECONDS, Process, eventually, free_ports

from control_plane_example.mock import MockControlPlane

SCOPE = "team-mcp/main"
HEADERS = {"accept": "application/json, text/event-stream"}
MODERN = "2026-07-28"
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def tool(name: str, path: str = "/") -> dict[str, Any]:
    """A REST tool of the namespace `n`."""
    return {
        "namespace": "n",
        "name": name,
        "description": f"The tool {name}",
        "rest_backend": {"method": "GET", "path": path, "cluster": "backend"},
    }


class Caller:
    """One connection to one worker, `worker`."""

    def __init__(self, url: str) -> None:
        self.port = 0
        self.worker = -1
        self.session: str | None = None
        self._base, self._url = url, f"{url}/mcp"
        connector = aiohttp.TCPConnector(limit=1, keepalive_timeout=600, socket_factory=self._socket)
        self.http = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=20))

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        made = socket.socket(info[0], info[1], info[2])
        made.bind(("127.0.0.1", 0))
        self.port = made.getsockname()[1]
        return made

    async def page(self, path: str) -> str:
        """What is there, as text."""
        async with self.http.get(f"{self._base}{path}") as response:
            return await response.text()

    async def rpc(self, method: str, params: dict[str, Any] | None = None, identity: int | None = 1) -> Any:
        """A message of a handshake revision, within the session if there is one. The answer, None for 202 and 204."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if identity is not None:
            message["id"] = identity
        headers = {**HEADERS, **({"mcp-session-id": self.session} if self.session else {})}
        async with self.http.post(self._url, json=message, headers=headers) as response:
            if response.status == 404:
                return response.status
            body = await response.read()
            if method == "initialize":
                self.session = response.headers["mcp-session-id"]
            return json.loads(body) if body else None

    async def initialize(self) -> str:
        """Begin a session."""
        await self.rpc("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}})
        assert self.session is not None
        return self.session

    async def listed(self) -> list[str]:
        """The names that tools/list answers."""
        return [one["name"] for one in (await self.rpc("tools/list"))["result"]["tools"]]

    async def call(self, name: str, identity: int = 1) -> Any:
        """The answer of tools/call."""
        return await self.rpc("tools/call", {"name": name, "arguments": {}}, identity)

    async def modern(self, method: str, params: dict[str, Any]) -> Any:
        """The answer to a stateless request."""
        async with self.stream(method, params) as response:
            return await response.json()

    def stream(self, method: str, params: dict[str, Any]) -> Any:
        """The response of a stateless request."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": MODERN_META}}
        headers = {**HEADERS, "mcp-protocol-version": MODERN, "mcp-method": method}
        if "name" in params:
            headers["mcp-name"] = params["name"]
        return self.http.post(self._url, json=message, headers=headers)

    def get(self) -> Any:
        """The response of a GET stream of the session."""
        assert self.session is not None
        return self.http.get(self._url, headers={"accept": "text/event-stream", "mcp-session-id": self.session})

    def delete(self) -> Any:
        """The response to the end of the session."""
        assert self.session is not None
        return self.http.delete(self._url, headers={"mcp-session-id": self.session})


@dataclasses.dataclass
class Team:
    """A supervisor and its workers. `config` may be changed and is written by `write`."""

    process: Process
    path: Path
    config: dict[str, Any]
    control_plane: MockControlPlane
    asked: list[str]
    stack: contextlib.AsyncExitStack

    @property
    def url(self) -> str:
        """Where the listener is."""
        return f"http://{self.config['listeners'][0]['address']}"

    @property
    def admin_url(self) -> str:
        """Where the admin is."""
        return f"http://{self.config['admin']['address']}"

    def write(self, **keys: Any) -> None:
        """Write the config with other keys."""
        self.config.update(keys)
        self.path.write_text(yaml.safe_dump(self.config), encoding="utf-8")

    async def admin(self, page: str) -> Any:
        """A page of the admin, of whichever worker is asked; a number or text as it is."""
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"{self.admin_url}{page}") as found,
        ):
            return await found.json() if found.content_type == "application/json" else await found.text()

    async def workers(self) -> list[dict[str, Any]]:
        """What each says of itself."""
        found: list[dict[str, Any]] = (await self.admin("/readyz"))["workers"]
        return found

    async def pids(self) -> list[int]:
        """Of the workers, by number; fails while one does not answer."""
        found = await self.workers()
        assert all(one["ready"] for one in found), found
        return [one["pid"] for one in found]

    async def ready(self) -> list[int]:
        """Until all are: their process ids."""

        async def look() -> list[int]:
            assert self.process.child.poll() is None, self.process.log()
            assert (await self.admin("/readyz"))["ready"] is True, self.process.log()
            return await self.pids()

        return await eventually(look, START_SECONDS)

    async def caller(self, url: str | None = None) -> Caller:
        """A client with a connection, to the listener unless told otherwise, which ends with the test."""
        made = Caller(url or self.url)
        self.stack.push_async_callback(made.http.close)
        await made.page("/healthz")  # the listener has no such page, and keeps the connection
        pids = await self.pids()
        made.worker = next(number for number, pid in enumerate(pids) if has(pid, made.port))
        return made

    async def callers(self) -> list[Caller]:
        """One for each worker, in their order."""
        return [await self.at(number) for number in range(self.config["workers"])]

    async def at(self, worker: int, url: str | None = None) -> Caller:
        """A connection to that worker. The system chooses: that it never takes one of two has a chance of 2 ** -64."""
        for _ in range(64):
            one = await self.caller(url)
            if one.worker == worker:
                return one
        raise AssertionError(f"the system gave no connection to worker {worker}")

    @contextlib.contextmanager
    def frozen(self, pid: int) -> Iterator[None]:
        """A worker that is there and does nothing while the block runs."""
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    async def metric(self, line: str) -> float:
        """The value behind a name with its labels."""
        page: str = await self.admin("/metrics")
        return sum(float(one.rpartition(" ")[2]) for one in page.splitlines() if one.startswith(line))


def has(pid: int, remote: int) -> bool:
    """Whether the process has a connection from that port of this machine."""
    inodes = set()
    for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]:
        fields = line.split()
        if int(fields[2].rpartition(":")[2], 16) == remote:
            inodes.add(f"socket:[{fields[9]}]")
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(one) in inodes:
                return True
    return False


@contextlib.asynccontextmanager
async def team(
    folder: Path,
    control_plane: MockControlPlane,
    *,
    search: dict[str, Any] | None = None,
    runtime: Path | None = None,
    fetch: str | None = None,
    **keys: Any,
) -> AsyncIterator[Team]:
    """Two workers, ready, with a backend that says what it was asked (paths); `/slow` never answers.

    `search`: of the gateway. `runtime`: where their sockets are; a short path. `fetch`: how long
    workers wait for content; they need not be ready then. `keys` of the config.
    """
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        if request.path == "/slow":
            await request.content.read()
            await asyncio.Event().wait()
        return web.json_response({"path": request.path})

    async with contextlib.AsyncExitStack() as stack:
        runner = web.ServerRunner(web.Server(answer, access_log=None, handler_cancellation=True), shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        admin, listener = free_ports(2)
        config = {
            "workers": 2,
            "control_plane": {
                "address": control_plane.address,
                "backoff_base": 0.1,
                "backoff_max": 0.3,
                "initial_fetch_timeout": fetch or "15s",
            },
            "admin": {"address": f"127.0.0.1:{admin}"},
            "listeners": [
                {
                    "name": "a",
                    "address": f"127.0.0.1:{listener}",
                    "mcp_gateway": {
                        "server_info": {"name": "team-mcp", "version": "1"},
                        "tools_mode": {},
                        "tds": {"config_name": "main"},
                        **({} if search is None else {"search": search}),
                    },
                }
            ],
            "clusters": [{"name": "backend", "endpoints": [f"http://127.0.0.1:{runner.addresses[0][1]}"]}],
            **keys,
        }
        path = folder / "gateway.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        command = (sys.executable, "-m", "arion_tds", "serve", "-c", str(path))
        sockets = runtime or stack.enter_context(tempfile.TemporaryDirectory(prefix="team-"))
        process = Process(folder / "gateway.log", *command, env={"TMPDIR": str(sockets)})
        stack.callback(process.kill)
        made = Team(process, path, config, control_plane, asked, stack)
        if fetch is None:
            await made.ready()
        yield made
