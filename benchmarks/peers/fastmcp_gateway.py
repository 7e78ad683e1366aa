"""FastMCP as a gateway, run by its own Python: `fastmcp_gateway.py PORT rest DOCUMENT BASE` or `PORT mcp URL`.

Its fastest settings: JSON answers, uvloop and httptools, no log of requests, and one session to the MCP server, kept
open, for all calls (its default is a new session, and a new TLS context, for every call: ten times the CPU).
"""

import asyncio
import json
import pathlib
import sys

import fastmcp
import uvloop
from fastmcp.server import create_proxy


async def serve(server: fastmcp.FastMCP, port: int) -> None:
    """Until the process is ended."""
    await server.run_http_async(
        host="127.0.0.1",
        port=port,
        show_banner=False,
        log_level="error",
        json_response=True,
        uvicorn_config={"access_log": False},
    )


async def main(port: int, kind: str, target: str, base: str = "") -> None:
    """The gateway of an OpenAPI document, or of an MCP server."""
    if kind == "mcp":
        async with fastmcp.Client(target) as client:
            await serve(create_proxy(client, name="bench"), port)
        return
    import httpx2

    document = json.loads(pathlib.Path(target).read_text())  # noqa: ASYNC240 - before anybody is served
    await serve(fastmcp.FastMCP.from_openapi(document, client=httpx2.AsyncClient(base_url=base), name="bench"), port)


if __name__ == "__main__":
    uvloop.install()
    asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))
