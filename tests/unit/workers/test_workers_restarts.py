"""How long a worker that ended is waited with."""

from __future__ import annotations

from arion_tds.workers.restarts import GOOD, Restarts


class Dice:
    """Throws the greatest number, or the least."""

    def __init__(self, *, high: bool = True) -> None:
        self._high = high

    def uniform(self, a: float, b: float) -> float:
        return b if self._high else a


def test_the_first_is_replaced_at_once_and_those_after_it_later_and_later() -> None:
    restarts = Restarts(Dice())
    assert [restarts.delay(0.0) for _ in range(8)] == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_one_that_has_served_for_a_while_is_replaced_at_once_again() -> None:
    restarts = Restarts(Dice())
    assert [restarts.delay(0.0), restarts.delay(1.0), restarts.delay(GOOD), restarts.delay(0.0)] == [0.0, 1.0, 0.0, 1.0]


def test_several_that_fail_together_do_not_come_back_together() -> None:
    restarts = Restarts(Dice(high=False))
    assert [restarts.delay(0.0) for _ in range(3)] == [0.0, 0.8, 1.6]


def test_a_night_of_failures_does_not_overflow() -> None:
    restarts = Restarts(Dice())
    assert [restarts.delay(0.0) for _ in range(5000)][-1] == 30.0
