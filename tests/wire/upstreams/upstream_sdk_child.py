"""A local MCP server of the official SDK as a child process: `python upstream_sdk_child.py STATE_FOLDER`.

In: a file `more` in the folder: one tool more is served. Out: an MCP server on stdin and stdout. Started by the gateway
in test_upstreams_stdio.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("child", version="1")


@server.tool()
def greet(name: str, title: str | None = None, times: int = 1) -> str:
    """Greet somebody.

    The title stands before the name.
    """
    return " ".join([f"Hello {title + ' ' if title else ''}{name}!"] * times)


@server.tool()
def fail(why: str) -> str:
    """Raise."""
    raise ValueError(why)


@server.tool()
def die() -> str:
    """End without an answer."""
    os._exit(9)


if __name__ == "__main__":
    if (Path(sys.argv[1]) / "more").exists():
        server.add_tool(lambda: "new", name="one_more", description="New")
    server.run("stdio")
