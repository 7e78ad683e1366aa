"""Buckets, addresses and nesting."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arion_tds.server.limits import Buckets, address
from arion_tds.server.shape import too_deep


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_caller_has_a_burst_and_then_its_rate() -> None:
    clock = Clock()
    buckets = Buckets(2.0, 3, 10, clock)
    assert [buckets.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert buckets.take("b") == 0.0, "another caller's share is its own"
    clock.now += 0.5
    assert buckets.wait("a") == 0.0
    assert buckets.take("a") == 0.0
    assert buckets.take("a") == 0.5
    clock.now += 1000
    assert [buckets.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5], "no more is saved up than a burst"


def test_the_table_is_bounded_and_whoever_was_silent_longest_is_forgotten() -> None:
    buckets = Buckets(0.001, 1, 3, Clock())
    for key in "abcd":
        assert buckets.take(key) == 0.0
    assert len(buckets) == 3
    assert buckets.take("a") == 0.0
    assert buckets.take("d") > 0.0


@pytest.mark.parametrize(
    ("peer", "forwarded", "hops", "key"),
    [
        ("10.0.0.1", None, 0, "10.0.0.1"),
        ("10.0.0.1", "6.6.6.6", 0, "10.0.0.1"),
        ("10.0.0.1", "6.6.6.6, 7.7.7.7", 1, "7.7.7.7"),
        ("10.0.0.1", "6.6.6.6, 7.7.7.7, 8.8.8.8", 2, "7.7.7.7"),
        ("10.0.0.1", "7.7.7.7", 3, "7.7.7.7"),
        ("10.0.0.1", "", 1, "10.0.0.1"),
        ("10.0.0.1", " , ", 1, "10.0.0.1"),
        (None, None, 0, "unknown"),
        ("2001:db8:1:2:3:4:5:6", None, 0, "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9%eth0", None, 0, "2001:db8:1:2::/64"),
        ("10.0.0.1", "[2001:db8:1:2::9]", 1, "2001:db8:1:2::/64"),
        ("10.0.0.1", "no:address", 1, "no:address"),
    ],
)
def test_where_a_request_comes_from(peer: str | None, forwarded: str | None, hops: int, key: str) -> None:
    assert address(peer, forwarded, hops) == key


@given(st.recursive(st.text(max_size=8) | st.integers(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.text(max_size=3), inner, max_size=3), max_leaves=20), st.integers(1, 6))  # fmt: skip
def test_nesting_is_counted_as_it_is(value: object, limit: int) -> None:
    def depth(one: object) -> int:
        if isinstance(one, dict):
            return 1 + max(map(depth, one.values()), default=0)
        return 1 + max(map(depth, one), default=0) if isinstance(one, list) else 0

    assert too_deep(json.dumps(value).encode(), limit) == (depth(value) > limit)
    assert too_deep(json.dumps(value, ensure_ascii=False).encode(), limit) == (depth(value) > limit)


def test_brackets_in_texts_do_not_count() -> None:
    assert not too_deep(json.dumps({"a": "[[[[{{{{" * 1000, "b": '"\\"[[[['}).encode(), 2)


def test_a_body_full_of_brackets_is_judged_quickly() -> None:
    assert too_deep(b"[" * (4 << 20), 128)
    assert not too_deep(b"[" + b"[]," * (1 << 20) + b"[]]", 128)
    assert too_deep(b'"\\' * (1 << 20) + b"[" * 500, 128) in {True, False}
    assert not too_deep((b"[" * 8 + b"]" * 8) * (1 << 18), 128)
    assert too_deep((b"[" * 9 + b"]") * 400_000, 128)
