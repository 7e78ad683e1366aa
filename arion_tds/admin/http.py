"""The admin listener: health, readiness, metrics, what the gateway holds and why, live events, and the page of it all.

In: HTTP from operators, probes, `arion-tds explain` and its like. Out: JSON, Prometheus text, server-sent events, the
page's files. Read only: nothing here changes the gateway. Started by app on its own address, loopback unless the config
says otherwise. There it answers to names of this machine only, so that no web page can read it by a name of its own.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

import msgspec
from aiohttp import web

from arion_tds import metrics as metrics_names
from arion_tds.admin import ui
from arion_tds.admin.panel import MAX_PAGE, Panel
from arion_tds.auth.rbac import Token

KEEPALIVE: Final = 15.0
"""Seconds between comments on a silent event stream."""

_JSON: Final = "application/json"
_MAX_TEXT: Final = 512
_OPEN: Final = frozenset(("/healthz", "/readyz"))
_MAX_CLAIMS: Final = 32
_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AdminListener:
    """Serves until closed. `bound` is the address that was taken (port 0 in the config: any)."""

    def __init__(self, panel: Panel, *, token: bytes | None = None, reuse_port: bool = False) -> None:
        """Not listening yet: see `start`. `token` must be shown by whoever asks for more than health; None: nothing.

        `reuse_port`: other workers have the same address.
        """
        self._reuse_port = reuse_port or None
        self._token = token
        self._panel = panel
        self._runner: web.AppRunner | None = None
        self.bound = ""

    async def start(self, host: str, port: int) -> None:
        """Bind and serve. OSError when the address is taken."""
        guard: list[Any] = [_local_only] if _is_loopback(host) else []
        if self._token is not None:
            guard.append(_tokened(self._token))
        app = web.Application(client_max_size=1 << 16, middlewares=[*guard, _in_words])
        pages: dict[str, _Handler] = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
            "/config_dump": self._config_dump,
            "/problems": self._problems,
            "/status": self._status,
            "/explain": self._explain,
            "/history": self._history,
            "/tools": self._tools,
            "/tool": self._tool,
            "/events": self._events,
            "/": self._page,
            "/ui/{file}": self._page,
        }
        for path, handler in pages.items():
            app.router.add_get(path, handler)
        # Nothing here reads a body: none is unpacked, as aiohttp would to put it away.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=2.0, auto_decompress=False)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, reuse_address=True, reuse_port=self._reuse_port).start()
        taken = self._runner.addresses[0]
        self.bound = f"[{taken[0]}]:{taken[1]}" if ":" in taken[0] else f"{taken[0]}:{taken[1]}"

    async def close(self) -> None:
        """Stop serving."""
        self._panel.events.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, _request: web.Request) -> web.Response:
        return _json({"status": "ok"})

    async def _readyz(self, _request: web.Request) -> web.Response:
        state = await self._panel.ready()
        return _json(state, 200 if state.get("ready") else 503)

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=await self._panel.metrics(), headers={"content-type": metrics_names.CONTENT_TYPE})

    async def _config_dump(self, _request: web.Request) -> web.Response:
        return _json(await self._panel.config_dump())

    async def _status(self, _request: web.Request) -> web.Response:
        return _json(await self._panel.status())

    async def _problems(self, request: web.Request) -> web.Response:
        return _json(await self._panel.problems(_text(request, "scope")))

    async def _history(self, request: web.Request) -> web.Response:
        scope, name = _text(request, "scope"), _text(request, "name")
        return _json(await self._panel.history(scope, name, _limit(request)))

    async def _explain(self, request: web.Request) -> web.Response:
        name = _text(request, "name")
        if name is None:
            raise _bad("say which tool: /explain?name=NAME, and &scope=SCOPE if several scopes know it")
        return _json(await self._panel.explain(name, _text(request, "scope"), _token(request)))

    async def _tools(self, request: web.Request) -> web.Response:
        scope, namespace = _text(request, "scope"), _text(request, "namespace")
        query, after = _text(request, "query") or "", _text(request, "after") or ""
        found = await self._panel.tools(scope, namespace, query, after, _limit(request))
        if found is None:
            raise _missing(f"no listener serves the scope {scope!r}")
        return _json(found)

    async def _tool(self, request: web.Request) -> web.Response:
        name = _text(request, "name") or ""
        found = self._panel.tool(_text(request, "scope"), name)
        if found is None:
            raise _missing(f"no tool {name!r} is served there: /explain?name=… says why")
        return _json(found)

    async def _page(self, request: web.Request) -> web.Response:
        found = ui.file(request.match_info.get("file", "index.html"))
        if found is None:
            raise _missing("there is no such file")
        body, kind = found
        return web.Response(body=body, content_type=kind, charset="utf-8", headers={**_HEADERS, **ui.POLICY})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        last = request.headers.get("last-event-id", "")
        follower = self._panel.events.follow(int(last[:18]) if last.isascii() and last.isdigit() else None)
        if follower is None:
            return _json({"error": "no further readers of /events are taken: close some"}, 503)
        self._panel.follow()
        response = web.StreamResponse(headers={**_HEADERS, "content-type": "text/event-stream"})
        try:
            await response.prepare(request)
            await response.write(b": hello\n\n")
            while True:
                try:
                    async with asyncio.timeout(KEEPALIVE):
                        told = await follower.take()
                except TimeoutError:
                    told = b": still here\n\n"
                if not told:
                    break
                await response.write(told)
        except ConnectionError:
            pass  # the reader has gone
        finally:
            self._panel.events.leave(follower)
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response


@web.middleware
async def _local_only(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """On a loopback address: a name that is not this machine's is a web page's trick (DNS rebinding)."""
    host = request.host.rpartition(":")[0] if not request.host.endswith("]") else request.host
    if not _is_loopback((host or request.host).strip("[]")):
        return _json({"error": f"the admin listener is asked by addresses of this machine, not as {host[:256]!r}"}, 421)
    return await handler(request)


def _tokened(token: bytes) -> Callable[[web.Request, _Handler], Coroutine[Any, Any, web.StreamResponse]]:
    """Ask for the token: as a bearer token, or as the password of Basic, which browsers ask people for."""

    @web.middleware
    async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
        if request.path in _OPEN or hmac.compare_digest(_shown(request), token):
            return await handler(request)
        response = _json({"error": "show the admin token (admin.token in the config)"}, 401)
        response.headers["www-authenticate"] = 'Basic realm="arion-tds", charset="UTF-8"'
        return response

    return guard


def _shown(request: web.Request) -> bytes:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode("utf-8", "surrogateescape")
    if scheme.lower() == "basic":
        with contextlib.suppress(ValueError):
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
    return b""


@web.middleware
async def _in_words(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Errors as JSON too."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        text = error.text if error.content_type == _JSON and error.text else None
        why = text if text is not None else f"{error.reason}: {request.method} {request.path[:256]}"
        return _json({"error": why}, error.status)


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bad(why: str) -> web.HTTPBadRequest:
    return web.HTTPBadRequest(text=why, content_type=_JSON)


def _missing(why: str) -> web.HTTPNotFound:
    return web.HTTPNotFound(text=why, content_type=_JSON)


def _text(request: web.Request, name: str) -> str | None:
    value = request.query.get(name)
    if value is not None and len(value) > _MAX_TEXT:
        raise _bad(f"{name} is longer than {_MAX_TEXT} characters")
    return value or None


def _limit(request: web.Request) -> int:
    value = request.query.get("limit", "100")
    if not (value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= MAX_PAGE):
        raise _bad(f"limit must be a number from 1 to {MAX_PAGE}")
    return int(value)


def _token(request: web.Request) -> Token | None:
    """The caller that `claim=NAME=VALUE` and `header=NAME=VALUE` describe; a name that is given twice is a list."""
    parts: dict[str, dict[str, list[str]]] = {"claim": {}, "header": {}}
    for kind, fields in parts.items():
        given = request.query.getall(kind, [])
        if len(given) > _MAX_CLAIMS:
            raise _bad(f"more than {_MAX_CLAIMS} of {kind}")
        for one in given:
            name, sign, value = one.partition("=")
            if not sign or not name:
                raise _bad(f"{kind} must be NAME=VALUE, not {one[:80]!r}")
            fields.setdefault(name, []).append(value)
    if not any(parts.values()):
        return None
    return Token(header=parts["header"], claims=parts["claim"])


def _json(value: Mapping[str, object], status: int = 200) -> web.Response:
    body = msgspec.json.format(msgspec.json.encode(value), indent=2)
    return web.Response(body=body + b"\n", status=status, content_type=_JSON, headers=_HEADERS)
