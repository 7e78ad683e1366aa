"""The fixtures that other projects load, loaded as they would."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from plain_client import TOOL, Client

from control_plane_example.gateway import Gateway, addresses
from control_plane_example.mock import MockControlPlane

pytest_plugins = ["control_plane_example.pytest_plugin"]

# What the fixture needs of a gateway process: it reads a config, says that it is ready, logs, ends on SIGTERM.
PROCESS = """
import http.server, json, sys
assert sys.argv[1:3] == ["serve", "-c"]
config = json.load(open(sys.argv[3]))
print("config read", flush=True)
if config.get("broken"):
    sys.exit("cannot start: broken")
asked = 0
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global asked
        asked += 1
        self.send_response(200 if self.path == "/readyz" and asked > 2 else 503)
        self.end_headers()
    def log_message(self, *_): pass
host, port = config["admin"]["address"].split(":")
http.server.HTTPServer((host, int(port)), Answer).serve_forever()
"""


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m arion_tds` in this test starts PROCESS."""
    (tmp_path / "arion_tds").mkdir()
    (tmp_path / "arion_tds" / "__main__.py").write_text(PROCESS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


async def test_the_control_plane_fixture_runs(
    control_plane: MockControlPlane, dial: Callable[[str], Awaitable[Client]]
) -> None:
    client = await dial(control_plane.address)
    await client.ask(TOOL, "*")
    assert await client.reads() == []


@pytest.mark.usefixtures("process")
async def test_a_gateway_is_returned_when_it_is_ready_and_leaves_its_log(
    gateway: Callable[[dict[str, Any]], Awaitable[Gateway]], free_port: Callable[[], int]
) -> None:
    admin = f"127.0.0.1:{free_port()}"
    running = await gateway({"admin": {"address": admin}, "listeners": [{"name": "a", "address": "127.0.0.1:8080"}]})
    assert running.admin == f"http://{admin}"
    assert running.url() == running.url("a") == "http://127.0.0.1:8080/mcp"
    assert running.logs() == "config read"
    assert await running.stop() != 0  # ended by the signal
    assert await running.stop() != 0


@pytest.mark.usefixtures("process")
async def test_a_gateway_that_does_not_start_shows_its_log(
    gateway: Callable[[dict[str, Any]], Awaitable[Gateway]], free_port: Callable[[], int]
) -> None:
    with pytest.raises(RuntimeError, match=r"ended with 1:\nconfig read\ncannot start: broken"):
        await gateway({"broken": True, "admin": {"address": f"127.0.0.1:{free_port()}"}})


def test_listeners_are_found_by_name_and_by_server_name() -> None:
    config = {
        "admin": {"address": "127.0.0.1:1"},
        "listeners": [{"address": "127.0.0.1:2", "gateway": {"server_info": {"name": "tenant-a-mcp"}}}],
    }
    assert addresses(config) == (
        "http://127.0.0.1:1",
        {"0": "http://127.0.0.1:2/mcp", "tenant-a-mcp": "http://127.0.0.1:2/mcp"},
    )


async def test_content_without_sense_to_the_proto_is_refused_at_once(control_plane: MockControlPlane) -> None:
    with pytest.raises(ValueError, match="kind must be one of"):
        await control_plane.put("Tool", "s/c/n.a", {})
    with pytest.raises(ValueError, match=r"McpTool s/c/n\.a: spec is not a Tool"):
        await control_plane.put("McpTool", "s/c/n.a", {"nmae": 1})
    await control_plane.stop()
    with pytest.raises(RuntimeError, match="not running"):
        control_plane.release()
