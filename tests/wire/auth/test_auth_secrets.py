"""A canary in every secret: none of them sings in logs, dumps, metrics, errors, NACKs or what backends are sent."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from auth_people import guarded, token
from gateway_house import BOUND, house, serving, tool
from gateway_upstreams import mcp_upstream, server, source
from pem_files import Authority

from arion_tds.config import judging
from arion_tds.errors import ConfigError

PAGES = ("config_dump", "problems", "status", "metrics", "readyz", "tools", "history", "explain?name=a.bad")


async def test_no_canary_sings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    canaries = {name: f"canary-{name}-5ecre7" for name in ("session", "header", "admin", "data", "file", "dir")}
    monkeypatch.setenv("SESSION_KEY", canaries["session"])
    monkeypatch.setenv("DATA_SECRET", f"{canaries['data']} is not JSON")
    paths = {name: tmp_path / name for name in ("header", "admin", "file")}
    for name, path in paths.items():
        path.write_text(canaries[name])
    private = Path(Authority().write(tmp_path)["key_file"]).read_text().splitlines()[1]
    bearer = token(sub="ada")
    heard: list[str] = []

    async def broken(request: web.BaseRequest) -> web.Response:
        heard.append(json.dumps([request.raw_path, *request.headers.items()]))
        return web.Response(status=500, text="no")

    config = {
        "sessions": {"key": {"environment": "SESSION_KEY"}},
        "admin": {"address": "127.0.0.1:0", "token": {"file": str(paths["admin"])}},
        "mcp_servers": {"default": {"headers": {"X-Api-Key": {"file": str(paths["header"])}}}},
        "data_sources": {"files": [str(paths["file"])], "environment": ["DATA_SECRET"]},
    }
    seen: list[str] = []
    with caplog.at_level(logging.DEBUG):
        async with (
            asyncio.timeout(3 * BOUND),
            serving(broken) as origin,
            mcp_upstream("t") as up,
            house(guarded(), clusters=[{"name": "echo", "endpoints": [origin]}], **config) as here,
        ):
            await here.put("McpTool", "a/main/a.t", tool("a.t"))
            await here.put("McpDynamicServer", "a/main/up", server("up", up.url))
            bad = [
                ("McpTool", "a/main/a.bad", tool("a.bad", input_schema={"environment_variable": "DATA_SECRET"})),
                ("McpTool", "a/main/a.worse", tool("a.worse", input_schema={"filename": str(paths["file"])})),
                ("McpOpenApiSource", "a/main/b", {**source("b", "x"), "spec": {"environment_variable": "DATA_SECRET"}}),
                ("McpTool", "a/main/a.forbidden", tool("a.forbidden", input_schema={"environment_variable": "PATH"})),
                ("McpDynamicServer", "a/main/down", server("down", f"{origin}/mcp")),
            ]
            for kind, name, spec in bad:
                await here.plane.put(kind, name, spec)
                seen.append((await here.plane.nacked(kind, name)).reason)
            async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {bearer}"}) as http:
                here.a.http, plain = http, here.a.http
                seen.append(json.dumps(await here.a.call("a.t")))
                seen.append(json.dumps(await here.a.call("up.t")))
                seen.append(json.dumps(await here.a.call(bearer)))
                await here.a.initialize()
                here.a.http = plain
            for wrong in (bearer[:-4] + "AAAA", "x." + bearer, bearer + bearer):
                headers = {"Authorization": f"Bearer {wrong}"}
                async with here.http.post(f"{here.a.url}/mcp", json={}, headers=headers) as response:
                    seen += [await response.text(), str(response.headers)]
            shown = {"Authorization": f"Bearer {canaries['admin']}"}
            for page in PAGES:
                async with here.http.get(f"http://{here.gateway.admin}/{page}", headers=shown) as response:
                    seen.append(await response.text())
                async with here.http.get(f"http://{here.gateway.admin}/{page}", headers={"X": "y"}) as response:
                    seen.append(await response.text())
    seen += [record.getMessage() + str(record.exc_info or "") for record in caplog.records if _ours(record)]
    calls = [one for one in heard if "/a/t" in one]
    assert calls
    everything = "\n".join(seen + calls)
    said = everything.replace(f"Unknown tool: {bearer[:256]}", "")  # what a caller sends as a name it gets back
    for name, canary in {**canaries, "key": private, "token": bearer.split(".")[1]}.items():
        assert canary not in said, f"the {name} canary sings"


def _ours(record: logging.LogRecord) -> bool:
    """Whether the process logs it at its default level: the echo of the test's own clients is not the gateway's."""
    return record.name.startswith("arion_tds") or record.levelno >= logging.INFO


@pytest.mark.parametrize("where", ["admin", "sessions", "mcp_servers"])
def test_a_secret_in_the_place_of_its_reference_is_not_repeated(where: str) -> None:
    canary: dict[str, Any] = {"value": "canary-5ecre7"}
    blocks = {
        "admin": {"token": canary},
        "sessions": {"key": canary},
        "mcp_servers": {"default": {"headers": {"X": canary}}},
    }
    listener = {"name": "a", "address": "127.0.0.1:0", "mcp_gateway": {"server_info": {"name": "a", "version": "1"}}}
    with pytest.raises(ConfigError) as caught:
        judging.judge({"listeners": [listener], where: blocks[where]})
    assert "canary" not in str(caught.value)
