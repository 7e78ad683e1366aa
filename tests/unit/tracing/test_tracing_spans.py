"""Which traces have spans, and what a span says of itself and of its parent."""

from __future__ import annotations

import itertools
import random

import pytest

from arion_tds.tracing.spans import Kind, Span, Tracer

TRACE = "0af7651916cd43dd8448eb211c80319c"
SAMPLED = f"00-{TRACE}-b7ad6b7169203331-01"


class Made:
    """A tracer that keeps what has ended."""

    def __init__(self, ratio: float = 1.0, seed: int = 7) -> None:
        self.ended: list[Span] = []
        ticks = itertools.count(100)
        self.tracer = Tracer(
            self.ended.append, ratio=ratio, clock=lambda: next(ticks), random_bits=random.Random(seed).getrandbits
        )

    def start(self, parent: str | None = None, state: str | None = None) -> Span:
        made = self.tracer.start("n", Kind.SERVER, parent, state)
        assert made is not None
        return made


def test_a_span_under_a_sampled_parent_is_of_its_trace() -> None:
    made = Made(ratio=0)
    span = made.start(SAMPLED, "a=1")
    assert (span.trace_id, span.parent, span.state) == (TRACE, "b7ad6b7169203331", "a=1")
    assert span.traceparent == f"00-{TRACE}-{span.span_id}-01"
    assert (span.started, made.ended) == (100, [])
    span.finish()
    assert made.ended == [span]
    assert (span.ended, span.error) == (101, "")


@pytest.mark.parametrize("flags", ["00", "02", "fe"])
def test_a_parent_that_is_not_sampled_has_no_spans_under_it(flags: str) -> None:
    assert Made().tracer.start("n", Kind.SERVER, SAMPLED[:-2] + flags) is None


@pytest.mark.parametrize("flags", ["01", "03", "ff"])
def test_sampled_is_one_bit_of_the_flags(flags: str) -> None:
    assert Made().start(SAMPLED[:-2] + flags).trace_id == TRACE


def test_a_child_is_of_the_same_trace_and_named_by_its_own_id() -> None:
    made = Made()
    span = made.start(state=None)
    child = span.child("GET", {"a": 1})
    child.finish("timeout")
    assert (child.trace_id, child.parent, child.kind) == (span.trace_id, span.span_id, Kind.CLIENT)
    assert child.span_id != span.span_id
    assert (child.attributes, child.error) == ({"a": 1}, "timeout")


@pytest.mark.parametrize(("ratio", "least", "most"), [(0, 0, 0), (0.25, 2300, 2700), (1, 10_000, 10_000)])
def test_the_ratio_is_that_of_traces_that_begin_here(ratio: float, least: int, most: int) -> None:
    made = Made(ratio)
    assert least <= sum(made.tracer.start("n", Kind.SERVER) is not None for _ in range(10_000)) <= most


def test_it_is_decided_by_the_random_part_of_the_trace_id() -> None:
    half = 1 << 55
    for number, sampled in ((half - 1, False), (half, True), ((1 << 127) + half - 1, False), ((1 << 127) + half, True)):
        tracer = Tracer(lambda _: None, ratio=0.5, clock=lambda: 1, random_bits=lambda _, found=number: found)
        assert (tracer.start("n", Kind.SERVER) is not None) is sampled


def test_no_id_is_all_zeros() -> None:
    span = Tracer(lambda _: None, ratio=1, clock=lambda: 1, random_bits=lambda _: 0).start("n", Kind.SERVER)
    assert span is not None
    assert (int(span.trace_id, 16), int(span.span_id, 16)) == (1, 1)
