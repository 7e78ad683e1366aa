"""The HTTP side: publish and withdraw single resources by hand, look at what is published and at the streams.

In: requests. Out: JSON; a fault is `{"error": "sentence"}`. Called by __main__.

    PUT    /resources                      body: a document, a YAML stream or a list, as in a file
                                           200 {kind, name, fleet, version} (a list for a list); all of it or nothing
                                           400 not a document · 409 a file publishes that name · 413 too large
    DELETE /resources/{kind}/{name}?fleet= name percent-encoded or not; 200, 404, 409
    GET    /resources?fleet=               what is published, without the payloads
    GET    /status                         fleets, files with their faults, streams with what they ACKed and NACKed

What is PUT lives in memory beside what the files say, and a file wins: it takes over a name that was PUT.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from control_plane_example import documents
from control_plane_example.documents import Document, Fault
from control_plane_example.server import XdsServer
from control_plane_example.snapshot import Key, Origin

MAX_BODY_BYTES: Final = 32 << 20
_log: Final = logging.getLogger("control_plane")


class HttpApi:
    """Four routes over one XdsServer. `folder_status`: what `GET /status` says about the files."""

    def __init__(self, server: XdsServer, folder_status: Callable[[], dict[str, Any]]) -> None:
        self._server = server
        self._folder_status = folder_status
        self._runner: web.AppRunner | None = None
        self.address = ""

    async def start(self, address: str) -> str:
        """Listen on `host:port` (0: any free port). Returns the address in use; OSError when it cannot be had."""
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_errors_as_json])
        app.router.add_put("/resources", self._put)
        app.router.add_get("/resources", self._list)
        app.router.add_delete("/resources/{kind}/{name:.+}", self._delete)
        app.router.add_get("/status", self._status)
        host, _, port = address.rpartition(":")
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        self._runner = runner
        try:
            await web.TCPSite(runner, host.strip("[]"), int(port)).start()
        except OSError as error:
            raise OSError(f"cannot listen on {address}: {os.strerror(error.errno or 0)}") from error
        bound = runner.addresses[0]
        self.address = f"{host}:{bound[1]}"
        return self.address

    async def stop(self) -> None:
        """Stop listening."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _put(self, request: web.Request) -> web.Response:
        try:
            text = (await request.read()).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            return _fault(400, f"the body is not UTF-8: {error}")
        found = documents.read(text)
        if isinstance(found, Fault):
            return _fault(400, found.text)
        for document in found:
            if self._server.snapshot.origin(document.key) is Origin.FILE:
                return _fault(409, f"{documents.describe(document.key)} is published by a file: change that file")
        self._server.publish([(document.key, document.held) for document in found])
        described = [_describe(document) for document in found]
        single = len(described) == 1 and not text.lstrip().startswith("[")
        return web.json_response(described[0] if single else described)

    async def _delete(self, request: web.Request) -> web.Response:
        kind = request.match_info["kind"]
        type_url = documents.TYPE_URLS.get(kind)
        if type_url is None:
            return _fault(404, f"kind must be one of {', '.join(documents.TYPE_URLS)}, not {kind!r}")
        fleet = request.query.get("fleet", documents.DEFAULT_FLEET)
        key = Key(fleet, type_url, request.match_info["name"])
        origin = self._server.snapshot.origin(key)
        if origin is None:
            return _fault(404, f"{documents.describe(key)} is not published")
        if origin is Origin.FILE:
            return _fault(409, f"{documents.describe(key)} is published by a file: remove it there")
        self._server.publish([], [key])
        return web.json_response({"kind": kind, "name": key.name, "fleet": fleet})

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response(
            [
                {
                    "kind": documents.kind_of(key.type_url),
                    "name": key.name,
                    "fleet": key.fleet,
                    "version": held.version,
                    "origin": origin.value,
                }
                for key, held, origin in self._server.snapshot.entries(request.query.get("fleet"))
            ]
        )

    async def _status(self, _: web.Request) -> web.Response:
        return web.json_response({**self._server.status(), **self._folder_status()})


def _describe(document: Document) -> dict[str, str]:
    key = document.key
    return {"kind": document.kind, "name": key.name, "fleet": key.fleet, "version": document.held.version}


def _fault(code: int, text: str) -> web.Response:
    _log.warning("HTTP %d: %s", code, text)
    return web.json_response({"error": text}, status=code)


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge:
        return _fault(413, f"the body is larger than {MAX_BODY_BYTES} bytes: send it in parts")
    except web.HTTPException as error:
        error.content_type = "application/json"
        error.text = json.dumps({"error": f"{request.method} {request.path}: {error.reason}"})
        raise
