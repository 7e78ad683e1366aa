"""Verdicts per resource: the last eight, repeats counted instead of kept, the serving one findable, all bounded."""

from collections.abc import Callable

import pytest

from arion_tds import history
from arion_tds.history import History, Outcome, Verdict
from arion_tds.model.delivery import Kind, ResourceId

TOOL = ResourceId("s/c", "ns.tool")


def ticking() -> Callable[[], float]:
    """A clock that is one second on at every look."""
    seconds = iter(range(1, 1000))
    return lambda: float(next(seconds))


def test_a_rejected_update_leaves_the_verdict_that_is_served() -> None:
    held = History(ticking())
    held.accepted(Kind.TOOL, TOOL, "1")
    held.rejected(Kind.TOOL, TOOL, "2", "bad")
    assert [(one.outcome, one.version, one.reason, one.at) for one in held.of(Kind.TOOL, TOOL)] == [
        (Outcome.ACCEPTED, "1", "", 1.0),
        (Outcome.REJECTED, "2", "bad", 2.0),
    ]
    serving = held.serving(Kind.TOOL, TOOL)
    assert serving is not None
    assert (serving.version, serving.at) == ("1", 1.0)


def test_what_was_never_taken_or_was_taken_back_is_not_served() -> None:
    held = History(ticking())
    assert held.serving(Kind.TOOL, TOOL) is None
    held.rejected(Kind.TOOL, TOOL, "1", "bad")
    assert held.serving(Kind.TOOL, TOOL) is None
    held.accepted(Kind.TOOL, TOOL, "2")
    held.removed(Kind.TOOL, TOOL)
    assert held.serving(Kind.TOOL, TOOL) is None


def test_the_same_verdict_again_is_counted_and_keeps_its_first_time() -> None:
    held = History(ticking())
    for _ in range(3):
        held.accepted(Kind.TOOL, TOOL, "1")
    (one,) = held.of(Kind.TOOL, TOOL)
    assert (one.at, one.last_at, one.times) == (1.0, 3.0, 3)


def test_eight_verdicts_are_kept_and_a_long_reason_is_cut() -> None:
    held = History(ticking())
    for number in range(20):
        held.rejected(Kind.TOOL, TOOL, str(number), "x" * 5000)
    kept = held.of(Kind.TOOL, TOOL)
    assert [one.version for one in kept] == [str(number) for number in range(12, 20)]
    assert {len(one.reason) for one in kept} == {2000}


def test_kinds_and_scopes_do_not_meet() -> None:
    held = History(ticking())
    held.accepted(Kind.SOURCE, ResourceId("s/c", "ns"), "1")
    held.rejected(Kind.SERVER, ResourceId("s/c", "ns"), "2", "bad")
    held.accepted(Kind.TOOL, ResourceId("s/d", "ns.tool"), "3")
    found = [(kind, name, last.version) for kind, name, last in held.latest("s/c")]
    assert found == [(Kind.SOURCE, "ns", "1"), (Kind.SERVER, "ns", "2")]
    assert held.of(Kind.TOOLKIT, ResourceId("s/c", "ns")) == ()


def test_the_resource_not_heard_of_for_longest_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_RESOURCES", 2)
    held = History(ticking())
    first, second, third = (ResourceId("s/c", f"ns.{name}") for name in "abc")
    held.accepted(Kind.TOOL, first, "1")
    held.accepted(Kind.TOOL, second, "1")
    held.accepted(Kind.TOOL, first, "2")
    held.accepted(Kind.TOOL, third, "1")
    assert held.of(Kind.TOOL, second) == ()
    assert len(held.of(Kind.TOOL, first)) == 2
    assert (len(held), held.dropped) == (2, 1)


def test_of_all_kinds_the_one_heard_of_last_comes_first_and_the_oldest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "MAX_RESOURCES", 3)
    held = History(ticking())
    space = ResourceId("s/c", "ns")
    held.accepted(Kind.SOURCE, space, "1")
    held.accepted(Kind.TOOL, TOOL, "1")
    held.removed(Kind.SOURCE, space)
    held.accepted(Kind.SERVER, space, "1")
    assert [(kind, len(verdicts)) for kind, _, verdicts in held.recent()] == [
        (Kind.SERVER, 1),
        (Kind.SOURCE, 2),
        (Kind.TOOL, 1),
    ]
    held.accepted(Kind.TOOLKIT, space, "1")
    assert [kind for kind, _, _ in held.recent()] == [Kind.TOOLKIT, Kind.SERVER, Kind.SOURCE]
    assert held.of(Kind.TOOL, TOOL) == ()


def test_a_listener_hears_every_verdict_until_it_leaves() -> None:
    held = History(ticking())
    heard: list[tuple[str, Verdict]] = []
    leave = held.listen(lambda kind, name, verdict: heard.append((f"{kind.short} {name}", verdict)))
    held.accepted(Kind.TOOL, TOOL, "1")
    leave()
    held.removed(Kind.TOOL, TOOL)
    assert [(name, one.outcome) for name, one in heard] == [("Tool s/c/ns.tool", Outcome.ACCEPTED)]
