"""While thousands of tools arrive, everybody else goes on: calls are answered between two batches, not after the last.

How long the longest turn of the event loop takes is a figure of `benchmarks.stall`, not of a test.
"""

from __future__ import annotations

import asyncio

from gateway_house import BOUND, House, house, numbered, tool

TOOLS = 5000
CALLERS = 4


async def until_all_are_here(here: House, calls: list[int]) -> None:
    """Call one tool again and again; notes how many tools were served when each answer came."""
    published = here.gateway.catalogs[0].published
    while len(published.view.tools) < TOOLS + 1:
        assert (await here.a.echo("here.before"))["path"] == "/here/before"
        calls.append(len(published.view.tools))


async def test_calls_are_answered_between_the_batches_of_a_large_delivery() -> None:
    async with house() as here:
        await here.put("McpTool", "a/main/here.before", tool("here.before"))
        here.plane.hold()
        for number, name in enumerate(numbered("n.tool_", TOOLS)):
            await here.plane.put("McpTool", f"a/main/{name}", tool(name, f"Tool number {number} of many"))
        calls: list[int] = []
        async with asyncio.timeout(6 * BOUND):
            here.plane.release()
            await asyncio.gather(*(until_all_are_here(here, calls) for _ in range(CALLERS)))

        assert calls == sorted(calls)  # no publication ever takes a tool away
        partly = {count for count in calls if 1 < count <= TOOLS}
        assert len(partly) >= 3, f"calls were answered when there were {sorted(set(calls))} tools"
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
