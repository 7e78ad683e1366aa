"""tools/list in gzip or zstd for clients that take it, with both eras and across a change."""

from __future__ import annotations

import dataclasses

from front_house import house
from front_samples import tool

LONG = "what it does " * 200


async def test_a_page_is_gzip_for_who_takes_it_and_plain_for_who_does_not() -> None:
    async with house(tool("a", description=LONG), tool("b")) as here:
        for encoding, expected in (("gzip", "gzip"), ("gzip, zstd", "zstd"), ("identity", None), ("gzip;q=0", None)):
            asked = here.modern("tools/list", id="x", headers={"Accept-Encoding": encoding})
            async with here.http.post(here.url, **asked) as response:
                assert response.headers.get("Content-Encoding") == expected
                answer = await response.json()
            assert answer["id"] == "x"
            assert answer["result"]["tools"][0]["description"] == LONG


async def test_a_changed_tool_is_seen_at_once_in_packed_pages_of_both_eras() -> None:
    first = tool("a", description=LONG)
    async with house(first) as here:
        session = await here.open()
        for description in (LONG, LONG + "better"):
            changed = dataclasses.replace(first, description=description)
            here.put(changed, gone=(here.published.view.tools["shop.a"].tool,))
            _, modern = await here.ask("tools/list")
            _, legacy = await here.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, session)
            for answer in (modern, legacy):
                assert answer["result"]["tools"][0]["description"] == description
            assert "resultType" not in legacy["result"]
