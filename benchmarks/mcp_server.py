"""A cheap MCP server for benchmarks: `python -m benchmarks.mcp_server PORT TOOLS`. Of 2026-07-28, with JSON answers.

It writes HTTP by hand, so that it takes little of the machine from the gateway that is measured. SIGUSR1 makes it slow
(every answer half a second late), SIGUSR2 quick again.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import Any

PAGE = 250
SLOW = 0.5
META = {"io.modelcontextprotocol/serverInfo": {"name": "bench", "version": "1"}}


class Server(asyncio.Protocol):
    """One connection: requests with a Content-Length, one after the other."""

    tools: list[dict[str, Any]]
    delay = 0.0
    transport: asyncio.Transport

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._buffer) < end + 4 + length:
                return
            body, self._buffer = self._buffer[end + 4 : end + 4 + length], self._buffer[end + 4 + length :]
            self._answer(json.loads(body))

    def _answer(self, asked: dict[str, Any]) -> None:
        found = self._result(asked["method"], asked["params"])
        if found is None:
            error = {"code": -32601, "message": "Method not found"}
            self._write(b"404 Not Found", {"jsonrpc": "2.0", "id": asked["id"], "error": error})
        else:
            self._write(b"200 OK", {"jsonrpc": "2.0", "id": asked["id"], "result": found})

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        done = {"resultType": "complete", "_meta": META}
        if method == "tools/call":
            text = json.dumps(params.get("arguments"))
            return {**done, "content": [{"type": "text", "text": text}]}
        if method == "tools/list":
            at = int(params.get("cursor", 0))
            more = {"nextCursor": str(at + PAGE)} if at + PAGE < len(self.tools) else {}
            return {**done, "ttlMs": 0, "cacheScope": "public", "tools": self.tools[at : at + PAGE], **more}
        if method == "server/discover":
            capabilities = {"tools": {"listChanged": False}}
            supported = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
            return {**done, **supported, "ttlMs": 0, "cacheScope": "public"}
        return None

    def _write(self, status: bytes, message: dict[str, Any]) -> None:
        body = json.dumps(message, separators=(",", ":")).encode()
        whole = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
        whole %= (status, len(body), body)
        if self.delay:
            asyncio.get_running_loop().call_later(self.delay, self.transport.write, whole)
        else:
            self.transport.write(whole)


def tool(number: int, size: int = 1500) -> dict[str, Any]:
    """A tool of about `size` bytes."""
    properties = {
        f"parameter_{position}": {
            "type": "string",
            "description": f"The {position}. thing that tool {number} wants to know",
        }
        for position in range(max(1, (size - 300) // 110))
    }
    schema = {"type": "object", "properties": {"message": {"type": "string"}, **properties}}
    description = f"Tool number {number}: says its arguments again, for catalogs with many entries"
    return {"name": f"tool_{number}", "description": description, "inputSchema": schema}


def spec(port: int, namespace: str = "up") -> dict[str, Any]:
    """The DynamicMcpServer of a server on that port."""
    url = f"http://127.0.0.1:{port}/mcp"
    return {"namespace": namespace, "description": "A benchmark's", "transport": "StreamableHttp", "url": url}


async def listening(port: int, seconds: float = 30) -> None:
    """Wait until somebody listens on the port."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


async def main(port: int, count: int) -> None:
    Server.tools = [tool(number) for number in range(count)]
    loop = asyncio.get_running_loop()
    for number, delay in ((signal.SIGUSR1, SLOW), (signal.SIGUSR2, 0.0)):
        loop.add_signal_handler(number, setattr, Server, "delay", delay)
    server = await loop.create_server(Server, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
