"""What every benchmark stands on: a gateway in a process of its own, its CPU and memory, a raw keep-alive client.

CPU is user + system time of the gateway's process, read from the kernel: on a shared machine wall time is noise.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import pathlib
import platform
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from typing import Any

import yaml

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from control_plane_example import ports

free_port = ports.free_port
ROOT = pathlib.Path(__file__).resolve().parent.parent
TICK = os.sysconf("SC_CLK_TCK")


class Process:
    """A child process whose CPU seconds and resident memory can be read."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child = child

    @property
    def cpu(self) -> float:
        """User + system seconds since its start, from schedstat (nanoseconds) of all its threads."""
        total = 0
        tasks = pathlib.Path(f"/proc/{self.child.pid}/task")
        for task in tasks.iterdir():
            with contextlib.suppress(OSError):
                total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    @property
    def rss_mb(self) -> float:
        """Resident memory in MB."""
        pages = int(pathlib.Path(f"/proc/{self.child.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    async def stop(self) -> None:
        """End it, kindly at first."""
        if self.child.returncode is None:
            self.child.terminate()
            try:
                await asyncio.wait_for(self.child.wait(), 10)
            except TimeoutError:
                self.child.kill()
                await self.child.wait()


async def spawn(*command: str) -> Process:
    """Start a Python process in the checkout."""
    return Process(
        await asyncio.create_subprocess_exec(sys.executable, *command, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL)
    )


class Client:
    """One keep-alive HTTP/1.1 connection that posts JSON and reads answers with a Content-Length."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._host = host
        self.session: str | None = None
        self.extra = ""
        self.received = 0

    @classmethod
    async def connect(cls, address: str) -> Client:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=64 << 20)
        return cls(reader, writer, address)

    async def post(self, path: str, body: bytes, headers: str = "") -> tuple[int, dict[str, str], bytes]:
        """Status, headers (lower-case names) and body of one exchange."""
        self._writer.write(
            f"POST {path} HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\n{headers}content-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        return await self._answer()

    async def get(self, path: str) -> tuple[int, bytes]:
        """Status and body."""
        self._writer.write(f"GET {path} HTTP/1.1\r\nhost: {self._host}\r\n\r\n".encode())
        status, _, body = await self._answer()
        return status, body

    async def _answer(self) -> tuple[int, dict[str, str], bytes]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        found = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
        headers = {name.lower(): value for name, value in found.items()}
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        self.received += len(body)
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        elif headers.get("content-encoding") == "zstd":
            body = zstd.decompress(body)
        return int(head[0].split()[1]), headers, body

    async def initialize(self) -> None:
        """The handshake of 2025-06-18; later calls carry the session."""
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        _, headers, _ = await self.post("/mcp", rpc("initialize", params))
        self.session = headers.get("mcp-session-id")
        await self.post("/mcp", b'{"jsonrpc":"2.0","method":"notifications/initialized"}', self.headers)

    @property
    def headers(self) -> str:
        """Header lines of a session's request."""
        lines = "mcp-protocol-version: 2025-06-18\r\n"
        return lines + self.extra + (f"mcp-session-id: {self.session}\r\n" if self.session else "")

    async def call(self, method: str, params: dict[str, Any]) -> bytes:
        """One JSON-RPC request; the answer's body. RuntimeError when it is not a result."""
        status, _, body = await self.post("/mcp", rpc(method, params), self.headers)
        if status != 200 or b'"result"' not in body[:4096]:
            msg = f"{method}: {status} {body[:300]!r}"
            raise RuntimeError(msg)
        return body

    def close(self) -> None:
        self._writer.close()


def rpc(method: str, params: dict[str, Any], number: int = 1) -> bytes:
    """A JSON-RPC request."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def config(control_plane: str, *, listener: int, admin: int, clusters: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """A gateway with one listener on scope `bench/main`."""
    return {
        "node": {"id": "bench", "cluster": "arion"},
        "control_plane": {"address": control_plane, "initial_fetch_timeout": "2s"},
        "admin": {"address": f"127.0.0.1:{admin}"},
        "log": {"level": "warning"},
        "listeners": [
            {
                "name": "bench",
                "address": f"127.0.0.1:{listener}",
                "mcp_gateway": {
                    "server_info": {"name": "bench", "version": "1"},
                    "tools_mode": {},
                    "tds": {"config_name": "main"},
                },
            }
        ],
        "clusters": list(clusters),
    }


@contextlib.asynccontextmanager
async def gateway(settings: dict[str, Any], *, wait: bool = True) -> AsyncIterator[Process]:
    """A gateway process that answers /readyz with 200, or (not `wait`) has just been started."""
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "gateway.yaml"
        path.write_text(yaml.safe_dump({"workers": 1, **settings}))
        process = await spawn("-m", "arion_tds", "serve", "-c", str(path))
        try:
            if wait:
                await ready(settings["admin"]["address"])
            yield process
        finally:
            await process.stop()


async def ready(admin: str, seconds: float = 60) -> None:
    """Wait until the gateway says that it is ready."""
    async with asyncio.timeout(seconds):
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                client = await Client.connect(admin)
                status, _ = await client.get("/readyz")
                client.close()
                if status == 200:
                    return
            await asyncio.sleep(0.01)


def tool(number: int, size: int = 1500) -> dict[str, Any]:
    """A REST tool of about `size` bytes as the `spec` of a document."""
    properties = {
        f"parameter_{position}": {
            "type": "string",
            "description": f"The {position}. thing that tool {number} wants to know",
        }
        for position in range(max(1, (size - 300) // 110))
    }
    schema = {"type": "object", "properties": {"message": {"type": "string"}, **properties}}
    return {
        "namespace": f"space{number % 50}",
        "name": f"tool_{number}",
        "description": f"Tool number {number}: sends a message and some parameters to the echo service",
        "input_schema": {"inline_string": json.dumps(schema)},
        "rest_backend": {
            "method": "POST",
            "path": "/echo",
            "cluster": "echo",
            "body_template": {"inline_string": '{"message": {{message}}}'},
        },
    }


def report(name: str, **figures: object) -> None:
    """Print the one JSON line."""
    machine = {"python": platform.python_version(), "cpus": os.cpu_count()}
    print(json.dumps({"benchmark": name, **figures, **machine}))


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
