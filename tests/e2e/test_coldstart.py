"""A gateway process that ends and comes back while its control plane is away."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest
import yaml
from e2e_processes import Demo, eventually
from test_demo import ADMIN, FILE, FORECAST, A, B, forecast_of, listed

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="CPU is read from /proc")]

SECONDS = 1.5
"""From the start of the process until it serves: of CPU, since the time on the clock is also the neighbours'."""


def cpu(pid: int) -> float:
    """CPU seconds of all threads of a process since its start."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def keep(demo: Demo) -> None:
    """Restart the gateway with a cache."""
    path = demo.folder / "gateway.yaml"
    config = yaml.safe_load(path.read_text("utf-8"))
    config["cache"] = {"directory": str(demo.folder / "cache")}
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    assert demo.processes["gateway"].stop() == 0
    start(demo)


def start(demo: Demo) -> None:
    demo.start("gateway", "arion_tds", "serve", "-c", str(demo.folder / "gateway.yaml"), "--workers", "1")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_without_its_control_plane_a_restarted_gateway_serves_at_once_what_it_served(
    demo: Demo, number: signal.Signals
) -> None:
    await demo.ready()
    keep(demo)
    await demo.ready()
    served = {tenant: await listed(demo, tenant) for tenant in (A, B)}
    assert FORECAST in served[A]

    async def is_kept() -> None:
        state = (await demo.get(ADMIN, "/readyz"))["cache"]
        assert (state["pending_bytes"], state["last_error"]) == (0, "")

    await eventually(is_kept)
    await asyncio.sleep(0.6)  # SIGKILL leaves no time to write: more than what is collected before a write
    demo.processes["control_plane"].kill()
    gateway = demo.processes["gateway"]
    gateway.child.send_signal(number)
    gateway.child.wait(15)
    gateway.kill()

    start(demo)

    async def serves() -> None:
        assert {tenant: await listed(demo, tenant) for tenant in (A, B)} == served, demo.logs()

    await eventually(serves, interval=0.01)
    took = cpu(demo.processes["gateway"].child.pid)
    assert (await forecast_of(demo, "Lima"))["city"] == "Lima"
    state = await demo.get(ADMIN, "/readyz")
    assert (state["ready"], state["cache"]["serving_from_disk"]) == (True, True)
    assert state["cache"]["age_seconds"] < 60
    assert took < SECONDS

    (demo.catalog / FILE).unlink()
    demo.start_control_plane()

    async def agrees() -> None:
        assert (await demo.get(ADMIN, "/readyz"))["cache"]["serving_from_disk"] is False
        assert await listed(demo, A) == [name for name in served[A] if name != FORECAST]

    await eventually(agrees)
