"""`make demo`: the example control plane, a sample REST service and a gateway with three tenants, until Ctrl-C.

The catalog is copied to `.demo/catalog`, so that its files can be edited and deleted while everything runs.
"""

from __future__ import annotations

import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEMO = ROOT / ".demo"
CATALOG = DEMO / "catalog"
READY_SECONDS = 60
CONTROL_PLANE, CONTROL_PLANE_HTTP, SERVICE = "127.0.0.1:50051", "127.0.0.1:50052", "127.0.0.1:4001"
GATEWAY = ("127.0.0.1:9901", "127.0.0.1:8080", "127.0.0.1:8081", "127.0.0.1:8082")  # as in examples/gateway.yaml

TRY = """
The gateway is ready. In another terminal:

  # find a tool of tenant A
  curl -s http://127.0.0.1:8080/mcp/search -H 'content-type: application/json' -d '{{"query": "forecast"}}'

  # call it
  curl -s http://127.0.0.1:8080/mcp -H 'content-type: application/json' \\
    -d '{{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
         "params": {{"name": "weather.get_forecast", "arguments": {{"city": "Osaka"}}}}}}'

  # tenant C is in code mode: one program instead of many calls
  curl -s http://127.0.0.1:8082/mcp -H 'content-type: application/json' \\
    -d '{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {{"name": "execute", "arguments": {{"code":
         "await Promise.all([`Osaka`, `Lima`].map((city) => tools.weather.get_forecast({{city, days: 1}})))"}}}}}}'

  # take it away: it is gone on tenant A within a second; tenant B (port 8081) never had it
  rm {catalog}/tenant-a-weather.get_forecast.yaml

  # what the gateway holds, and what it refused
  curl -s http://127.0.0.1:9901/config_dump
  curl -s http://127.0.0.1:9901/problems

The same in a browser: http://127.0.0.1:9901/, and in words: .venv/bin/arion-tds status, or explain weather.get_forecast.
MCP clients connect to http://127.0.0.1:8080/mcp, http://127.0.0.1:8081/mcp (Claude Desktop and Cursor: names without dots) and
http://127.0.0.1:8082/mcp. Ctrl-C ends it all.
"""


def main() -> int:
    """Start the three processes, print what to try, and end them all when one ends or on Ctrl-C."""
    for address in (CONTROL_PLANE, CONTROL_PLANE_HTTP, SERVICE, *GATEWAY):
        if is_taken(address):
            print(f"{address} is taken: does another demo run? The demo has fixed addresses.", file=sys.stderr)
            return 1
    shutil.rmtree(DEMO, ignore_errors=True)
    shutil.copytree(ROOT / "control_plane_example" / "catalog", CATALOG)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    children = [
        start("control_plane_example", str(CATALOG), "--address", CONTROL_PLANE, "--http", CONTROL_PLANE_HTTP),
        start("control_plane_example.sample_service", "--address", SERVICE),
        start("arion_tds", "serve", "-c", str(ROOT / "examples" / "gateway.yaml")),
    ]
    try:
        if wait_ready(children):
            print(TRY.format(catalog=CATALOG.relative_to(ROOT)), flush=True)
        elif all(child.poll() is None for child in children):
            print(f"the gateway is not ready after {READY_SECONDS} s: see above", file=sys.stderr)
            return 1
        while all(child.poll() is None for child in children):
            time.sleep(0.2)
    except KeyboardInterrupt:
        return 0
    else:
        print("one of the demo's processes ended: see above", file=sys.stderr)
        return 1
    finally:
        for child in reversed(children):
            child.terminate()
        for child in children:
            child.wait(timeout=15)


def is_taken(address: str) -> bool:
    """Whether somebody listens there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_server((host, int(port))).close()
    except OSError:
        return True
    return False


def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Run a module with this interpreter."""
    return subprocess.Popen([sys.executable, "-m", module, *arguments], cwd=ROOT)


def wait_ready(children: list[subprocess.Popen[bytes]]) -> bool:
    """Whether gateway and service became ready before a process ended or the time ran out."""
    host, _, port = SERVICE.rpartition(":")
    for _ in range(READY_SECONDS * 10):
        if any(child.poll() is not None for child in children):
            return False
        try:
            # The gateway does not wait for the services behind its tools, and what is printed calls one.
            with urllib.request.urlopen("http://127.0.0.1:9901/readyz", timeout=1):
                socket.create_connection((host, int(port)), timeout=1).close()
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    return False


if __name__ == "__main__":
    sys.exit(main())
