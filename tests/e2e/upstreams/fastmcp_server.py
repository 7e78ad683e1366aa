"""A FastMCP server over HTTP: `python fastmcp_server.py PORT`, in the environment of modern.txt or of handshake.txt.

FastMCP 4 where that is installed (both eras), else the FastMCP of SDK 1.30 (handshake eras). Started by
test_upstreams_real.py.
"""

from __future__ import annotations

import sys
from typing import Any

port = int(sys.argv[1])
server: Any
try:
    from fastmcp import FastMCP

    server = FastMCP("fast")
    where = {"transport": "http", "host": "127.0.0.1", "port": port}
except ImportError:
    from mcp.server.fastmcp import FastMCP as Older

    server = Older("older", host="127.0.0.1", port=port)
    where = {"transport": "streamable-http"}


@server.tool()
def greet(name: str, title: str | None = None) -> str:
    """Greet somebody."""
    return f"Hello {title + ' ' if title else ''}{name}!"


@server.tool()
def fail(why: str) -> str:
    """Raise."""
    raise ValueError(why)


server.run(**where)
