"""The load client for every gateway: keep-alive HTTP/1.1 by hand, MCP of 2025-06-18, answers as JSON or as SSE.

One session per connection, one request at a time on each. An answer that is not the result of that request is an error.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from typing import Any
from urllib.parse import urlsplit

from benchmarks import chunked

VERSION = "2025-06-18"
SECONDS = 90
"""How long one answer may take."""


class Connection(asyncio.Protocol):
    """Sends a request and reads its answer: by Content-Length, in chunks, or without a body."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes, bytes]] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvloop's is no subclass
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(f"closed before the answer: {error}"))

    def exchange(self, request: bytes) -> asyncio.Future[tuple[int, bytes, bytes]]:
        """Status, head and body of the answer."""
        self._answer = asyncio.get_running_loop().create_future()
        if self.transport.is_closing():
            self._answer.set_exception(ConnectionError("closed"))
        else:
            self.transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or self._answer is None or self._answer.done():
            return
        head = bytes(self._buffer[:end])
        status, lower, start = int(head[9:12]), head.lower(), end + 4
        if (at := lower.find(b"\r\ncontent-length:")) >= 0:
            length = int(lower[at + 17 :].split(b"\r\n", 1)[0])
            if len(self._buffer) < start + length:
                return
            body, done = bytes(self._buffer[start : start + length]), start + length
        elif b"transfer-encoding: chunked" in lower:
            if not self._buffer.endswith(b"0\r\n\r\n"):
                return
            chunks = chunked.body(self._buffer, start)
            if chunks is None:
                return
            body, done = chunks
        else:
            body, done = b"", start
        del self._buffer[:done]
        self._answer.set_result((status, head, body))


class Session:
    """An MCP session on a connection of its own."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._path = parts.hostname or "127.0.0.1", parts.port or 80, parts.path
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._number = 0
        self.received = 0

    async def connect(self) -> None:
        """A connection; a new one where the gateway has closed the last, idle for too long."""
        loop = asyncio.get_running_loop()
        _, self.connection = await loop.create_connection(Connection, self._host, self._port)

    async def open(self) -> Session:
        """Connect and shake hands."""
        await self.connect()
        params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        status, head, body = await self._send(self.request("initialize", params))
        if status != 200 or b'"result"' not in body:
            msg = f"initialize: {status} {body[:200]!r}"
            raise ConnectionError(msg)
        self._headers += f"mcp-protocol-version: {VERSION}\r\n"
        at = head.lower().find(b"\r\nmcp-session-id:")
        if at >= 0:
            self._headers += head[at + 2 :].split(b"\r\n", 1)[0].decode() + "\r\n"
        await self._send(self._post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'))
        return self

    def close(self) -> None:
        self.connection.transport.close()

    def request(self, method: str, params: dict[str, Any]) -> bytes:
        """The bytes of a request with a number of its own."""
        self._number += 1
        return self._post(
            json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}).encode()
        )

    def _post(self, body: bytes) -> bytes:
        return (
            f"POST {self._path} HTTP/1.1\r\nhost: {self._host}:{self._port}\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\n{self._headers}content-length: {len(body)}\r\n\r\n"
        ).encode() + body

    async def _send(self, request: bytes) -> tuple[int, bytes, bytes]:
        async with asyncio.timeout(SECONDS):
            return await self.connection.exchange(request)

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result. ConnectionError when there is none."""
        status, head, body = await self._send(self.request(method, params))
        self.received += len(body)
        lines = body.splitlines() if b"text/event-stream" in head else [b"data: " + body]
        for line in lines:
            if line.startswith(b"data:") and line[5:].strip():
                found = json.loads(line[5:]) if b'"result"' in line else {}
                if found.get("id") == self._number:
                    return dict(found["result"])
        msg = f"{method}: {status} {body[:200]!r}"
        raise ConnectionError(msg)

    async def tools(self) -> list[dict[str, Any]]:
        """All pages of tools/list."""
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            result = await self.call("tools/list", params)
            found += result["tools"]
            if not result.get("nextCursor"):
                return found
            params = {"cursor": result["nextCursor"]}


@dataclasses.dataclass
class Loaded:
    """What a span of load gave."""

    calls: int = 0
    failed: int = 0
    first_failure: str = ""
    latencies: list[float] = dataclasses.field(default_factory=list)
    """Seconds, of all calls."""


async def drive(sessions: list[Session], tool: str, arguments: dict[str, Any], seconds: float) -> Loaded:
    """Call the tool on every session, again as soon as it answers, for that long."""
    loaded = Loaded()
    until = time.perf_counter() + seconds
    expected = b"hello"  # stands in the arguments and so in every right answer

    async def one(session: Session) -> None:
        params = {"name": tool, "arguments": arguments}
        begun = time.perf_counter()
        while begun < until:
            status, body = 0, b""
            try:
                if session.connection.transport.is_closing():
                    await session.connect()
                status, _, body = await session.connection.exchange(session.request("tools/call", params))
            except OSError as error:
                body = str(error).encode()
            ended = time.perf_counter()
            good = status == 200 and expected in body and b'"isError":true' not in body.replace(b" ", b"")
            loaded.latencies.append(ended - begun)
            loaded.calls += good
            if not good:
                loaded.failed += 1
                loaded.first_failure = loaded.first_failure or f"{status} {body[:200]!r}"
            begun = ended

    async with asyncio.timeout(seconds + SECONDS):
        await asyncio.gather(*map(one, sessions))
    return loaded
