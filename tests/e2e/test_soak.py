"""A gateway among everything that can go wrong, for as long as one likes: nothing leaks, and every error has its fault.

`make test` does it for some seconds, `make soak` (ARION_TDS_SOAK=600) for ten minutes.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import yaml
from e2e_processes import Process, eventually, free_ports
from e2e_soak import SCOPES, Moody, Scene, everybody, publish, tidy

from control_plane_example.mock import MockControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="it is looked at through /proc")]

SECONDS: Final = float(os.environ.get("ARION_TDS_SOAK", "6"))
LONG: Final = 150.0
"""Seconds from which on memory is judged: before, caches and the allocator still fill."""

GROWTH: Final = 0.05
"""What memory may grow from the second to the last fifth of the time."""

SPARE: Final = 3
"""Descriptors and tasks that may be more than at the beginning: a probe of the moment, a connection that waits to be
taken."""


def config(scene: Scene, listeners: list[int], admin: int) -> dict[str, Any]:
    clusters = [
        {"name": name, "endpoints": [f"http://127.0.0.1:{port}"], "timeout": timeout, "idle_timeout": "2s"}
        for name, port, timeout in (
            ("steady", scene.ports["steady"], "30s"),
            ("shaky", scene.ports["shaky"], "2s"),
            ("moody", scene.moody.port, "30s"),
        )
    ]
    impatient = {"timeout": "2s", "connect_timeout": "1s", "handshake_timeout": "2s"}
    steady = {"url": f"http://127.0.0.1:{scene.ports['steadymcp']}/mcp", "timeout": "30s"}
    return {
        "control_plane": {"address": scene.plane.address, "backoff_base": "20ms", "backoff_max": "200ms"},
        "admin": {"address": f"127.0.0.1:{admin}"},
        "log": {"level": "warning"},
        "cache": {"directory": str(scene.folder / "cache")},
        "listeners": [
            {
                "name": scope[0],
                "address": f"127.0.0.1:{port}",
                "keepalive": "1s",
                "limits": {"write_timeout": "2s"},
                "mcp_gateway": {
                    "server_info": {"name": scope[0], "version": "1"},
                    "tools_mode": {},
                    "tds": {"config_name": "main"},
                    **({"search": {}} if scope[0] == "b" else {}),
                },
            }
            for scope, port in zip(SCOPES, listeners, strict=True)
        ],
        "clusters": clusters,
        "mcp_servers": {"discovery_timeout": "3s", "default": impatient, "servers": [steady]},
    }


def memory_mb(process: Process) -> float:
    pages = int(Path(f"/proc/{process.child.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def descriptors(process: Process) -> int:
    return len(os.listdir(f"/proc/{process.child.pid}/fd"))


async def tasks(scene: Scene) -> int:
    async with aiohttp.ClientSession() as http, http.get(f"{scene.admin}/metrics") as response:
        (line,) = (one for one in (await response.text()).splitlines() if one.startswith("arion_tds_tasks "))
    return int(float(line.split()[-1]))


async def soaked(scene: Scene, gateway: Process, seconds: float) -> list[float]:
    """Let everybody at it for so long; memory in MB, twice a second."""
    loop, samples = asyncio.get_running_loop(), list[float]()
    scene.done.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(everybody(scene))
        end = loop.time() + seconds
        while (begun := loop.time()) < end:
            await asyncio.sleep(0.5)
            scene.stalled = max(scene.stalled, loop.time() - begun - 0.5)
            samples.append(memory_mb(gateway))
        scene.done.set()
    return samples


async def settled(scene: Scene, gateway: Process) -> tuple[int, int]:
    """Descriptors and tasks of the gateway, once it has not let go of any for longer than it keeps unused ones."""
    tidy(scene)
    least, looks = (1 << 30, 1 << 30), 0
    while looks < 8:
        await asyncio.sleep(0.5)
        now = descriptors(gateway), await tasks(scene)
        looks = looks + 1 if now[0] >= least[0] and now[1] >= least[1] else 0
        least = min(least[0], now[0]), min(least[1], now[1])
    return least


async def test_nothing_leaks_and_every_error_has_its_fault(tmp_path: Path) -> None:
    seed = int(os.environ.get("ARION_TDS_SOAK_SEED", "20260728"))
    names = ("steady", "shaky", "steadymcp", "shakymcp")
    admin, a, b, *ports = free_ports(3 + len(names))
    moody, ready, over = Moody(), asyncio.Event(), asyncio.Event()
    async with MockControlPlane() as plane, asyncio.TaskGroup() as group:
        group.create_task(moody.serve(ready, over))
        await ready.wait()
        scene = Scene(
            plane,
            {"a": f"http://127.0.0.1:{a}/mcp", "b": f"http://127.0.0.1:{b}/mcp"},
            f"http://127.0.0.1:{admin}",
            dict(zip(names, ports, strict=True)),
            tmp_path,
            random.Random(seed),
            moody,
        )
        for name in names:
            scene.start(name)
        path = tmp_path / "gateway.yaml"
        path.write_text(yaml.safe_dump(config(scene, [a, b], admin)), encoding="utf-8")
        gateway = Process.module(tmp_path / "gateway.log", "arion_tds", "serve", "-c", str(path), "--workers", "1")
        try:
            await publish(scene)

            async def served() -> None:
                async with aiohttp.ClientSession() as http, http.get(f"{scene.admin}/tools?scope=b/main") as response:
                    assert (await response.json()).get("total", 0) >= 43

            await eventually(served, timeout=30)
            await soaked(scene, gateway, min(5.0, SECONDS / 4))  # everything that is made once is made
            held = await settled(scene, gateway)
            samples = await soaked(scene, gateway, SECONDS)

            async def nothing_leaked() -> None:
                now = descriptors(gateway), await tasks(scene)
                assert all(one <= before + SPARE for one, before in zip(now, held, strict=True)), (held, now)

            tidy(scene)
            await eventually(nothing_leaked, timeout=40, interval=0.5)
            if SECONDS >= LONG:
                long = len(samples) // 5
                fifths = [statistics.median(samples[at * long : (at + 1) * long]) for at in range(5)]
                said = f"memory by fifths of the time, in MB: {', '.join(f'{one:.1f}' for one in fifths)}"
                print(said)  # noqa: T201 - for `make soak`
                assert fifths[-1] < fifths[1] * (1 + GROWTH), said
        except BaseException:
            print(gateway.log()[-3000:], scene.waits())  # noqa: T201 - pytest shows it
            raise
        finally:
            over.set()
            status = gateway.stop()
            for service in scene.services.values():
                service.kill()
        print(dict(scene.counts), scene.waits())  # noqa: T201 - for `make soak`
        assert status == 0
        assert "Traceback" not in gateway.log(), gateway.log()[-5000:]
        for what in ("calls", "lists", "searches", "changes", "faults", "list_changed", "slow readers", "hung up"):
            assert scene.counts[what], what
