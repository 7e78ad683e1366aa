"""Names in order while they come and go."""

from __future__ import annotations

import random

import pytest

from arion_tds.search import order
from arion_tds.search.order import Order


def test_slots_come_back_in_name_order_by_page_and_by_prefix() -> None:
    names = Order()
    for slot, name in enumerate(["git.b", "wiki.a", "git.a", "mail.x"]):
        names.add(name, slot)
    assert names.prefixed("") == [2, 0, 3, 1]
    assert names.prefixed("git.") == [2, 0]
    assert names.prefixed("zz") == []
    assert names.page(1, 3) == [0, 3]
    assert names.page(3, 99) == [1]
    assert names.page(9, 12) == []


def test_many_changes_leave_what_a_sorted_list_would_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "RUN", 8)
    chance, names, model = random.Random(5), Order(), {}
    for slot in range(3000):
        name = "".join(chance.choices("ab\0\U0010fffe", k=chance.randint(0, 6)))
        if name in model:
            names.remove(name, model.pop(name))
        else:
            names.add(name, slot)
            model[name] = slot
    expected = sorted(model)
    assert len(names) == len(model)
    assert names.prefixed("") == names.page(0, len(model)) == [model[name] for name in expected]
    for prefix in ("a", "b", "ab", "ba\0", "bbbbbbb"):
        assert names.prefixed(prefix) == [model[name] for name in expected if name.startswith(prefix)]
    for name in expected:
        names.remove(name, model[name])
    assert names.prefixed("") == []


def test_slots_of_one_name_are_found_and_leave_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "RUN", 4)
    names, left = Order(), list(range(50))
    for slot in left:
        names.add("same", slot)
        names.add(f"other {slot}", slot)
    for slot in random.Random(5).sample(left, len(left)):
        names.remove("same", slot)
        left.remove(slot)
        assert sorted(names.prefixed("same")) == left
    assert len(names) == len(names.prefixed("other ")) == 50
