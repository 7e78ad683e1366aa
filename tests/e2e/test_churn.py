"""A control plane that is restarted again and again, over a line that cuts and garbles: nothing is lost or piles up.

`make test` restarts it a few times, `make churn` (ARION_TDS_CHURN=200) two hundred times.
"""

from __future__ import annotations

import dataclasses
import os
import random
import sys
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import yaml
from e2e_faulty_line import FaultyLine
from e2e_processes import Process, eventually, free_ports

from control_plane_example.mock import MockControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")]

RESTARTS: Final = int(os.environ.get("ARION_TDS_CHURN", "60"))
NAMES: Final = 40
STEPS: Final = 30
GROWTH_MB: Final = 12.0
"""What the process may grow from a quarter of the way to the end: less than the noise of its allocator."""

SCOPES: Final = ("a/main", "b/main")


@dataclasses.dataclass
class Truth:
    """What the control plane publishes, by full name: descriptions of tools, and operations of sources."""

    tools: dict[str, str] = dataclasses.field(default_factory=dict)
    sources: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def of(self, scope: str) -> dict[str, str]:
        """What a listener of the scope lists, with descriptions."""
        prefix = f"{scope}/"
        found = {name.removeprefix(prefix): text for name, text in self.tools.items() if name.startswith(prefix)}
        for name, operations in self.sources.items():
            if name.startswith(prefix):
                found |= {f"{name.removeprefix(prefix)}.{one}": f"Operation {one}" for one in operations}
        return found


async def change(plane: MockControlPlane, truth: Truth, rng: random.Random, number: int) -> None:
    """One random change of the content."""
    scope = rng.choice((*SCOPES, "c/main"))
    name = f"{scope}/x.tool{rng.randrange(NAMES)}"
    match rng.randrange(10):
        case 0 | 1:
            plane.remove("McpTool", name)
            truth.tools.pop(name, None)
        case 2:
            bad = {"namespace": "x", "name": "bad", "description": "", "rest_backend": rest()}
            await plane.put("McpTool", f"{scope}/x.bad{rng.randrange(3)}", bad)
        case 3:
            source = f"{scope}/api{rng.randrange(2)}"
            if plane.remove("McpOpenApiSource", source):
                del truth.sources[source]
            else:
                truth.sources[source] = tuple(f"op{number}_{each}" for each in range(rng.randrange(1, 4)))
                spec = {"inline_string": document(truth.sources[source])}
                await plane.put("McpOpenApiSource", source, {"spec": spec, "namespace": "api", "cluster": "echo"})
        case _:
            text = f"As of change {number} " + "padded " * rng.randrange(200)
            good = {"namespace": "x", "name": name.rpartition(".")[2], "description": text, "rest_backend": rest()}
            await plane.put("McpTool", name, good)
            truth.tools[name] = text


def rest() -> dict[str, str]:
    return {"method": "GET", "path": "/", "cluster": "echo"}


def document(operations: tuple[str, ...]) -> str:
    paths = {
        f"/{name}": {
            "get": {"operationId": name, "summary": f"Operation {name}", "responses": {"200": {"description": ""}}}
        }
        for name in operations
    }
    return yaml.safe_dump({"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths})


def config(plane: str, admin: int, ports: list[int], cache: Path) -> dict[str, Any]:
    listeners = [
        {
            "name": scope[0],
            "address": f"127.0.0.1:{port}",
            "page_size": 1000,
            "mcp_gateway": {
                "server_info": {"name": scope[0], "version": "1"},
                "tools_mode": {},
                "tds": {"config_name": "main"},
            },
        }
        for scope, port in zip(SCOPES, ports, strict=True)
    ]
    return {
        "control_plane": {"address": plane, "backoff_base": "10ms", "backoff_max": "50ms", "connect_timeout": "1s"},
        "admin": {"address": f"127.0.0.1:{admin}"},
        "log": {"level": "warning"},
        "cache": {"directory": str(cache)},
        "listeners": listeners,
        "clusters": [{"name": "echo", "endpoints": ["http://127.0.0.1:1"]}],
    }


async def lists(http: aiohttp.ClientSession, port: int) -> dict[str, str]:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with http.post(f"http://127.0.0.1:{port}/mcp", json=body) as response:
        tools = (await response.json())["result"]["tools"]
    return {tool["name"]: tool["description"] for tool in tools}


def memory_mb(process: Process) -> float:
    pages = int(Path(f"/proc/{process.child.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def test_rolling_restarts_cuts_and_garbled_frames_lose_no_update_and_leave_memory_flat(tmp_path: Path) -> None:
    seed = int(os.environ.get("ARION_TDS_CHURN_SEED", "20260728"))
    rng, truth = random.Random(seed), Truth()
    admin, *ports = free_ports(1 + len(SCOPES))
    path = tmp_path / "gateway.yaml"
    async with MockControlPlane() as plane, FaultyLine(plane.address, rng) as line, aiohttp.ClientSession() as http:
        path.write_text(yaml.safe_dump(config(line.address, admin, ports, tmp_path / "cache")), encoding="utf-8")
        gateway = Process.module(tmp_path / "gateway.log", "arion_tds", "serve", "-c", str(path), "--workers", "1")

        async def agree() -> None:
            for scope, port in zip(SCOPES, ports, strict=True):
                found, wanted = await lists(http, port), truth.of(scope)
                assert found == wanted, f"seed {seed}, scope {scope}, {line.faults} faults\n{gateway.log()[-3000:]}"

        try:
            await eventually(agree, timeout=30)
            early = 0.0
            for number in range(RESTARTS):
                line.healthy = False
                line.cut()  # so that the next stream has a fate
                for step in range(STEPS):
                    await change(plane, truth, rng, number * STEPS + step)
                    match rng.randrange(6):
                        case 0:
                            plane.cut()
                        case 1:
                            line.cut()
                        case _:
                            for _ in range(rng.randrange(8)):  # some time goes by
                                await lists(http, ports[0])
                await plane.restart()
                for step in range(3):
                    await change(plane, truth, rng, 100_000 + number * 3 + step)
                line.healthy = True
                line.cut()
                await eventually(agree, timeout=30)
                if number == RESTARTS // 4:
                    early = memory_mb(gateway)
            grown = memory_mb(gateway) - early
            assert line.faults > RESTARTS // 2
            assert grown < GROWTH_MB, f"{early:.1f} MB at a quarter, {grown:.1f} MB more at the end"
            said = f"{RESTARTS} restarts, {line.faults} faults of the line, {early:.1f} MB, grown {grown:+.1f} MB"
            print(said)  # noqa: T201 - for `make churn`
        finally:
            status = gateway.stop()
        assert status == 0
        assert "Traceback" not in gateway.log()
