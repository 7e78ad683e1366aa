"""The demo as processes, a tenant with many tools, and the Node clients. What tests import stands in e2e_*.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from e2e_catalog import Start, Tenant, tenant
from e2e_processes import ROOT, Demo, ports_for

from control_plane_example.mock import MockControlPlane


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """What `make demo` runs, started but not yet ready."""
    texts = [(ROOT / name).read_text("utf-8") for name in ("examples/gateway.yaml", "scripts/demo.py")]
    made = Demo(tmp_path, ports_for(*texts))
    made.start_all()
    yield made
    for process in made.processes.values():
        process.kill()


@pytest.fixture
async def served(gateway: Start, control_plane: MockControlPlane) -> AsyncIterator[Tenant]:
    """A gateway process with 250 tools. The module names control_plane_example.pytest_plugin for its parts."""
    async with tenant(gateway, control_plane) as running:
        yield running


@pytest.fixture(scope="session")
def node() -> Path:
    """The folder with the commands of tests/e2e/node, Node itself among them; skips when npm cannot install them."""
    return installed("tests/e2e/node")


@pytest.fixture(scope="session")
def suite() -> Path:
    """The folder with the commands of the official conformance suite; skips as above."""
    return installed("conformance")


def installed(folder: str) -> Path:
    """Where npm put the commands of the folder's package.json."""
    script = str(ROOT / "scripts" / "node_packages.py")
    done = subprocess.run([sys.executable, script, str(ROOT / folder)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{folder} cannot be installed: {done.stderr.strip()[-500:]}")
    return Path(done.stdout.strip())
