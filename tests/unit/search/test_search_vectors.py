"""Vectors by key, and rankings made one."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from arion_tds.search import vectors
from arion_tds.search.fuse import reciprocal_rank
from arion_tds.search.vectors import Vector, Vectors, unit


def vector(*numbers: float) -> Vector:
    made = unit(numbers, len(numbers))
    assert not isinstance(made, str)
    return made


def test_the_nearest_are_the_most_similar_and_ties_are_in_key_order() -> None:
    known = Vectors(2)
    for key, made in (("north", vector(0, 3)), ("east", vector(2, 0)), ("b", vector(1, 1)), ("a", vector(5, 5))):
        known.add(key, made)
    assert [key for key, _ in known.nearest(vector(0, 1), 4)] == ["north", "a", "b", "east"]
    assert [key for key, _ in known.nearest(vector(0, 1), 2)] == ["north", "a"]
    assert known.nearest(vector(0, 1), 1)[0][1] == pytest.approx(1.0)
    assert known.nearest(vector(0, 1), 0) == []


def test_a_filter_reaches_as_far_down_as_it_must() -> None:
    known = Vectors(2)
    for at in range(100):
        known.add(f"k{at:03}", vector(1, at / 100))
    found = known.nearest(vector(1, 0), 3, allowed=lambda key: key >= "k090")
    assert [key for key, _ in found] == ["k090", "k091", "k092"]
    assert known.nearest(vector(1, 0), 3, allowed=lambda _: False) == []
    assert [key for key, _ in known.nearest(vector(1, 0), 2, allowed=lambda _: True)] == ["k000", "k001"]


def test_vectors_come_go_and_change_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "ROWS", 4)
    known, model = Vectors(3), {}
    chance = np.random.default_rng(3)
    for turn in range(400):
        key = f"k{chance.integers(20)}"
        if chance.random() < 0.45:
            known.remove(key)
            model.pop(key, None)
        else:
            model[key] = vector(*chance.normal(size=3))
            known.add(key, model[key])
        asked = vector(1, 2, 3)
        expected = sorted(((-float(other @ asked), name) for name, other in model.items()))
        found = known.nearest(asked, 50)
        assert [key for key, _ in found] == [name for _, name in expected], turn
        assert len(known) == len(model)
    for key in list(model):
        known.remove(key)
    assert known._blocks == []
    assert known.nearest(vector(1, 0, 0), 5) == []


def test_a_delivered_embedding_is_little_endian_floats() -> None:
    made = unit(struct.pack("<2f", 3.0, 4.0), 2)
    assert not isinstance(made, str)
    assert made.tolist() == pytest.approx([0.6, 0.8])
    assert not isinstance(unit([1e200, 1e200], 2), str)


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ([1.0], "of 1 numbers where 2"),
        (b"\0" * 12, "of 3 numbers where 2"),
        (b"\0" * 7, "of 1.75 numbers where 2"),
        ([0.0, 0.0], "zeros"),
        ([1.0, float("nan")], "not finite"),
        (struct.pack("<2f", float("inf"), 1.0), "not finite"),
    ],
)
def test_numbers_that_are_no_direction_are_refused_with_the_reason(numbers: bytes | list[float], why: str) -> None:
    problem = unit(numbers, 2)
    assert isinstance(problem, str)
    assert why in problem


def test_fusion_rewards_being_high_in_both() -> None:
    fused = reciprocal_rank([["a", "b", "c"], ["c", "b", "d"]])
    assert [key for key, _ in fused] == ["c", "b", "a", "d"]
    assert dict(fused)["b"] == pytest.approx(2 / 12)
    assert reciprocal_rank([["x"], ["a"]]) == [("a", 1 / 11), ("x", 1 / 11)]
    assert reciprocal_rank([[], []]) == []


def test_nearest_among_a_few_looks_at_no_other() -> None:
    known = Vectors(2)
    for key, made in (("a", vector(1, 0)), ("b", vector(0.9, 0.1)), ("c", vector(0, 1))):
        known.add(key, made)
    asked = vector(1, 0)
    assert [key for key, _ in known.nearest(asked, 5, among=["c", "b", "unknown"])] == ["b", "c"]
    assert [key for key, _ in known.nearest(asked, 1, among=["c", "b"])] == ["b"]
    assert [key for key, _ in known.nearest(asked, 5, lambda key: key != "b", ["c", "b"])] == ["c"]
    assert known.nearest(asked, 5, among=[]) == []
