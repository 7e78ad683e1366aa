"""When a try is made again, by Envoy's conditions."""

from __future__ import annotations

import pytest

from arion_tds.backends.retry import Fault, back_off, on_fault, on_status, worth_repeating
from arion_tds.model.policy import RetryPolicy


def on(*conditions: str) -> RetryPolicy:
    return RetryPolicy(frozenset(conditions), retriable_status_codes=frozenset({404}))


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("5xx", {500, 501, 503, 599}),
        ("gateway-error", {502, 503, 504}),
        ("retriable-4xx", {409}),
        ("retriable-status-codes", {404}),
        ("connect-failure", set()),
        ("reset", set()),
    ],
)
def test_a_condition_wants_these_statuses_and_no_others(condition: str, wanted: set[int]) -> None:
    asked = {200, 301, 404, 409, 429, 500, 501, 503, 599}
    assert {status for status in asked if on_status(on(condition), status)} == wanted & asked


@pytest.mark.parametrize(
    ("condition", "unsent", "lost"),
    [
        ("connect-failure", True, False),
        ("reset", True, True),
        ("5xx", True, True),
        ("gateway-error", True, True),
        ("retriable-4xx", False, False),
    ],
)
def test_a_condition_wants_these_faults(condition: str, unsent: bool, lost: bool) -> None:
    for fault in Fault:
        assert on_fault(on(condition), fault) is (unsent if fault.unsent else lost)


def test_codes_alone_retry_nothing() -> None:
    assert not on_status(RetryPolicy(retriable_status_codes=frozenset({503})), 503)


def test_waits_double_up_to_their_maximum_and_are_drawn_from_the_whole_interval() -> None:
    policy = RetryPolicy(base_interval=0.1, max_interval=0.5)
    assert [back_off(policy, retries, 0.5) for retries in range(5)] == [0.05, 0.1, 0.2, 0.25, 0.25]
    assert back_off(policy, 10_000, 0.0) == 0.0


def test_a_call_that_may_have_been_executed_is_not_worth_repeating() -> None:
    assert worth_repeating(500, idempotent=True)
    assert not worth_repeating(500, idempotent=False)
    assert not worth_repeating(404, idempotent=True)
