"""A cheap MCP server for benchmarks: `python -m benchmarks.mcp_server PORT TOOLS [PAGE]`.

Of 2026-07-28 and, for gateways that know no more, of the handshake revisions; JSON answers, PAGE tools (250) a page. It
writes HTTP by hand, so that it takes little of the machine from the gateway that is measured. SIGUSR1 makes it slow
(every answer half a second late), SIGUSR2 quick again.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import Any

import msgspec
import uvloop

from benchmarks import chunked

PAGE = 250
MODERN = b"mcp-protocol-version: 2026-07-28"
SLOW = 0.5
META = {"io.modelcontextprotocol/serverInfo": {"name": "bench", "version": "1"}}


class Server(asyncio.Protocol):
    """One connection: requests with a Content-Length, one after the other."""

    tools: list[dict[str, Any]]
    page = PAGE
    delay = 0.0
    transport: asyncio.Transport

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvloop's is no subclass
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            if b"transfer-encoding: chunked" in head:
                whole = chunked.body(self._buffer, end + 4)
                if whole is None:
                    return
                body, done = whole
            else:
                at = head.find(b"content-length:")
                done = end + 4 + (int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0)
                if len(self._buffer) < done:
                    return
                body = self._buffer[end + 4 : done]
            self._buffer = self._buffer[done:]
            if head.startswith(b"post"):
                self._answer(msgspec.json.decode(body), modern=MODERN in head)
            else:  # no stream of its own, and no session to end
                self._write(b"405 Method Not Allowed" if head.startswith(b"get") else b"200 OK", None)

    def _answer(self, asked: dict[str, Any], *, modern: bool) -> None:
        if "id" not in asked:
            self._write(b"202 Accepted", None)
            return
        found = self._result(asked["method"], asked.get("params") or {})
        if found is None:
            error = {"code": -32601, "message": "Method not found"}
            status = b"404 Not Found" if modern else b"200 OK"
            self._write(status, {"jsonrpc": "2.0", "id": asked["id"], "error": error})
        else:
            self._write(b"200 OK", {"jsonrpc": "2.0", "id": asked["id"], "result": found})

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        done = {"resultType": "complete", "_meta": META}
        if method == "tools/call":
            text = json.dumps(params.get("arguments"))
            return {**done, "content": [{"type": "text", "text": text}]}
        if method == "tools/list":
            at = int(params.get("cursor") or 0)
            more = {"nextCursor": str(at + self.page)} if at + self.page < len(self.tools) else {}
            return {**done, "ttlMs": 0, "cacheScope": "public", "tools": self.tools[at : at + self.page], **more}
        if method == "server/discover":
            capabilities = {"tools": {"listChanged": False}}
            supported = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
            return {**done, **supported, "ttlMs": 0, "cacheScope": "public"}
        if method == "initialize":
            agreed = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": False}}}
            return {**agreed, "serverInfo": {"name": "bench", "version": "1"}}
        return {} if method == "ping" else None

    def _write(self, status: bytes, message: dict[str, Any] | None) -> None:
        body = b"" if message is None else msgspec.json.encode(message)
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


async def main(port: int, count: int, page: int) -> None:
    Server.page = page
    Server.tools = [tool(number) for number in range(count)]
    loop = asyncio.get_running_loop()
    for number, delay in ((signal.SIGUSR1, SLOW), (signal.SIGUSR2, 0.0)):
        loop.add_signal_handler(number, setattr, Server, "delay", delay)
    server = await loop.create_server(Server, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else PAGE))
