"""The list of what stands rejected: newest reason per resource, gone when accepted or removed, bounded."""

import pytest

from arion_tds import problems
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.problems import Problems

TOOL = ResourceId("s/c", "ns.tool")


def test_a_rejection_is_news_once_and_again_with_another_reason() -> None:
    held = Problems(lambda: 7.0)
    assert held.rejected(Kind.TOOL, TOOL, "1", "bad")
    assert not held.rejected(Kind.TOOL, TOOL, "2", "bad")
    assert held.rejected(Kind.TOOL, TOOL, "3", "worse")
    (one,) = held.standing()
    assert (one.kind, one.name, one.version, one.reason, one.at) == ("Tool", "s/c/ns.tool", "3", "worse", 7.0)


def test_acceptance_and_removal_clear_it() -> None:
    held = Problems(lambda: 0.0)
    held.rejected(Kind.TOOL, TOOL, "1", "bad")
    held.accepted(Kind.TOOL, TOOL, "2")
    assert held.standing() == []
    held.rejected(Kind.TOOL, TOOL, "3", "bad")
    held.removed(Kind.TOOL, TOOL)
    assert len(held) == 0


def test_parts_that_are_left_out_stand_beside_an_accepted_resource() -> None:
    held = Problems(lambda: 0.0)
    held.accepted(Kind.SERVER, ResourceId("s/c", "up"), "1", ["tool x: no schema", "tool y: twice"])
    assert [(one.accepted, one.reason) for one in held.standing()] == [
        (True, "tool x: no schema"),
        (True, "tool y: twice"),
    ]
    assert len(held) == 0


def test_it_is_bounded_and_counts_what_it_forgot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "MAX_PROBLEMS", 3)
    held = Problems(lambda: 0.0)
    for number in range(5):
        held.rejected(Kind.TOOL, ResourceId("s/c", f"ns.t{number}"), "1", "bad")
    assert [one.name for one in held.standing()] == ["s/c/ns.t2", "s/c/ns.t3", "s/c/ns.t4"]
    assert held.dropped == 2
