"""Sorted names in runs: what a sorted list would be, and shared where nothing changed."""

from __future__ import annotations

import bisect

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arion_tds.registry.order import RUN, Names

NAMES = [f"t{number:05}" for number in range(5 * RUN)]
some = st.sets(st.sampled_from(NAMES), max_size=3 * RUN)


@settings(max_examples=60, deadline=None)
@given(some, st.lists(st.tuples(some, some), max_size=3), st.integers(-5, 3 * RUN), st.integers(-5, 3 * RUN))
def test_names_are_what_a_sorted_list_of_them_would_be(
    first: set[str], changes: list[tuple[set[str], set[str]]], start: int, stop: int
) -> None:
    held, names = set(first), Names(first)
    for gone, new in changes:
        come = new - (held - gone)
        held = (held - gone) | come
        names = names.replace(gone, come)
    plain = sorted(held)
    assert names == plain
    assert list(names) == plain
    assert [names[at] for at in range(len(names))] == plain
    assert names[start:stop] == plain[start:stop]
    assert names[start:stop:3] == plain[start:stop:3]
    assert bisect.bisect_right(names, "t00700") == bisect.bisect_right(plain, "t00700")
    assert all(name in names for name in plain[::50])
    assert ("t00700" in names) == ("t00700" in held)


def test_what_did_not_change_is_shared_and_the_names_before_stay_as_they_were() -> None:
    before = Names(NAMES)
    after = before.replace(["t00000"], ["t00000a"])
    assert (before[0], after[0]) == ("t00000", "t00000a")
    assert after._runs[1] is before._runs[1]
    assert len(after) == len(before) == len(NAMES)


def test_the_last_of_them_and_nothing_at_all() -> None:
    names = Names(NAMES)
    assert (names[-1], Names(), len(Names().replace(["x"], []))) == (NAMES[-1], [], 0)
    assert "x" not in Names()
    assert 7 not in names
    assert names != "t"
    with pytest.raises(IndexError):
        names[len(NAMES)]
