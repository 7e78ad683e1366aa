"""The official SDK's server as an independent judge, in both eras."""

from __future__ import annotations

import asyncio
import json
import pathlib
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from mcp_scripted import LIMITS, context

from arion_tds.backends.mcp import discovery
from arion_tds.backends.mcp.connection import Upstream
from arion_tds.backends.mcp.listing import Listing
from arion_tds.backends.mcp.watch import Watch
from arion_tds.model.context import CallContext, Limits
from arion_tds.model.result import CallResult, ErrorCode
from arion_tds.model.server import McpServer

SERVER = pathlib.Path(__file__).with_name("mcp_sdk_server.py")
CONTEXT = context()


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with subprocess.Popen([sys.executable, str(SERVER), "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


@pytest.fixture(params=["modern", "legacy"])
async def upstream(
    request: pytest.FixtureRequest, origin: str, connect: Callable[..., Upstream]
) -> AsyncIterator[Upstream]:
    url = f"{origin}/mcp" if request.param == "modern" else f"{origin}/old/mcp"
    made = connect(url)
    async with asyncio.timeout(20):
        await made.agreed()
        assert made.status().era == request.param
        yield made


async def call(
    upstream: Upstream, name: str, arguments: dict[str, object], given: CallContext = CONTEXT, limits: Limits = LIMITS
) -> CallResult:
    found = await upstream.call(name, json.dumps(arguments).encode(), given, limits, idempotent=False)
    assert isinstance(found, CallResult), found
    return found


def said(found: CallResult) -> str:
    return "\n".join(block["text"] for block in json.loads(found.content))


async def test_its_tools_are_listed_with_everything(upstream: Upstream) -> None:
    found = await upstream.list_tools()
    assert isinstance(found, Listing)
    tools, problems = discovery.tools(McpServer(namespace="sdk", description="d", url=upstream.url), found)
    assert problems == ()
    by_name = {tool.name: tool for tool in tools}
    assert {"echo", "add", "count", "ask", "boom", "grow", "hang"} <= set(by_name)
    assert by_name["echo"].description == "Say it again."
    assert b'"title":"Echo"' in by_name["echo"].extra
    assert discovery.is_idempotent(by_name["echo"])
    assert by_name["add"].output_schema is not None


async def test_calls_come_back_with_text_and_structure(upstream: Upstream) -> None:
    assert said(await call(upstream, "echo", {"message": "grüße"})) == "grüße"
    found = await call(upstream, "add", {"a": 2, "b": 3})
    assert json.loads(found.structured or b"") == {"total": 5}
    assert found.result_type == "complete"
    assert b"serverInfo" not in found.meta
    failed = await call(upstream, "boom", {})
    assert failed.is_error
    assert failed.failure is None
    assert "boom" in said(failed)


async def test_sixteen_calls_at_once(upstream: Upstream) -> None:
    found = await asyncio.gather(*(call(upstream, "echo", {"message": str(n)}) for n in range(16)))
    assert [said(each) for each in found] == [str(n) for n in range(16)]


async def test_progress_is_relayed(upstream: Upstream) -> None:
    heard: list[bytes] = []
    given = context(modern=upstream.status().era == "modern", notify=heard.append, progress_token=b'"mine"')
    assert said(await call(upstream, "count", {"to": 3}, given)) == "counted"
    params = [json.loads(each)["params"] for each in heard]
    assert [(each["progressToken"], each["progress"], each["total"]) for each in params] == [
        ("mine", step, 3) for step in (1, 2, 3)
    ]


async def test_a_tool_that_asks_the_user_ends_in_an_error_that_says_so(upstream: Upstream) -> None:
    found = await upstream.call("ask", b"{}", CONTEXT, LIMITS, idempotent=False)
    if isinstance(found, CallResult):
        assert found.is_error
        if upstream.status().era == "legacy":
            assert "elicitation/create" in said(found)


async def test_a_hanging_call_is_cancelled_and_others_go_on(upstream: Upstream) -> None:
    hung = await call(upstream, "hang", {}, limits=Limits(0.3, 1000))
    assert hung.failure is not None
    assert hung.failure.code is ErrorCode.UPSTREAM_TIMEOUT
    assert said(await call(upstream, "echo", {"message": "on"})) == "on"


async def test_a_new_tool_is_announced_and_listed(upstream: Upstream) -> None:
    era = upstream.status().era
    changed = asyncio.Event()
    watch = Watch(upstream, changed.set, random.Random(1))
    task = asyncio.create_task(watch.run())
    while not watch.listening:  # noqa: ASYNC110 - the server's acknowledgement comes in its own time
        await asyncio.sleep(0.01)
    await call(upstream, "grow", {"name": f"new_{era}"})
    if era == "modern":  # the SDK's older half announces nothing by this way
        await changed.wait()
    found = await upstream.list_tools()
    assert isinstance(found, Listing)
    assert any(f'"new_{era}"'.encode() in tool for tool in found.tools)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
