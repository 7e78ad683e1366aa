"""What was refused and is withdrawn while the stream is down: nobody says so, and yet it stands no more afterwards."""

import asyncio

from gateway_house import BOUND, House, house, tool
from gateway_upstreams import server

from control_plane_example import documents

NOWHERE = "http://127.0.0.1:9/mcp"
GONE, STAYS = "a/main/shop.gone", "a/main/shop.stays"


def bad(name: str, method: str) -> dict[str, object]:
    return tool(name, rest_backend={"method": method, "path": "/x", "cluster": "echo"})


async def withdraw_meanwhile(here: House, kind: str, name: str) -> None:
    """Take the resource away while no stream is up, and wait until a new one has been answered for every type."""
    here.plane.hold()
    here.plane.remove(kind, name)
    before = max(stream for stream, _ in here.plane._answers)
    here.plane.cut()
    async with asyncio.timeout(BOUND):
        while before == max(status["stream"] for status in here.plane.status()["streams"] or [{"stream": before}]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # the cut is told to the client in its own time
    here.plane.release()
    kinds = len(documents.CATALOG)
    await here._until(
        lambda: len({answer.type_url for stream, answer in here.plane._answers if stream > before}) == kinds,
        "every type on a new stream",
    )


async def test_a_refused_tool_that_was_withdrawn_meanwhile_stands_no_more() -> None:
    async with house() as here:
        await here.put("McpTool", "a/main/shop.good", tool("shop.good"))
        await here.refused("McpTool", GONE, bad("shop.gone", "FETCH"), "FETCH")
        await here.refused("McpTool", STAYS, bad("shop.stays", "STEAL"), "STEAL")
        assert [one["name"] for one in await here.problems()] == [GONE, STAYS]

        await withdraw_meanwhile(here, "McpTool", GONE)

        assert [one["name"] for one in await here.problems()] == [STAYS]
        await here.a.serves("shop.good")


async def test_a_refused_server_that_was_withdrawn_meanwhile_is_not_tried_on() -> None:
    async with house() as here:
        await here.refused("McpDynamicServer", "a/main/up", server("up", NOWHERE), "cannot be reached")
        assert here.gateway.freshness.refusals == 1

        await withdraw_meanwhile(here, "McpDynamicServer", "a/main/up")

        assert here.gateway.freshness.refusals == 0
        assert await here.problems() == []


async def test_a_malformed_id_is_a_problem_until_the_next_stream() -> None:
    async with house() as here:
        await here.plane.put("McpTool", "a/main", tool("shop.good"))
        await here.plane.nacked("McpTool", "a/main")
        (one,) = await here.problems()
        assert (one["name"], one["state"]) == ("a/main", "rejected")
        await withdraw_meanwhile(here, "McpTool", "a/main")
        assert await here.problems() == []
