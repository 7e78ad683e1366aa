"""A session id works in every process with the key, until it runs out or is ended."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arion_tds.server.sessions import Sessions


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def sessions(clock: Clock | None = None, key: bytes = b"k" * 32, **more: Any) -> Sessions:
    counter = itertools.count()
    return Sessions(
        key, clock=clock or Clock(), random_bytes=lambda n: next(counter).to_bytes(n, "big"), lifetime=100.0, **more
    )


def test_another_worker_with_the_key_accepts_the_id() -> None:
    identity = sessions().issue("2025-06-18")
    found = sessions().check(identity)
    assert found is not None
    assert found.revision == "2025-06-18"
    assert found.remaining == 100.0


def test_another_key_does_not() -> None:
    assert sessions(key=b"x" * 32).check(sessions().issue("2025-06-18")) is None


def test_an_id_runs_out() -> None:
    clock = Clock()
    here = sessions(clock)
    identity = here.issue("2025-11-25")
    clock.now += 99
    assert here.check(identity) is not None
    clock.now += 1
    assert here.check(identity) is None


def test_an_ended_id_stays_ended() -> None:
    here = sessions()
    one, other = here.issue("2025-11-25"), here.issue("2025-11-25")
    assert here.end(one)
    assert here.check(one) is None
    assert not here.end(one)
    assert here.check(other) is not None


def test_what_is_remembered_of_ended_ids_is_bounded() -> None:
    here = sessions(max_ended=2)
    ids = [here.issue("2025-11-25") for _ in range(3)]
    assert all(here.end(one) for one in ids)
    assert [here.check(one) is None for one in ids] == [False, True, True]


def test_what_is_remembered_of_good_ids_is_bounded_and_changes_no_verdict() -> None:
    here = sessions(max_known=2)
    ids = [here.issue("2025-06-18") for _ in range(5)]
    for identity in ids * 2:
        assert here.check(identity) is not None
        assert here.check(identity, "somebody") is None
    assert len(here._known) == 2
    assert here.end(ids[-1])
    assert here.check(ids[-1]) is None


def test_an_id_works_only_for_its_subject() -> None:
    here = sessions()
    identity = here.issue("2025-11-25", "alice")
    assert here.check(identity, "alice") is not None
    assert here.check(identity, "bob") is None
    assert here.check(identity) is None
    assert not here.end(identity, "bob")
    assert here.check(here.issue("2025-11-25"), "alice") is None


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="too short"):
        sessions(key=b"short")


def test_ids_are_visible_ascii_without_padding() -> None:
    identity = sessions().issue("2024-11-05")
    assert identity.isascii()
    assert identity.isprintable()
    assert "=" not in identity


@given(st.text(max_size=60) | st.integers(0, 55).flatmap(lambda at: st.characters().map(lambda c: (at, c))))
def test_no_altered_or_invented_id_is_good(forged: Any) -> None:
    here = sessions()
    identity = here.issue("2025-11-25")
    if isinstance(forged, tuple):
        at, letter = forged
        forged = identity[:at] + letter + identity[at + 1 :]
    if forged.translate(str.maketrans("+/", "-_")) != identity:
        assert here.check(forged) is None
