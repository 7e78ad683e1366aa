"""When a worker that does not answer counts as one that hangs."""

from __future__ import annotations

from arion_tds.workers.pulse import TRIES, Pulse


def test_one_that_answers_now_and_then_lives() -> None:
    pulse = Pulse()
    for _ in range(3):
        for _ in range(TRIES):
            assert pulse.beats()
        pulse.answered()


def test_one_that_lets_every_question_of_the_time_pass_hangs() -> None:
    pulse = Pulse()
    assert [pulse.beats() for _ in range(TRIES + 1)] == [*[True] * TRIES, False]


def test_a_supervisor_that_was_still_itself_misses_one_question_alone() -> None:
    pulse = Pulse()
    assert pulse.beats()  # asked; then a container is frozen for an hour, and both of them with it
    assert pulse.beats()  # its answer waits to be read
    pulse.answered()
    assert all(pulse.beats() for _ in range(TRIES))
