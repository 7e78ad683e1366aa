"""FastMCP as a gateway, run by its own Python: `fastmcp_gateway.py PORT plain|tuned rest DOCUMENT BASE` or `… mcp URL`.

plain: as its documentation starts it. tuned: JSON answers, uvloop and httptools, and one session to the MCP server,
kept open, for all calls, where plain makes a new one, with a new TLS context, for every call. Neither logs requests.
"""

import asyncio
import json
import pathlib
import sys

import fastmcp
import uvloop
from fastmcp.server import create_proxy


async def serve(server: fastmcp.FastMCP, port: int, *, tuned: bool) -> None:
    """Until the process is ended."""
    await server.run_http_async(
        host="127.0.0.1",
        port=port,
        show_banner=False,
        log_level="error",
        json_response=tuned,
        uvicorn_config={"access_log": False, **({} if tuned else {"http": "h11"})},
    )


async def main(port: int, kind: str, target: str, base: str = "", *, tuned: bool) -> None:
    """The gateway of an OpenAPI document, or of an MCP server."""
    if kind == "mcp" and tuned:
        async with fastmcp.Client(target) as client:
            await serve(create_proxy(client, name="bench"), port, tuned=tuned)
    elif kind == "mcp":
        await serve(create_proxy(target, name="bench"), port, tuned=tuned)
    else:
        import httpx2

        document = json.loads(pathlib.Path(target).read_text())  # noqa: ASYNC240 - before anybody is served
        client = httpx2.AsyncClient(base_url=base)
        await serve(fastmcp.FastMCP.from_openapi(document, client=client, name="bench"), port, tuned=tuned)


if __name__ == "__main__":
    TUNED = sys.argv[2] == "tuned"
    if TUNED:
        uvloop.install()
    asyncio.run(main(int(sys.argv[1]), *sys.argv[3:], tuned=TUNED))
