"""While thousands of tools arrive, everybody else goes on: calls are answered between two batches, not after the last.

How long the longest turn of the event loop takes is a figure of `benchmarks.stall`, not of a test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from gateway_house import BOUND, House, house, inline, numbered, tool

TOOLS = 5000
SCHEMA = inline({"type": "object", "properties": {f"field_{n}": {"type": "string", "title": "T"} for n in range(12)}})


async def seen_by(here: House, ask: Callable[[], Awaitable[object]]) -> list[int]:
    """Ask again and again until all tools are served; how many were when each answer came."""
    published = here.gateway.catalogs[0].published
    seen: list[int] = []
    while len(published.view.tools) < TOOLS + 1:
        await ask()
        seen.append(len(published.view.tools))
    return seen


async def test_calls_are_answered_between_the_batches_of_a_large_delivery() -> None:
    async with house() as here:
        await here.put("McpTool", "a/main/here.before", tool("here.before"))
        here.plane.hold()
        for number, name in enumerate(numbered("n.tool_", TOOLS)):
            spec = tool(name, f"Tool number {number} of many", input_schema=SCHEMA)
            await here.plane.put("McpTool", f"a/main/{name}", spec)
        async with asyncio.timeout(6 * BOUND), asyncio.TaskGroup() as clients:
            calling = clients.create_task(seen_by(here, lambda: here.a.echo("here.before")))
            pinging = clients.create_task(seen_by(here, lambda: here.a.post("ping", {})))
            here.plane.release()

        for seen, least in ((calling.result(), 1), (pinging.result(), 3)):
            assert seen == sorted(seen)  # no publication takes a tool away
            partly = {count for count in seen if 1 < count <= TOOLS}
            assert len(partly) >= least, f"answered when there were {sorted(set(seen))} tools"
        assert await here.problems() == []


async def test_a_hundred_changes_of_one_tool_end_with_the_last_and_never_miss_it_in_between() -> None:
    async with house() as here:
        await here.put("McpTool", "a/main/n.x", tool("n.x", "Number 0"))
        for number in range(1, 101):
            version = await here.plane.put("McpTool", "a/main/n.x", tool("n.x", f"Number {number}"))
            if number % 10 == 0:  # the tool is there while it is being replaced
                assert (await here.a.text("n.x")).startswith("Number ")
                assert (await here.a.echo("n.x"))["path"] == "/n/x"
        await here.plane.acked("McpTool", "a/main/n.x", version)
        assert await here.a.text("n.x") == "Number 100"
        assert await here.a.search("100") == ["n.x"]
