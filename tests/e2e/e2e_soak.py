"""What a gateway is put through in test_soak: clients of both eras, churn, and faults of everything around it.

In: where the parts are (`Scene`), and dice. Out: counts, and an AssertionError for an error that no fault explains.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import json
import os
import random
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

import aiohttp
from e2e_processes import ROOT, Process
from e2e_replicas import ERAS, LEGACY, MODERN, Client

from control_plane_example.mock import MockControlPlane

SCOPES: Final = ("a/main", "b/main")
CHURNED: Final = 60
"""Names that tools come and go under."""

GRACE: Final = 10.0
"""Seconds after a fault in which it explains an error still: endpoints are passed over, servers connected to anew."""

STEADY: Final = ("steady", "steadymcp")
SHAKY: Final = ("shaky", "shakymcp", "moody")
_TROUBLE: Final = frozenset({"upstream_error", "upstream_timeout", "overflow"})


class Moody:
    """A REST service in this process that answers 500 while it is in the mood."""

    def __init__(self) -> None:
        self.bad = False
        self.port = 0

    async def serve(self, ready: asyncio.Event, done: asyncio.Event) -> None:
        server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            await done.wait()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                at = head.lower().find(b"content-length:")
                await reader.readexactly(int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0)
                status = b"500 Internal Server Error" if self.bad else b"200 OK"
                writer.write(
                    b"HTTP/1.1 " + status + b"\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
                )
        writer.close()


@dataclasses.dataclass
class Scene:
    """Where everything is, and what happened to it. Times are the event loop's.

    `stalled`: the longest that our own loop was late; `slowest`: the longest that a page of the operator took.
    """

    plane: MockControlPlane
    urls: dict[str, str]
    admin: str
    ports: dict[str, int]
    folder: Path
    rng: random.Random
    moody: Moody
    publishing: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)
    done: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    services: dict[str, Process] = dataclasses.field(default_factory=dict)
    faults: dict[str, list[list[float]]] = dataclasses.field(default_factory=lambda: collections.defaultdict(list))
    stalled: float = 0.0
    slowest: float = 0.0
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def start(self, name: str) -> None:
        """Start the service of that name, an echo service or an MCP server, on its port."""
        server = name.endswith("mcp")
        arguments = (
            ("benchmarks.mcp_server", str(self.ports[name]), "20")
            if server
            else ("benchmarks.echo", str(self.ports[name]))
        )
        log = self.folder / f"{name}.log"
        self.services[name] = Process(log, sys.executable, "-m", *arguments, cwd=ROOT)

    async def rest(self, least: float, most: float) -> None:
        """Let some time go by, less when all is done."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.done.wait(), self.rng.uniform(least, most))

    def waits(self) -> str:
        """How busy the machine was, in words: what a failure may have come from."""
        return f"own loop {self.stalled:.2f} s late at most, an operator's page {self.slowest:.2f} s at most"

    def explained(self, upstream: str, begun: float) -> bool:
        """Whether a fault of the upstream explains an error of something that lasted from `begun` until now."""
        now = asyncio.get_running_loop().time()
        return any(fault[0] <= now and fault[1] + GRACE >= begun for fault in self.faults[upstream])


def tool(namespace: str, name: str, description: str, cluster: str) -> dict[str, Any]:
    """A REST tool of the cluster."""
    return {
        "namespace": namespace,
        "name": name,
        "description": description,
        "input_schema": {"inline_string": '{"type":"object","properties":{"message":{"type":"string"}}}'},
        "rest_backend": {
            "method": "POST",
            "path": "/echo",
            "cluster": cluster,
            "body_template": {"inline_string": '{"message": {{message}}}'},
        },
    }


async def publish(scene: Scene) -> None:
    """What stays all the time: a tool for each REST service, and both MCP servers."""
    for scope in SCOPES:
        for cluster in ("steady", "shaky", "moody"):
            await scene.plane.put(
                "McpTool", f"{scope}/{cluster}.echo", tool(cluster, "echo", f"The {cluster} one", cluster)
            )
        for name in ("steadymcp", "shakymcp"):
            await scene.plane.put("McpDynamicServer", f"{scope}/{name}", server(name, scene.ports[name]))


def tidy(scene: Scene) -> None:
    """Take back what comes and goes."""
    for scope in (*SCOPES, "c/main"):
        for number in range(CHURNED):
            scene.plane.remove("McpTool", f"{scope}/x.tool{number}")
        for number in range(3):
            scene.plane.remove("McpTool", f"{scope}/x.bad{number}")
        scene.plane.remove("McpOpenApiSource", f"{scope}/api")
        scene.plane.remove("McpDynamicServer", f"{scope}/guest")


def server(namespace: str, port: int) -> dict[str, Any]:
    """A server whose list is asked for every other second."""
    url = f"http://127.0.0.1:{port}/mcp"
    about = {"namespace": namespace, "description": "One of the soak's", "transport": "StreamableHttp"}
    return {**about, "url": url, "cache_duration": "2s"}


async def churn(scene: Scene) -> None:
    """Change the content: tools good and bad, a source, a server; every now and then a storm of updates."""
    number = 0
    while not scene.done.is_set():
        number += 1
        async with scene.publishing:
            await _change(scene, number)
        scene.counts["changes"] += 1
        await scene.rest(0.0, 0.05)


async def _change(scene: Scene, number: int) -> None:
    rng = scene.rng
    scope = rng.choice((*SCOPES, "c/main"))
    name = f"tool{rng.randrange(CHURNED)}"
    match rng.randrange(12):
        case 0 | 1:
            scene.plane.remove("McpTool", f"{scope}/x.{name}")
        case 2:
            await scene.plane.put("McpTool", f"{scope}/x.bad{rng.randrange(3)}", tool("x", "bad", "", "steady"))
        case 3:
            if not scene.plane.remove("McpOpenApiSource", f"{scope}/api"):
                source = {
                    "spec": {"inline_string": document(rng.randrange(1, 5))},
                    "namespace": "api",
                    "cluster": "steady",
                }
                await scene.plane.put("McpOpenApiSource", f"{scope}/api", source)
        case 4:
            if not scene.plane.remove("McpDynamicServer", f"{scope}/guest"):
                await scene.plane.put(
                    "McpDynamicServer",
                    f"{scope}/guest",
                    server("guest", scene.ports[rng.choice(("steadymcp", "shakymcp"))]),
                )
        case 5 if not rng.randrange(10):
            for storm in range(200):
                await scene.plane.put(
                    "McpTool", f"{scope}/x.{name}", tool("x", name, f"Storm {number}.{storm}", "steady")
                )
        case _:
            text = f"As of change {number} " + "padded " * rng.randrange(100)
            await scene.plane.put("McpTool", f"{scope}/x.{name}", tool("x", name, text, "steady"))


def document(operations: int) -> str:
    """An OpenAPI document."""
    paths = {
        f"/{number}": {
            "get": {"operationId": f"op{number}", "summary": "One", "responses": {"200": {"description": ""}}}
        }
        for number in range(operations)
    }
    return json.dumps({"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths})


async def trouble(scene: Scene) -> None:
    """One fault after the other, of every kind in turn, of anything but what is steady."""
    loop, turn = asyncio.get_running_loop(), 0
    while not scene.done.is_set():
        await scene.rest(0.5, 2.0)
        name = ("shaky", "shakymcp")[turn // 2 % 2]
        process = scene.services[name]
        kind = turn % 7
        turn += 1
        if kind in {0, 1, 2, 3}:
            fault = [loop.time(), float("inf")]
            scene.faults[name].append(fault)
            if kind in {0, 2}:
                process.kill()
                await scene.rest(0.1, 2.0)
                scene.start(name)
                await _listening(scene.ports[name])
            else:
                os.kill(process.child.pid, signal.SIGSTOP)
                await scene.rest(0.5, 3.0)
                os.kill(process.child.pid, signal.SIGCONT)
            fault[1] = loop.time()
        elif kind == 4:
            fault = [loop.time(), float("inf")]
            scene.faults["moody"].append(fault)
            scene.moody.bad = True
            await scene.rest(0.2, 2.0)
            scene.moody.bad = False
            fault[1] = loop.time()
        elif kind == 5:
            scene.plane.cut()
        else:
            async with scene.publishing:  # it takes no changes while it is down
                await scene.plane.restart()
        scene.counts["faults"] += 1


async def _listening(port: int) -> None:
    for _ in range(300):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise AssertionError(f"nobody listens on {port}")


async def calls(scene: Scene, listener: str, era: str) -> None:
    """One client that calls, lists and searches; sessions of the older era end now and then."""
    rng, url = scene.rng, scene.urls[listener]
    while not scene.done.is_set():
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as http:
            client = Client(url, http)
            if era == LEGACY:
                await client.initialize()
            for _ in range(rng.randrange(5, 100)):
                if scene.done.is_set():
                    break
                match rng.randrange(8):
                    case 0:
                        found = await client.ask(era, "tools/list")
                        assert found["tools"]
                        scene.counts["lists"] += 1
                    case 1:
                        async with http.post(
                            f"{url}/search", json={"query": rng.choice(("steady", "tool", "api", "17"))}
                        ) as response:
                            assert response.status == 200, await response.text()
                            scene.counts["searches"] += 1
                    case _:
                        await _call(scene, client, era)
                await scene.rest(0.0, 0.02)
            if client.session is not None:
                headers = {"Mcp-Session-Id": client.session, "MCP-Protocol-Version": era}
                async with http.delete(url, headers=headers) as response:
                    assert response.status == 204


async def _call(scene: Scene, client: Client, era: str) -> None:
    upstream = scene.rng.choice((*STEADY, *SHAKY))
    name = f"{upstream}.{'tool_3' if upstream.endswith('mcp') else 'echo'}"
    begun = asyncio.get_running_loop().time()
    result = await client.ask(era, "tools/call", name=name, arguments={"message": "soaked"})
    scene.counts["calls"] += 1
    if result.get("isError"):
        code = result.get("structuredContent", {}).get("error", {}).get("code")
        assert code in _TROUBLE, (name, result)
        assert upstream not in STEADY, (name, result)
        assert scene.explained(upstream, begun), (name, result, scene.faults[upstream][-3:], begun)
        scene.counts["calls that a fault made fail"] += 1


async def listens(scene: Scene, listener: str, era: str) -> None:
    """Open a notification stream for a while, hear of changes, leave; politely or not."""
    rng = scene.rng
    while not scene.done.is_set():
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as http:
            client = Client(scene.urls[listener], http)
            if era == LEGACY:
                await client.initialize()
                opening = http.get(client.url, headers=client.request(era, "")["headers"])
            else:
                wanted = client.request(MODERN, "subscriptions/listen", notifications={"toolsListChanged": True})
                opening = http.post(client.url, **wanted)
            async with opening as stream:
                assert stream.status == 200, await stream.text()
                end = asyncio.get_running_loop().time() + rng.uniform(0.1, 5.0)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(end):
                        async for line in stream.content:
                            scene.counts["list_changed"] += b"list_changed" in line
                            if scene.done.is_set():
                                break


def _bare(scene: Scene, listener: str, method: str, **params: Any) -> tuple[str, int, bytes]:
    """Host, port, and the bytes of a request."""
    address = scene.urls[listener].removeprefix("http://").removesuffix("/mcp")
    host, _, port = address.rpartition(":")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = f"POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n"
    return host, int(port), f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def reads_slowly(scene: Scene, listener: str) -> None:
    """Ask for lists and take nothing of them, until cut off or tired."""
    host, port, asked = _bare(scene, listener, "tools/list")
    while not scene.done.is_set():
        narrow = socket.socket()
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        narrow.setblocking(False)
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_connect(narrow, (host, port))
            await asyncio.get_running_loop().sock_sendall(narrow, asked * 20)
            await scene.rest(0.5, 4.0)
        narrow.close()
        scene.counts["slow readers"] += 1


async def leaves_early(scene: Scene, listener: str) -> None:
    """Ask for a call and hang up before the answer is there."""
    host, port, asked = _bare(scene, listener, "tools/call", name="shaky.echo", arguments={"message": "x"})
    while not scene.done.is_set():
        _, writer = await asyncio.open_connection(host, port)
        writer.write(asked)
        await scene.rest(0.0, 0.01)
        writer.transport.abort()
        scene.counts["hung up"] += 1
        await scene.rest(0.01, 0.2)


async def operates(scene: Scene) -> None:
    """Look at the operator's pages."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as http:
        while not scene.done.is_set():
            for page in (
                "/metrics",
                "/status",
                "/config_dump",
                "/problems",
                "/tools",
                "/history",
                "/explain?name=x.tool1",
            ):
                begun = asyncio.get_running_loop().time()
                async with http.get(f"{scene.admin}{page}") as response:
                    assert response.status == 200, page
                    await response.read()
                scene.slowest = max(scene.slowest, asyncio.get_running_loop().time() - begun)
            await scene.rest(0.2, 1.0)


async def everybody(scene: Scene) -> None:
    """All of it, until `done`."""
    async with asyncio.TaskGroup() as group:
        group.create_task(churn(scene))
        group.create_task(trouble(scene))
        group.create_task(operates(scene))
        for listener in scene.urls:
            for era in ERAS:
                group.create_task(calls(scene, listener, era))
                group.create_task(calls(scene, listener, era))
                for _ in range(3):
                    group.create_task(listens(scene, listener, era))
            group.create_task(leaves_early(scene, listener))
            for _ in range(5):
                group.create_task(reads_slowly(scene, listener))
