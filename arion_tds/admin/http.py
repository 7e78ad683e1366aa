"""The admin listener: health, readiness, metrics, and what the gateway holds.

In: HTTP from operators and probes. Out: JSON and Prometheus text. Started by app on its own address, loopback unless
the config says otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from aiohttp import web

from arion_tds import metrics as metrics_names

_JSON: Final = "application/json"


@dataclasses.dataclass(frozen=True, slots=True)
class AdminSources:
    """What the pages show, as functions that give the state of this moment as JSON values."""

    ready: Callable[[], Mapping[str, object]]
    config_dump: Callable[[], Mapping[str, object]]
    problems: Callable[[], Mapping[str, object]]
    metrics: Callable[[], bytes]


class AdminListener:
    """Serves until closed. `bound` is the address that was taken (port 0 in the config: any)."""

    def __init__(self, host: str, port: int, sources: AdminSources) -> None:
        """Not listening yet: see `start`."""
        self._host = host
        self._port = port
        self._sources = sources
        self._runner: web.AppRunner | None = None
        self.bound = ""

    async def start(self) -> None:
        """Bind and serve. OSError when the address is taken."""
        app = web.Application(client_max_size=1 << 16)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/config_dump", self._config_dump)
        app.router.add_get("/problems", self._problems)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=2.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, reuse_address=True).start()
        host, port = self._runner.addresses[0][:2]
        self.bound = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def close(self) -> None:
        """Stop serving."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, _request: web.Request) -> web.Response:
        return _json({"status": "ok"})

    async def _readyz(self, _request: web.Request) -> web.Response:
        state = self._sources.ready()
        return _json(state, 200 if state.get("ready") else 503)

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._sources.metrics(), headers={"content-type": metrics_names.CONTENT_TYPE})

    async def _config_dump(self, _request: web.Request) -> web.Response:
        return _json(self._sources.config_dump())

    async def _problems(self, _request: web.Request) -> web.Response:
        return _json(self._sources.problems())


def _json(value: Mapping[str, object], status: int = 200) -> web.Response:
    body = msgspec.json.format(msgspec.json.encode(value), indent=2)
    return web.Response(body=body + b"\n", status=status, content_type=_JSON)
