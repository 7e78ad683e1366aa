"""The REST service behind the conformance suite's plain tools: `python conformance/fixture_service.py --port N`.

In: requests that the gateway builds from the Tool resources of catalog/tools.yaml. Out: what the suite wants to see
from the tools of those names, as a REST service would answer it. Started by run.py.

`POST /tool-change` publishes one more tool at the control plane, or withdraws it again: the list of tools changes while
a client listens, by the road on which it changes in production.
"""

from __future__ import annotations

import argparse
import base64
import sys
from typing import Final

import aiohttp
from aiohttp import web

PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
"""One red pixel."""

WAV: Final = (
    b"RIFF" + (44).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    + bytes.fromhex("0100 0100 401f0000 401f0000 0100 0800") + b"data" + (8).to_bytes(4, "little") + bytes([128] * 8)
)  # fmt: skip
"""A millisecond of silence."""

EXTRA: Final = "tenant/conformance/rest.test_extra_tool"
CONTROL_PLANE: Final = web.AppKey("control_plane", str)


def app(control_plane: str) -> web.Application:
    """The service. `control_plane`: `http://host:port` of the example control plane."""
    made = web.Application()
    made[CONTROL_PLANE] = control_plane
    made.router.add_get("/text", _text)
    made.router.add_get("/image", _image)
    made.router.add_get("/audio", _audio)
    made.router.add_get("/document", _document)
    made.router.add_get("/error", _error)
    made.router.add_post("/echo", _echo)
    made.router.add_post("/tool-change", _tool_change)
    return made


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--control-plane", required=True, metavar="URL")
    options = parser.parse_args(arguments)
    web.run_app(app(options.control_plane), host="127.0.0.1", port=options.port, print=None)
    return 0


async def _text(_: web.Request) -> web.Response:
    return web.Response(text="This is a simple text response for testing.")


async def _image(_: web.Request) -> web.Response:
    return web.Response(body=PNG, content_type="image/png")


async def _audio(_: web.Request) -> web.Response:
    return web.Response(body=WAV, content_type="audio/wav")


async def _document(_: web.Request) -> web.Response:
    return web.Response(body=b"%PDF-1.7\n", content_type="application/pdf")


async def _error(_: web.Request) -> web.Response:
    return web.Response(status=422, text="This tool intentionally returns an error for testing")


async def _echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read(), content_type="application/json")


async def _tool_change(request: web.Request) -> web.Response:
    document = {
        "apiVersion": "ctl.arion.io/v1alpha1",
        "kind": "McpTool",
        "metadata": {"name": EXTRA},
        "spec": {
            "namespace": "rest",
            "name": "test_extra_tool",
            "description": "Comes and goes",
            "rest_backend": {"method": "GET", "path": "/text", "cluster": "fixtures"},
        },
    }
    resources = f"{request.app[CONTROL_PLANE]}/resources"
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
        async with http.delete(f"{resources}/McpTool/{EXTRA}") as response:
            withdrawn = response.status == 200
        if not withdrawn:
            async with http.put(resources, json=document) as response:
                response.raise_for_status()
    return web.Response(text="withdrawn" if withdrawn else "published")


if __name__ == "__main__":
    sys.exit(main())
