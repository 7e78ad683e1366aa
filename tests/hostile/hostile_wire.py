"""A gateway with one tool whose calls are counted, and raw bytes to throw at it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, Final

from aiohttp import web
from gateway_house import BOUND, House, Spec, house, listener, serving, tool

SILENCE: Final = 0.15
"""Seconds without a byte after which nothing more is expected."""

QUICK: Final[Spec] = {"header_timeout": "400ms", "body_timeout": "400ms", "idle_timeout": "5s"}


class Target:
    """The house under attack, and the paths that its backend was asked for."""

    def __init__(self, here: House, asked: list[str]) -> None:
        self.here = here
        self.asked = asked

    @property
    def port(self) -> int:
        return int(self.here.gateway.bound["a"].rpartition(":")[2])

    async def throw(self, data: bytes, *, slowly: bool = False) -> bytes:
        """Send the bytes; whatever comes back until the other side closes or falls silent."""
        async with asyncio.timeout(BOUND):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            found = b""
            try:
                if slowly:
                    for byte in data:
                        writer.write(bytes([byte]))
                        await asyncio.sleep(0)
                else:
                    writer.write(data)
                with contextlib.suppress(TimeoutError, ConnectionError):
                    while True:
                        async with asyncio.timeout(SILENCE):
                            part = await reader.read(65536)
                        if not part:
                            break
                        found += part
            finally:
                writer.close()
            return found

    async def works(self) -> None:
        """An honest client is served as if nothing had happened."""
        before = len(self.asked)
        assert not (await self.here.a.call("a.marker")).get("isError")
        assert len(self.asked) == before + 1
        self.asked.clear()


def request(body: bytes, *headers: bytes, line: bytes = b"POST /mcp HTTP/1.1", length: bool = True) -> bytes:
    """A request with these further header lines."""
    lines = [line, b"Host: 127.0.0.1", b"Content-Type: application/json", b"Accept: application/json", *headers]
    if length:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def call(name: str = "a.marker", **arguments: Any) -> bytes:
    """The body of a tools/call."""
    params = {"name": name, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


@contextlib.asynccontextmanager
async def target(*tools: Spec, **more: Any) -> AsyncIterator[Target]:
    """A gateway with `a.marker` and these tools."""
    asked: list[str] = []

    async def backend(request: web.BaseRequest) -> web.Response:
        asked.append(request.raw_path)
        return web.json_response({"path": request.raw_path, "headers": sorted(request.headers.items())})

    limits = {**QUICK, **more.pop("limits", {})}
    async with serving(backend) as origin:
        clusters = [{"name": "echo", "endpoints": [origin]}]
        async with house(listener(limits=limits, **more.pop("settings", {})), clusters=clusters, **more) as here:
            for one in (tool("a.marker"), *tools):
                await here.put("McpTool", f"a/main/{one['namespace']}.{one['name']}", one)
            yield Target(here, asked)
