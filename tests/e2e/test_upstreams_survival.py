"""Three MCP servers under load, each in turn killed, frozen and slow: nobody else's call is lost, and all come back."""

from __future__ import annotations

import pytest

from benchmarks import mcp_survival

pytestmark = pytest.mark.e2e


async def test_a_server_that_is_killed_frozen_or_slow_costs_no_call_of_another_and_returns_by_itself() -> None:
    figures = await mcp_survival.run(0.3)
    assert figures.pop("all") == {"listed": 15}  # the tools of all three stayed listed throughout
    assert len(figures) == 9
    for trouble, found in figures.items():
        assert found["calls"] > 0, trouble
        assert found["lost"] == 0, trouble
        if "slow" in trouble:
            assert found["failed_of_troubled"] == 0, trouble
