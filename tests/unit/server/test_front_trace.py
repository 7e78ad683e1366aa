"""Names under which a request is found again."""

from __future__ import annotations

import pytest
from msgspec import Raw
from multidict import CIMultiDict

from arion_tds.server import trace
from arion_tds.server.jsonrpc import Params

RANDOM = bytes(range(1, 33))
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
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


def meta(**members: str) -> Params:
    return {name: Raw(value.encode()) for name, value in members.items()}


def test_a_context_in_meta_goes_before_that_of_the_headers() -> None:
    headers = CIMultiDict({"TraceParent": GOOD, "TraceState": "h=1"})
    assert trace.sent(headers, None) == (GOOD, "h=1", None)
    found = trace.sent(headers, meta(traceparent=f'"{OTHER}"', tracestate='"m=1"'))
    assert found == (OTHER, "m=1", GOOD)
    assert trace.sent({}, meta(traceparent=f'"{OTHER}"')) == (OTHER, None, None)


@pytest.mark.parametrize("wrong", ['"x"', "7", "null", "{}", f'"{GOOD.upper()}"'])
def test_a_wrong_one_in_meta_is_none(wrong: str) -> None:
    assert trace.sent({}, meta(traceparent=wrong)) == (None, None, None)
    assert trace.sent(CIMultiDict({"traceparent": GOOD}), meta(traceparent=wrong)).parent == GOOD


@pytest.mark.parametrize("wrong", ["", "a\tb", "é", "x" * 513])
def test_a_tracestate_that_no_header_carries_or_that_has_no_parent_is_none(wrong: str) -> None:
    assert trace.sent(CIMultiDict({"traceparent": GOOD, "tracestate": wrong}), None).state is None
    assert trace.sent(CIMultiDict({"tracestate": "a=1"}), None) == (None, None, None)


def test_a_request_id_of_visible_ascii_is_kept() -> None:
    assert trace.request_id("a-1", RANDOM) == "a-1"
    assert trace.request_id("x" * 128, RANDOM) == "x" * 128


@pytest.mark.parametrize("sent", [None, "", "a b", "x" * 129, "é", "a\n"])
def test_any_other_request_id_is_replaced(sent: str | None) -> None:
    assert trace.request_id(sent, RANDOM) == "191a1b1c1d1e1f20"
