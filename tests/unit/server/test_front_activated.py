"""What a session has found by search, kept and bounded, and when it is told."""

from __future__ import annotations

from front_samples import published, put, tool

from arion_tds.server.activated import Activated


def test_a_session_is_told_once_of_what_is_new_to_it() -> None:
    told: list[str] = []
    here = Activated(published())
    here.listen(told.append)
    here.add("s1", ["shop.b", "shop.a"])
    here.add("s2", ["shop.a"])
    here.add("s1", ["shop.a"])
    here.add("s1", [])
    assert told == ["s1", "s2"]
    assert here.of("s1") == ["shop.a", "shop.b"]
    assert here.of("s2") == ["shop.a"]
    assert here.of("unknown") == here.of(None) == ()


def test_what_was_found_longest_ago_makes_room_and_finding_again_counts() -> None:
    here = Activated(published(), max_tools=3)
    here.add("s", ["a", "b", "c"])  # best first: `c` goes first
    here.add("s", ["c"])
    here.add("s", ["d", "e"])
    assert here.of("s") == ["c", "d", "e"]
    here.add("s", ["v", "w", "x", "y", "z"])
    assert here.of("s") == ["v", "w", "x"]


def test_the_session_that_asked_longest_ago_makes_room() -> None:
    here = Activated(published(), max_sessions=2)
    here.add("s1", ["a"])
    here.add("s2", ["a"])
    assert here.of("s1") == ["a"]
    here.add("s3", ["a"])
    assert here.of("s2") == ()
    assert len(here) == 2


def test_an_ended_session_leaves_nothing_behind() -> None:
    here = Activated(published())
    here.add("s1", ["a", "b"])
    here.add("s2", ["b"])
    here.end("s1")
    here.end("s1")
    assert here._holders == {"b": {"s2"}}
    here.end("s2")
    assert len(here) == len(here._holders) == 0


def test_only_sessions_that_have_found_a_tool_hear_that_it_changed() -> None:
    told: list[str] = []
    place = published(tool("a"), tool("b"))
    here = Activated(place)
    here.add("s1", ["shop.a"])
    here.add("s2", ["shop.b"])
    here.listen(told.append)
    put(place, tool("b", description="new"), gone=(tool("b"),))
    assert told == ["s2"]
    put(place, gone=(tool("a"),))
    assert told == ["s2", "s1"]
    put(place, tool("c"))
    here.close()
    put(place, gone=(tool("b"),))
    assert told == ["s2", "s1"]


def test_a_tool_that_clients_see_as_before_is_no_change() -> None:
    told: list[str] = []
    place = published(tool("a"))
    here = Activated(place)
    here.add("s1", ["shop.a"])
    here.listen(told.append)
    put(place, tool("a"), gone=(tool("a"),))
    assert told == []
