"""Every mode of the misbehaving upstream that stands beside the project, where it is to be found."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import sys
from collections.abc import AsyncIterator

import aiohttp
import pytest
from mcp_scripted import CONTEXT, LIMITS

from arion_tds.backends.mcp import discovery
from arion_tds.backends.mcp.listing import Listing
from arion_tds.backends.mcp.pool import Upstreams, UpstreamsSettings
from arion_tds.model.context import Limits
from arion_tds.model.problem import Problem
from arion_tds.model.result import CallResult, ErrorCode
from arion_tds.model.server import McpServer
from arion_tds.model.tool import Tool

SCRIPT = pathlib.Path(os.environ.get("ARION_TDS_BAD_UPSTREAM", "/nowhere"))
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="ARION_TDS_BAD_UPSTREAM names no script")


class Bad:
    def __init__(self, origin: str, upstreams: Upstreams) -> None:
        self.origin = origin
        self.upstreams = upstreams

    async def tools(self, mode: str) -> tuple[tuple[Tool, ...], tuple[Problem, ...]]:
        url = f"{self.origin}/m/{mode}"
        found = await self.upstreams.list_tools(url)
        assert isinstance(found, Listing), found
        return discovery.tools(McpServer(namespace="n", description="d", url=url), found)

    async def call(self, mode: str, limits: Limits = LIMITS, *, idempotent: bool = False) -> CallResult:
        tools, _ = await self.tools(mode)
        backend = tools[0].backend
        found = await self.upstreams.call(backend, b'{"message":"hi"}', CONTEXT, limits, idempotent=idempotent)  # type: ignore[arg-type]
        assert isinstance(found, CallResult)
        return found

    async def post(self, path: str) -> dict[str, int]:
        async with aiohttp.ClientSession() as session, session.post(f"{self.origin}{path}") as response:
            found: dict[str, int] = await response.json()
            return found


@pytest.fixture
async def bad(unused_tcp_port: int) -> AsyncIterator[Bad]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), str(unused_tcp_port), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(20):
        await process.stdout.readline()
    upstreams = Upstreams(UpstreamsSettings(), clock=lambda: 0.0)
    try:
        async with asyncio.timeout(30):
            yield Bad(f"http://127.0.0.1:{unused_tcp_port}", upstreams)
    finally:
        await upstreams.close()
        process.terminate()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]


async def test_every_mode_has_its_expected_outcome(bad: Bad) -> None:
    for mode in ("ok", "sse_empty"):
        assert b'"hi"' in (await bad.call(mode)).content
    assert len((await bad.tools("page"))[0]) == 120
    tools, problems = await bad.tools("loop")
    assert [each.name for each in tools] == ["a", "b"]
    assert ["repeated a cursor" in each.why for each in problems] == [True]

    for mode, left_out in (("badschema", 2), ("noschema", 1)):
        tools, problems = await bad.tools(mode)
        assert [each.name for each in tools] == ["good"]
        assert len(problems) == left_out
    tools, problems = await bad.tools("dup")
    assert [each.extra for each in tools] == [b""]
    assert len(problems) == 1

    await bad.call("expire")
    await bad.post("/_expire")
    assert b'"hi"' in (await bad.call("expire")).content

    dropped = await bad.call("drop")
    slow = await bad.call("slow", Limits(0.3, 1 << 20))
    html = await bad.call("html500")
    big = await bad.call("big")
    codes = [each.failure and each.failure.code for each in (dropped, slow, html, big)]
    assert codes == [
        ErrorCode.UPSTREAM_ERROR,
        ErrorCode.UPSTREAM_TIMEOUT,
        ErrorCode.UPSTREAM_ERROR,
        ErrorCode.RESPONSE_TOO_LARGE,
    ]
    assert html.failure is not None
    assert html.failure.status == 500
    hits = await bad.post("/_hits")
    assert {mode: hits[f"{mode} tools/call"] for mode in ("drop", "slow", "html500")} == dict.fromkeys(
        ("drop", "slow", "html500"), 1
    )
    repeated = await bad.call("drop", idempotent=True)
    assert repeated.failure is not None
    assert repeated.failure.retryable
    assert (await bad.post("/_hits"))["drop tools/call"] == 3

    tools, problems = await bad.tools("structured")
    assert problems == ()
    assert json.loads(b"{" + tools[0].extra[1:] + b"}").keys() == {"title", "annotations", "_meta", "icons"}
    assert tools[0].output_schema is not None
    assert discovery.is_idempotent(tools[0])
    structured = await bad.call("structured")
    assert structured.structured == b'{"x": 1}'
    assert structured.meta == b'"com.example/r": "v"'
    passed = await bad.call("iserr")
    assert passed.is_error
    assert passed.failure is None
    assert b"boom" in passed.content
