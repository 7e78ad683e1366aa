"""Several workers explain a name: those that say otherwise are named."""

from __future__ import annotations

from typing import Any

from arion_tds.admin import agreeing


def answer(state: str = "served", version: str = "1", scope: str = "s/c") -> dict[str, Any]:
    return {"scope": scope, "state": state, "summary": f"it is {state}", "origin": {"version": version}}


def marked(one: dict[str, Any], others: dict[int, list[dict[str, Any]] | None]) -> Any:
    agreeing.mark([one], others)
    return one.get("workers")


def test_nothing_is_added_where_all_say_the_same() -> None:
    assert marked(answer(), {1: [answer()], 2: [answer(scope="other"), answer()]}) is None
    assert marked({"scope": "s/c", "state": "unknown"}, {1: [{"scope": "s/c", "state": "unknown"}]}) is None


def test_one_with_another_verdict_is_quoted_and_so_is_one_with_another_version() -> None:
    assert marked(answer(), {2: [answer("pending")], 1: [answer(version="0")]}) == [
        {"worker": 1, "state": "served", "summary": "it is served"},
        {"worker": 2, "state": "pending", "summary": "it is pending"},
    ]


def test_one_that_has_no_answer_is_named() -> None:
    assert marked(answer(), {1: None, 2: [answer(scope="other")]}) == [{"worker": 1}]
