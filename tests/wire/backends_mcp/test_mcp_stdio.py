"""Local servers as child processes: started when needed, answered like all others, none left behind."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import sys
from collections.abc import AsyncIterator

import pytest
from mcp_scripted import LIMITS, context

from arion_tds.backends.mcp.connection import Upstream
from arion_tds.backends.mcp.listing import Listing
from arion_tds.backends.mcp.pool import Upstreams, UpstreamsSettings
from arion_tds.backends.mcp.settings import UpstreamSettings
from arion_tds.backends.mcp.stdio import StdioLine, StdioServer
from arion_tds.model.context import CallContext, Limits
from arion_tds.model.result import CallResult, ErrorCode

CONTEXT = context()

SCRIPT = r"""
import json, os, subprocess, sys, time
def say(value): sys.stdout.write(json.dumps(value) + "\n"); sys.stdout.flush()
sys.stderr.write("started " + os.environ.get("KEY", "") + "\n"); sys.stderr.flush()
if "crash" in sys.argv: sys.exit(3)
if "grandchild" in sys.argv:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("a banner that is not JSON", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method, ident, params = asked.get("method"), asked.get("id"), asked.get("params") or {}
    def result(value): say({"jsonrpc": "2.0", "id": ident, "result": value})
    if method == "initialize":
        result({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "child"}})
    elif method == "tools/list":
        result({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        name, arguments = params["name"], params.get("arguments")
        if name == "die": os._exit(9)
        elif name == "pid":
            pids = [os.getpid()] + ([child.pid] if "grandchild" in sys.argv else [])
            result({"content": [], "structuredContent": {"pids": pids}})
        elif name == "hang": hung = ident
        elif name == "big": result({"content": [{"type": "text", "text": "x" * 100000}]})
        elif name == "progress":
            token = params["_meta"]["progressToken"]
            params = {"progressToken": token, "progress": 1}
            say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            result({"content": []})
        elif name == "ask":
            say({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
            answer = json.loads(sys.stdin.readline())
            result({"content": [{"type": "text", "text": answer["error"]["message"]}], "isError": True})
        else: result({"content": [{"type": "text", "text": json.dumps(arguments)}]})
    elif method == "notifications/cancelled":
        say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    elif ident is not None:
        say({"jsonrpc": "2.0", "id": ident, "error": {"code": -32601, "message": "Method not found"}})
"""


class Child:
    """A pool with one local server."""

    def __init__(self, *arguments: str, **settings: object) -> None:
        command = (sys.executable, "-c", SCRIPT, *arguments)
        process = StdioServer(command=command, env={"KEY": "s3cret"}, **settings)  # type: ignore[arg-type]
        self.upstreams = Upstreams(UpstreamsSettings(processes={"stdio:c": process}), clock=lambda: 0.0)
        upstream = self.upstreams.get("stdio:c")
        assert isinstance(upstream, Upstream)
        self.upstream = upstream
        assert isinstance(upstream.line, StdioLine)
        self.line = upstream.line

    async def call(self, name: str, given: CallContext = CONTEXT, limits: Limits = LIMITS) -> CallResult:
        async with asyncio.timeout(10):
            found = await self.upstream.call(name, b'{"a":1}', given, limits, idempotent=False)
        assert isinstance(found, CallResult), found
        return found

    async def pids(self) -> list[int]:
        found: list[int] = json.loads((await self.call("pid")).structured or b"")["pids"]
        return found

    async def gone(self) -> None:
        async with asyncio.timeout(10):
            await asyncio.gather(*self.line._owners)


@pytest.fixture
async def child() -> AsyncIterator[Child]:
    made = Child()
    yield made
    await made.upstreams.close()


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


async def test_a_process_is_started_on_demand_and_answers_like_any_server(child: Child) -> None:
    assert child.line.pid is None
    found = await child.upstream.list_tools()
    assert isinstance(found, Listing)
    assert len(found.tools) == 1
    assert json.loads((await child.call("echo")).content)[0]["text"] == '{"a": 1}'
    assert (child.upstream.status().era, child.upstream.status().server) == ("legacy", "child")
    assert "s3cret" not in repr(child.upstreams._settings)


async def test_many_calls_share_it(child: Child) -> None:
    found = await asyncio.gather(*(child.call("echo") for _ in range(20)))
    assert not any(each.is_error for each in found)
    assert child.upstream.status().handshakes == 1


async def test_nothing_is_left_behind_not_even_a_childs_child() -> None:
    child = Child("grandchild")
    pids = await child.pids()
    assert len(pids) == 2
    assert all(runs(pid) for pid in pids)
    await child.upstreams.close()
    async with asyncio.timeout(5):
        while any(runs(pid) for pid in pids):  # noqa: ASYNC110 - the kernel tells nobody when an orphan is gone
            await asyncio.sleep(0.01)


async def test_an_idle_process_ends_and_the_next_call_starts_another() -> None:
    child = Child(idle_timeout=0.05)
    (first,) = await child.pids()
    await child.gone()
    assert child.line.pid is None
    assert not runs(first)
    (second,) = await child.pids()
    assert second != first
    assert child.upstream.status().handshakes == 2
    await child.upstreams.close()


async def test_a_process_that_dies_fails_its_calls_and_is_started_again(child: Child) -> None:
    await child.call("echo")
    found = await child.call("die")
    assert found.failure is not None
    assert "process" in found.failure.message
    assert not found.failure.retryable
    assert not (await child.call("echo")).is_error


async def test_a_process_that_keeps_crashing_is_left_alone_for_a_while() -> None:
    child = Child("crash")
    messages = []
    for _ in range(4):
        found = await child.call("echo")
        assert found.failure is not None
        messages.append(found.failure.message)
    assert "the next start is in" in messages[-1]
    await child.upstreams.close()


async def test_a_command_that_does_not_exist_is_said() -> None:
    process = StdioServer(command=("/nonexistent/server",))
    upstreams = Upstreams(UpstreamsSettings(processes={"stdio:x": process}), clock=lambda: 0.0)
    upstream = upstreams.get("stdio:x")
    assert isinstance(upstream, Upstream)
    found = await upstream.call("echo", b"{}", CONTEXT, LIMITS, idempotent=False)
    assert isinstance(found, CallResult)
    assert found.failure is not None
    assert "cannot be started" in found.failure.message
    await upstreams.close()


async def test_a_key_that_names_no_process_is_refused_whatever_a_control_plane_says() -> None:
    upstreams = Upstreams(UpstreamsSettings(), clock=lambda: 0.0)
    assert not isinstance(upstreams.get("stdio:rm"), Upstream)
    await upstreams.close()


async def test_a_timed_out_call_is_cancelled_and_others_go_on(child: Child) -> None:
    changed = asyncio.Event()
    child.upstream.changed = changed.set
    found = await child.call("hang", limits=Limits(0.3, 1000))
    assert found.failure is not None
    assert found.failure.code is ErrorCode.UPSTREAM_TIMEOUT
    async with asyncio.timeout(5):
        await changed.wait()  # the script says so when it hears the cancellation
    assert not (await child.call("echo")).is_error
    child.upstream.changed = None


async def test_limits_progress_and_requests_are_as_over_http(child: Child) -> None:
    big = await child.call("big", limits=Limits(5.0, 50_000))
    assert big.failure is not None
    assert big.failure.code is ErrorCode.RESPONSE_TOO_LARGE
    heard: list[bytes] = []
    await child.call("progress", context(notify=heard.append, progress_token=b'"t"'))
    assert json.loads(heard[0])["params"]["progressToken"] == "t"
    asked = await child.call("ask")
    assert asked.is_error
    assert b"roots/list is not served" in asked.content


async def test_the_official_sdk_speaks_the_modern_era_over_stdio() -> None:
    server = pathlib.Path(__file__).with_name("mcp_sdk_server.py")
    process = StdioServer(command=(sys.executable, str(server), "stdio"))
    settings = UpstreamsSettings(processes={"stdio:sdk": process}, default=UpstreamSettings(handshake_timeout=30.0))
    upstreams = Upstreams(settings, clock=lambda: 0.0)
    upstream = upstreams.get("stdio:sdk")
    assert isinstance(upstream, Upstream)
    limits = Limits(20.0, 1 << 20)
    found = await upstream.call("add", b'{"a":1,"b":2}', CONTEXT, limits, idempotent=False)
    assert isinstance(found, CallResult)
    assert json.loads(found.structured or b"") == {"total": 3}
    assert upstream.status().era == "modern"
    await upstreams.close()
