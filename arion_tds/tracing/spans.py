"""What was done when, as spans of W3C traces: made, named to whoever is asked next, handed over when they end. Pure.

In: a parent's context where there is one, names and attributes; clock and randomness as arguments. Out: a finished
`Span` to the sink. Made by app; spans are started by front and observing, their children by backends, which know
nothing of this but `child`, `traceparent` and `finish`.

A trace that is not sampled has no spans at all: what a caller sent is then passed on as it came.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final

Value = str | int | bool
"""What an attribute can be."""

Attributes = dict[str, Value]

_SAMPLED: Final = 1
_RANDOMNESS: Final = 1 << 56
"""The low 56 bits of a trace id are random (W3C Trace Context level 2): they decide whether a trace is sampled."""


class Kind(enum.IntEnum):
    """Whose side of an exchange a span is; the numbers are OTLP's."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


class Span:
    """One thing that takes time. Times are nanoseconds since the epoch, ids lower-case hex.

    `traceparent` names this span as the parent of what is asked of others; `state` is the trace's tracestate. `link`
    is the traceparent of another span that has to do with it. `error` is a class of errors, "" where all is well.
    """

    __slots__ = (
        "_tracer",
        "attributes",
        "ended",
        "error",
        "kind",
        "link",
        "name",
        "parent",
        "span_id",
        "started",
        "state",
        "trace_id",
    )

    def __init__(self, tracer: Tracer, name: str, kind: Kind, trace_id: str, parent: str) -> None:
        """Started now; made by a `Tracer` and by `child`."""
        self._tracer = tracer
        self.name = name
        self.kind = kind
        self.trace_id = trace_id
        self.parent = parent
        self.span_id = tracer.span_id()
        self.state: str | None = None
        self.link: str | None = None
        self.attributes: Attributes = {}
        self.error = ""
        self.ended = 0
        self.started = tracer.clock()

    @property
    def traceparent(self) -> str:
        """What is sent to whoever is asked on behalf of this."""
        return f"00-{self.trace_id}-{self.span_id}-01"

    def child(self, name: str, attributes: Attributes, kind: Kind = Kind.CLIENT) -> Span:
        """A part of this, started now. `attributes` become its own."""
        made = Span(self._tracer, name, kind, self.trace_id, self.span_id)
        made.state = self.state
        made.attributes = attributes
        return made

    def finish(self, error: str = "") -> None:
        """Ended now, with a class of errors if it failed; handed over."""
        if error:
            self.error = error
        self.ended = self._tracer.clock()
        self._tracer.sink(self)


class Tracer:
    """Starts spans, where their trace is sampled."""

    def __init__(
        self,
        sink: Callable[[Span], None],
        *,
        ratio: float,
        clock: Callable[[], int],
        random_bits: Callable[[int], int],
    ) -> None:
        """`ratio` of traces that begin here are sampled; those that come from elsewhere as their parents are.

        `sink` takes what has ended. `clock`: nanoseconds since the epoch. `random_bits(n)`: an integer of n bits.
        """
        self.sink = sink
        self.clock = clock
        self._random = random_bits
        self._least = _RANDOMNESS - round(ratio * _RANDOMNESS)

    def span_id(self) -> str:
        """A new one. All zeros is none (W3C)."""
        return f"{self._random(64) or 1:016x}"

    def start(self, name: str, kind: Kind, parent: str | None = None, state: str | None = None) -> Span | None:
        """A span of its own, or None where its trace is not sampled.

        `parent` is a valid traceparent, `state` the tracestate that came with it.
        """
        if parent is not None:
            if not int(parent[53:55], 16) & _SAMPLED:
                return None
            span = Span(self, name, kind, parent[3:35], parent[36:52])
            span.state = state
            return span
        number = self._random(128)
        if number % _RANDOMNESS < self._least:
            return None
        return Span(self, name, kind, f"{number or 1:032x}", "")
