"""How long to wait before the next stream.

In: how long the last stream lived, and whether the control plane said anything on it. Out: seconds. Called by
xds.stream. Full jitter, so that gateways that lose a control plane together do not come back together; only a response
resets it, since a server that accepts and closes is as useless as one that refuses (gRFC A57); and at least `base`
seconds lie between the starts of two streams, even after a good one (grpc/grpc-go#5280).
"""

from __future__ import annotations

from typing import Final, Protocol


class Uniform(Protocol):
    """What is needed of `random.Random`."""

    def uniform(self, a: float, b: float) -> float:
        """A number between `a` and `b`."""
        ...


_GROWTH: Final = 2.0


class Backoff:
    """Owned by the client's run task."""

    __slots__ = ("_base", "_failures", "_limit", "_rng")

    def __init__(self, base: float, limit: float, rng: Uniform) -> None:
        """`base`, `limit`: seconds; `limit` bounds what is added to the least distance between two streams."""
        self._base = base
        self._limit = limit
        self._rng = rng
        self._failures = 0

    def succeeded(self) -> None:
        """A response arrived on the stream."""
        self._failures = 0

    def least(self, lived: float) -> float:
        """Seconds to wait when the stream was ended on purpose, after `lived` seconds."""
        return max(0.0, self._base - lived)

    def delay(self, lived: float) -> float:
        """Seconds to wait after a stream that ended by itself or never began."""
        # The exponent is bounded: 2.0 ** 1100 would overflow after a night without a control plane.
        reach = min(self._limit, self._base * _GROWTH ** min(self._failures, 32))
        self._failures += 1
        return self.least(lived) + self._rng.uniform(0.0, reach)
