import random

from arion_tds.xds.backoff import Backoff


class Longest:
    """The worst of all dice."""

    def uniform(self, a: float, b: float) -> float:
        return b


class Shortest:
    def uniform(self, a: float, b: float) -> float:
        return a


def test_the_reach_doubles_up_to_its_limit() -> None:
    backoff = Backoff(1.0, 30.0, Longest())
    assert [backoff.delay(1.0) for _ in range(7)] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_a_response_brings_it_back_to_base() -> None:
    backoff = Backoff(1.0, 30.0, Longest())
    for _ in range(5):
        backoff.delay(1.0)
    backoff.succeeded()
    assert backoff.delay(1.0) == 1.0


def test_a_connection_without_a_response_does_not_reset_it() -> None:
    backoff = Backoff(1.0, 30.0, Longest())
    assert backoff.delay(lived=3600.0) < backoff.delay(lived=3600.0)


def test_streams_begin_at_least_base_seconds_apart_even_after_a_good_one() -> None:
    backoff = Backoff(1.0, 30.0, Shortest())
    for _ in range(10):
        backoff.succeeded()
        assert backoff.delay(lived=0.25) == 0.75
    assert backoff.least(lived=0.25) == 0.75
    assert backoff.least(lived=5.0) == 0.0


def test_a_stream_that_lived_long_is_replaced_within_base_seconds() -> None:
    backoff = Backoff(1.0, 30.0, Longest())
    backoff.succeeded()
    assert backoff.delay(lived=3600.0) == 1.0


def test_two_clients_wait_differently() -> None:
    one, other = Backoff(1.0, 30.0, random.Random(1)), Backoff(1.0, 30.0, random.Random(2))
    assert [one.delay(0.0) for _ in range(4)] != [other.delay(0.0) for _ in range(4)]


def test_a_night_without_a_control_plane_does_not_overflow() -> None:
    backoff = Backoff(1.0, 30.0, Longest())
    assert [backoff.delay(1.0) for _ in range(2000)][-1] == 30.0
