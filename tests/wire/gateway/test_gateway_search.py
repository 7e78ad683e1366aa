"""What ranks by words is imported when it is needed: with numpy it is 12 MB."""

from __future__ import annotations

import pytest
from gateway_house import Spec, house, listener, tool

from arion_tds import pace
from arion_tds.search.hits import ENGINE


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """As in a new process: the modules that were loaded beside the loop."""
    found: set[str] = set()
    monkeypatch.setattr(pace, "_loaded", found)
    return found


async def test_the_first_search_for_words_loads_the_engine_and_one_without_words_does_not(loaded: set[str]) -> None:
    async with house() as it:
        await it.put("McpTool", "a/main/mail.send", tool("mail.send", "Sends a letter"))
        await it.put("McpTool", "a/main/mail.list", tool("mail.list", "Lists what came"))
        assert await it.a.search(" ") == ["mail.list", "mail.send"]
        assert loaded == set()
        assert await it.a.search("letter") == ["mail.send"]
        assert loaded == {ENGINE}


async def test_the_operators_search_loads_it_too(loaded: set[str]) -> None:
    async with house() as it:
        await it.put("McpTool", "a/main/mail.send", tool("mail.send", "Sends a letter"))
        found = await it.admin("tools?query=letter")
        assert [one["name"] for one in found["tools"]] == ["mail.send"]
        assert loaded == {ENGINE}


@pytest.mark.parametrize("block", [{"search": {}}, {"code_mode": {}}])
async def test_where_tools_are_found_by_search_it_is_there_from_the_start(loaded: set[str], block: Spec) -> None:
    async with house(listener(gateway=block)):
        assert loaded == {ENGINE}
