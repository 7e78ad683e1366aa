"""Which endpoint of a cluster is asked, in which order: turns, load, and what is known of each one's health.

In: origins, the cluster's policies, what became of requests and health checks, the time. Out: endpoints, the best
first. Used by attempts and health; its state belongs to the calls of one event loop.

An endpoint that refuses connections, answers badly (outlier detection) or fails its health checks is asked last, not
never: when all are, any of them is better than none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from arion_tds.model.cluster import Cluster, LbPolicy, Outlier


class Endpoint:
    """One origin. `down_until`, `ejected_until`: times of the loop's clock. `healthy` None: not checked yet."""

    __slots__ = (
        "active",
        "down_until",
        "ejected_until",
        "ejections",
        "failures",
        "healthy",
        "last_error",
        "origin",
        "streak",
    )

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.active = 0
        self.down_until = 0.0
        self.ejected_until = 0.0
        self.ejections = 0
        self.failures = 0
        self.healthy: bool | None = None
        self.streak = 0
        self.last_error: str | None = None

    def rank(self, now: float) -> int:
        """How little it is to be trusted at the moment; 0 is good."""
        return (self.down_until > now) + (self.ejected_until > now) + (self.healthy is False)


class Balance:
    """The endpoints of one cluster."""

    __slots__ = ("_outlier", "_policy", "_rng", "_turn", "endpoints")

    def __init__(self, cluster: Cluster, rng: Callable[[], float]) -> None:
        """`rng` draws from [0, 1)."""
        self.endpoints = [Endpoint(origin.rstrip("/")) for origin in cluster.endpoints]
        self._policy = cluster.lb_policy
        self._outlier = cluster.outlier
        self._rng = rng
        self._turn = 0

    def replace(self, origins: Iterable[str]) -> None:
        """These from now on; what is known of those that stay is kept."""
        known = {endpoint.origin: endpoint for endpoint in self.endpoints}
        wanted = dict.fromkeys(origin.rstrip("/") for origin in origins)
        self.endpoints = [known.get(origin) or Endpoint(origin) for origin in wanted]

    def order(self, now: float) -> list[Endpoint]:
        """Whom to ask first, and whom when that one takes no connection."""
        known = self.endpoints
        if len(known) <= 1:
            return known
        if self._policy is LbPolicy.ROUND_ROBIN:
            turn = self._turn % len(known)
            self._turn = turn + 1
        else:
            turn = int(self._rng() * len(known))
        chosen = known[turn:] + known[:turn]
        if self._policy is LbPolicy.LEAST_REQUEST:
            other = 1 + int(self._rng() * (len(chosen) - 1))
            if chosen[other].active < chosen[0].active:
                chosen[0], chosen[other] = chosen[other], chosen[0]
        return sorted(chosen, key=lambda endpoint: endpoint.rank(now))

    def answered(self, endpoint: Endpoint, *, good: bool, now: float) -> float | None:
        """A request was answered, with a 5xx or without one (not `good`). Seconds for which it is ejected, or None."""
        rules = self._outlier
        if rules is None:
            return None
        if good:
            endpoint.failures = 0
            return None
        endpoint.failures += 1
        if endpoint.failures < rules.consecutive_5xx or endpoint.ejected_until > now:
            return None
        endpoint.failures = 0
        if not self._may_eject(rules, now):
            return None
        endpoint.ejections += 1
        seconds = min(rules.base_ejection_time * endpoint.ejections, rules.max_ejection_time)
        endpoint.ejected_until = now + seconds
        return seconds

    def _may_eject(self, rules: Outlier, now: float) -> bool:
        """One may always be; more up to the share that the cluster allows."""
        ejected = sum(endpoint.ejected_until > now for endpoint in self.endpoints)
        return not ejected or (ejected + 1) * 100 <= rules.max_ejection_percent * len(self.endpoints)
