"""Event streams as servers write them, however they arrive."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arion_tds.backends.mcp.sse import SseParser


def events(*chunks: bytes, limit: int = 1000) -> list[bytes]:
    parser = SseParser(limit)
    found: list[bytes] = []
    for chunk in chunks:
        found += parser.feed(chunk)
    return found + parser.end()


def test_an_event_with_everything_around_it() -> None:
    assert events(b": ping\n\nid: 0_1\ndata:\n\nevent: message\ndata: {}\n\n") == [b"{}"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end(end: bytes) -> None:
    assert events(end.join([b"data: a", b"", b"data:b", b"data: c", b"", b""])) == [b"a", b"b\nc"]


def test_an_event_without_a_name_or_a_last_blank_line() -> None:
    assert events(b"data: a") == [b"a"]


def test_events_of_other_names_are_not_messages() -> None:
    assert events(b"event: ping\ndata: {}\n\nevent: endpoint\ndata: /x\n\ndata: a\n\n") == [b"a"]


def test_the_last_id_and_retry_are_kept_for_resuming() -> None:
    parser = SseParser(100)
    parser.feed(b"id: 7\nretry: 250\ndata:\n\nretry: soon\n\n")
    assert (parser.last_id, parser.retry) == ("7", 250)


def test_an_event_that_is_too_long_ends_the_stream_before_it_is_held() -> None:
    parser = SseParser(100)
    assert parser.feed(b"data: a\n\ndata: " + b"x" * 200) == [b"a"]
    assert parser.too_long
    assert parser.feed(b"\n\ndata: b\n\n") == []


def test_many_short_lines_of_one_event_count_together() -> None:
    parser = SseParser(100)
    parser.feed(b"data: 0123456789\n" * 20)
    assert parser.too_long


def test_an_event_at_the_limit_passes() -> None:
    assert events(b"data: " + b"x" * 100 + b"\n\n", limit=100) == [b"x" * 100]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from([b"data: a", b"data:", b": c", b"event: x", b"id: 1", b"", b"", b'data: {"b":1}']), max_size=12
    ),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.lists(st.integers(0, 120), max_size=8),
)
def test_where_the_network_cuts_does_not_matter(lines: list[bytes], end: bytes, cuts: list[int]) -> None:
    stream = end.join(lines)
    places = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    chunks = [stream[a:b] for a, b in itertools.pairwise(places)]
    assert events(*chunks) == events(stream)
