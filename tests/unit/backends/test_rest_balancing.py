"""Which endpoint is asked: by policy, and by what is known of each."""

from __future__ import annotations

from collections import Counter

from arion_tds.backends.balancing import Balance
from arion_tds.model.cluster import Cluster, LbPolicy, Outlier


class Dice:
    """Numbers from [0, 1) in turn, again and again."""

    def __init__(self, *numbers: float) -> None:
        self._numbers = numbers
        self._at = 0

    def __call__(self) -> float:
        self._at += 1
        return self._numbers[(self._at - 1) % len(self._numbers)]


def balance(
    policy: LbPolicy = LbPolicy.ROUND_ROBIN, *, dice: Dice | None = None, outlier: Outlier | None = None
) -> Balance:
    origins = ("http://a", "http://b", "http://c", "http://d")
    cluster = Cluster(name="c", endpoints=origins, lb_policy=policy, outlier=outlier)
    return Balance(cluster, dice or Dice(0.0))


def first(made: Balance, now: float = 0.0) -> str:
    return made.order(now)[0].origin


def test_round_robin_takes_turns_and_names_everybody() -> None:
    made = balance()
    assert [first(made) for _ in range(5)] == ["http://a", "http://b", "http://c", "http://d", "http://a"]
    assert len(made.order(0.0)) == 4


def test_random_begins_anywhere() -> None:
    made = balance(LbPolicy.RANDOM, dice=Dice(0.0, 0.3, 0.6, 0.99))
    assert Counter(first(made) for _ in range(8)) == dict.fromkeys(("http://a", "http://b", "http://c", "http://d"), 2)


def test_least_request_takes_the_less_busy_of_two() -> None:
    made = balance(LbPolicy.LEAST_REQUEST, dice=Dice(0.0, 0.5))
    made.endpoints[0].active = 3
    assert first(made) == "http://c"
    made.endpoints[2].active = 4
    assert first(made) == "http://a"
    assert {one.origin for one in made.order(0.0)} == {"http://a", "http://b", "http://c", "http://d"}


def test_the_ill_are_asked_last_and_still_when_all_are() -> None:
    made = balance()
    made.endpoints[0].healthy = False
    made.endpoints[1].down_until = 10.0
    assert [one.origin for one in made.order(5.0)][:2] == ["http://c", "http://d"]
    assert first(made, now=11.0) == "http://b"
    for endpoint in made.endpoints:
        endpoint.healthy = False
    assert len(made.order(5.0)) == 4


def test_five_bad_answers_in_a_row_are_too_many_and_each_time_costs_more() -> None:
    made = balance(outlier=Outlier(consecutive_5xx=3, base_ejection_time=10, max_ejection_time=25))
    one = made.endpoints[0]
    for good in (False, False, True, False, False):
        assert made.answered(one, good=good, now=0.0) is None
    assert made.answered(one, good=False, now=0.0) == 10
    assert one not in made.order(9.0)[:3]
    for _ in range(2):
        assert made.answered(one, good=False, now=10.0) is None
    assert made.answered(one, good=False, now=10.0) == 20
    for _ in range(2):
        made.answered(one, good=False, now=30.0)
    assert made.answered(one, good=False, now=30.0) == 25


def test_no_more_are_passed_over_than_the_share_that_may_be() -> None:
    made = balance(outlier=Outlier(consecutive_5xx=1, max_ejection_percent=50))
    ejected = [made.answered(one, good=False, now=0.0) is not None for one in made.endpoints]
    assert ejected == [True, True, False, False]
    made = balance(outlier=Outlier(consecutive_5xx=1, max_ejection_percent=0))
    assert [made.answered(one, good=False, now=0.0) is not None for one in made.endpoints] == [
        True,
        False,
        False,
        False,
    ]


def test_endpoints_that_stay_keep_what_is_known_of_them() -> None:
    made = balance()
    made.endpoints[1].healthy = False
    made.replace(["http://b/", "http://e"])
    assert [(one.origin, one.healthy) for one in made.endpoints] == [("http://b", False), ("http://e", None)]
    made.replace([])
    assert made.order(0.0) == []
