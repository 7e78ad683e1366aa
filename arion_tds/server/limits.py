"""How much one caller may ask for: token buckets in a bounded table, and the addresses that callers come from. No I/O.

In: settings, a clock, keys (a subject, or an address). Out: how long to wait, 0 for not at all. Owned by front.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections import OrderedDict
from collections.abc import Callable


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """`rate`: requests per second of one caller, None: any. `burst`: so many at once. `max_callers`: buckets kept.

    `max_concurrent`: requests under way, notification streams not counted. `max_streams_per_caller`: streams of one
    caller. `forwarded_hops`: proxies of ours in front, whose X-Forwarded-For is believed.
    """

    rate: float | None = None
    burst: int = 20
    max_callers: int = 10_000
    max_concurrent: int = 1024
    max_streams_per_caller: int = 1000
    max_json_depth: int = 128
    forwarded_hops: int = 0


class Buckets:
    """Token buckets by key. The key that was least recently used goes first: it gets a full bucket when it returns."""

    __slots__ = ("_burst", "_clock", "_held", "_max", "_rate")

    def __init__(self, rate: float, burst: int, max_keys: int, clock: Callable[[], float]) -> None:
        """`rate` in tokens per second; `clock` in seconds, never going back."""
        self._rate = rate
        self._burst = float(burst)
        self._max = max_keys
        self._clock = clock
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def wait(self, key: str) -> float:
        """Seconds until the key has a token; 0.0: it has one now, and keeps it."""
        tokens = self._tokens(key)
        return 0.0 if tokens >= 1.0 else (1.0 - tokens) / self._rate

    def take(self, key: str) -> float:
        """Like `wait`, but a token that is there is taken."""
        tokens = self._tokens(key)
        if tokens < 1.0:
            return (1.0 - tokens) / self._rate
        self._held[key] = (tokens - 1.0, self._clock())
        self._held.move_to_end(key)
        if len(self._held) > self._max:
            self._held.popitem(last=False)
        return 0.0

    def _tokens(self, key: str) -> float:
        held = self._held.get(key)
        if held is None:
            return self._burst
        tokens, at = held
        return min(self._burst, tokens + (self._clock() - at) * self._rate)


def address(peer: str | None, forwarded: str | None, hops: int) -> str:
    """Where a request comes from, as a key: the peer, or what the outermost of `hops` proxies of ours saw.

    An IPv6 address counts as its /64: one host has all of it.
    """
    found = peer or "unknown"
    if hops and forwarded:
        seen = forwarded.split(",")
        found = seen[max(0, len(seen) - hops)].strip()[:64] or found
    if ":" not in found:
        return found
    try:
        return str(ipaddress.ip_network((found.strip("[]").partition("%")[0], 64), strict=False))
    except ValueError:
        return found
