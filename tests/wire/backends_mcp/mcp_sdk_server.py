"""A server of the official SDK, in a process of its own: `mcp_sdk_server.py PORT`, or `mcp_sdk_server.py stdio`.

`/mcp` speaks both eras. `/old/mcp` is the same server behind a front that refuses the modern one.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel

server = MCPServer("sdk", version="9")


class Sum(BaseModel):
    total: int


class Answer(BaseModel):
    yes: bool


@server.tool(title="Echo", annotations={"readOnlyHint": True})  # type: ignore[arg-type]
def echo(message: str) -> str:
    """Say it again."""
    return message


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Report progress."""
    for step in range(to):
        await ctx.report_progress(step + 1, to, f"step {step + 1}")
    return "counted"


@server.tool()
async def ask(ctx: Context) -> str:
    """Ask the user."""
    answer = await ctx.elicit("Well?", Answer)
    return f"answered: {answer.action}"


@server.tool()
def boom() -> str:
    """Fail."""
    msg = "boom"
    raise ValueError(msg)


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Add a tool and announce it."""
    server.add_tool(lambda: name, name=name, description="New")
    await ctx.notify_tools_changed()
    return name


@server.tool()
async def hang() -> str:
    """Never answer."""
    await asyncio.Event().wait()
    return ""


class Front:
    """Routes `/old` to the same application, without its modern half."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/old/"):
            scope = {**scope, "path": scope["path"].removeprefix("/old"), "raw_path": b"/mcp"}
            if (b"mcp-protocol-version", b"2026-07-28") in scope["headers"]:
                await send({"type": "http.response.start", "status": 400, "headers": []})
                await send({"type": "http.response.body", "body": b"Bad Request"})
                return
        await self._app(scope, receive, send)


def main() -> None:
    if sys.argv[1] == "stdio":
        server.run("stdio")
        return
    listener = socket.socket()
    listener.bind(("127.0.0.1", int(sys.argv[1])))
    listener.listen()
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(Front(server.streamable_http_app()), log_level="error")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
