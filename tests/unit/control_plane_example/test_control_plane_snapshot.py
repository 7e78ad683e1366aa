"""What is published, and what counts as a change."""

from __future__ import annotations

from control_plane_example.snapshot import Held, Key, Origin, Snapshot

X, Y = Key("arion", "t", "s/c/x"), Key("edge", "t", "s/c/x")


def test_only_what_differs_is_a_change() -> None:
    snapshot = Snapshot()
    assert snapshot.apply([(X, Held("1", b"a"))], [], Origin.PUT) == {"arion": {"t": {"s/c/x"}}}
    assert snapshot.apply([(X, Held("1", b"a"))], [], Origin.PUT) == {}
    assert snapshot.apply([(X, Held("1", b"b"))], [], Origin.PUT) == {"arion": {"t": {"s/c/x"}}}


def test_fleets_do_not_see_each_other() -> None:
    snapshot = Snapshot()
    snapshot.apply([(X, Held("1", b"a")), (Y, Held("2", b"b"))], [], Origin.PUT)
    assert snapshot.catalog("arion", "t") == {"s/c/x": Held("1", b"a")}
    assert snapshot.apply([], [X], Origin.PUT) == {"arion": {"t": {"s/c/x"}}}
    assert snapshot.get(Y) == Held("2", b"b")


def test_a_fleet_stays_published_when_it_is_emptied() -> None:
    snapshot = Snapshot()
    assert not snapshot.is_published("edge")
    snapshot.apply([(Y, Held("1", b"a"))], [], Origin.PUT)
    snapshot.apply([], [Y], Origin.PUT)
    assert snapshot.is_published("edge")
    assert list(snapshot.entries()) == []


def test_a_file_takes_over_what_was_put_and_removes_only_its_own() -> None:
    snapshot = Snapshot()
    snapshot.apply([(X, Held("1", b"put")), (Y, Held("1", b"put"))], [], Origin.PUT)
    snapshot.apply([(X, Held("2", b"file"))], [], Origin.FILE)
    assert snapshot.origin(X) is Origin.FILE
    assert snapshot.apply([], [X, Y], Origin.FILE) == {"arion": {"t": {"s/c/x"}}}
    assert snapshot.origin(Y) is Origin.PUT


def test_a_name_removed_and_added_at_once_is_replaced() -> None:
    snapshot = Snapshot()
    snapshot.apply([(X, Held("1", b"a"))], [], Origin.FILE)
    assert snapshot.apply([(X, Held("1", b"a"))], [X], Origin.FILE) == {}
    assert snapshot.get(X) == Held("1", b"a")
