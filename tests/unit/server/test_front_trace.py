"""Names under which a request is found again."""

from __future__ import annotations

import pytest

from arion_tds.server import trace

RANDOM = bytes(range(1, 33))
GOOD = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_valid_traceparent_is_kept() -> None:
    assert trace.traceparent(GOOD, RANDOM) == GOOD


@pytest.mark.parametrize(
    "sent",
    [
        None,
        "",
        "x",
        GOOD.upper(),
        "ff" + GOOD[2:],
        GOOD + "-x",
        GOOD.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
    ],
)
def test_any_other_is_replaced(sent: str | None) -> None:
    made = trace.traceparent(sent, RANDOM)
    assert made == "00-0102030405060708090a0b0c0d0e0f10-1112131415161718-00"
    assert trace.traceparent(made, b"") == made


def test_a_request_id_of_visible_ascii_is_kept() -> None:
    assert trace.request_id("a-1", RANDOM) == "a-1"
    assert trace.request_id("x" * 128, RANDOM) == "x" * 128


@pytest.mark.parametrize("sent", [None, "", "a b", "x" * 129, "é", "a\n"])
def test_any_other_request_id_is_replaced(sent: str | None) -> None:
    assert trace.request_id(sent, RANDOM) == "191a1b1c1d1e1f20"
