"""What happens, as metrics: fronts, deliveries, rejections, and the state of upstreams at the moment of a scrape.

In: events of fronts (`FrontObserver`) and of the history (`rejections`), deliveries on their way to ingest
(`Deliveries`), and status values (`Measures`). Out: counts in `Metrics`. Built by app.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from prometheus_client import Counter, Histogram

from arion_tds import reasons
from arion_tds.backends.attempts import ClusterStatus
from arion_tds.history import History, Outcome, Verdict
from arion_tds.metrics import Metrics
from arion_tds.model.delivery import Delivery, DeliveryVerdict, Kind, ResourceId
from arion_tds.server.front import SEARCH_METHOD
from arion_tds.tracing.spans import Kind as SpanKind
from arion_tds.tracing.spans import Span, Tracer


class FrontObserver:
    """What one front did."""

    def __init__(self, metrics: Metrics, listener: str) -> None:
        """`listener` by name."""
        self._metrics = metrics
        self._listener = listener
        self._streams = metrics.streams.labels(listener)
        self._searched = metrics.searches.labels(listener, "http")
        # To find a metric's child by its labels costs more than to count: few methods, statuses and eras are kept.
        self._answers: dict[tuple[str, int, bool], tuple[Counter, Histogram]] = {}

    def answered(self, method: str, status: int, seconds: float, *, modern: bool) -> None:
        """Count one answer."""
        found = self._answers.get((method, status, modern))
        if found is None:
            found = self._answers[method, status, modern] = self._answer(method, status, modern=modern)
        count, time = found
        count.inc()
        time.observe(seconds)
        if method == SEARCH_METHOD:
            self._searched.inc()

    def _answer(self, method: str, status: int, *, modern: bool) -> tuple[Counter, Histogram]:
        era = "modern" if modern else "handshake"
        return (
            self._metrics.requests.labels(self._listener, method, str(status), era),
            self._metrics.request_seconds.labels(self._listener, method),
        )

    def streams(self, count: int) -> None:
        """So many are open now."""
        self._streams.set(count)

    def dropped(self, what: str) -> None:
        """Something was thrown away because a client reads too slowly."""
        self._metrics.dropped.labels(self._listener, what).inc()

    def refused(self, what: str) -> None:
        """Somebody was turned away."""
        self._metrics.refused.labels(self._listener, what).inc()


class Deliveries:
    """How long it takes from a response's arrival until its content is served and its verdict is known."""

    def __init__(
        self,
        deliver: Callable[[Delivery], Awaitable[DeliveryVerdict]],
        metrics: Metrics,
        clock: Callable[[], float],
        tracer: Tracer | None = None,
    ) -> None:
        """`clock` gives seconds and never goes back. With a `tracer` each delivery is a span, `tds.push`."""
        self._deliver = deliver
        self._metrics = metrics
        self._clock = clock
        self._tracer = tracer

    async def deliver(self, delivery: Delivery) -> DeliveryVerdict:
        """Hand the delivery on and take the time."""
        started = self._clock()
        span = None if self._tracer is None else self._tracer.start("tds.push", SpanKind.INTERNAL)
        verdict = await self._deliver(delivery)
        if span is not None:
            _pushed(span, delivery, verdict)
        self._metrics.push_seconds.labels(delivery.kind.short).observe(self._clock() - started)
        return verdict


def _pushed(span: Span, delivery: Delivery, verdict: DeliveryVerdict) -> None:
    """End a delivery's span: what it brought, and how much of it was refused."""
    span.attributes = {
        "tds.type": delivery.kind.short,
        "tds.updates": len(delivery.updates),
        "tds.removals": len(delivery.removals),
        "tds.rejected": len(verdict.rejected),
    }
    span.finish("rejected" if verdict.rejected else "")


def rejections(history: History, metrics: Metrics) -> None:
    """Count every rejection by the class of its reason, from now on."""

    def told(kind: Kind, name: ResourceId, verdict: Verdict) -> None:
        del name
        if verdict.outcome is Outcome.REJECTED:
            metrics.rejections.labels(kind.short, reasons.classify(verdict.reason)).inc()

    history.listen(told)


class Measures:
    """Gauges and counts that are read from the parts when somebody looks."""

    def __init__(self, metrics: Metrics) -> None:
        """What was counted before is remembered, so that counters only grow."""
        self._metrics = metrics
        self._counted: dict[tuple[str, str], int] = {}
        self._known: set[str] = set()
        self._sessions = 0

    def clusters(self, found: Iterable[ClusterStatus]) -> None:
        """Endpoints by state, requests under way, and what was counted since the last look."""
        metrics, seen = self._metrics, set()
        for one in found:
            seen.add(one.name)
            down = sum(endpoint.down for endpoint in one.endpoints)
            metrics.cluster_endpoints.labels(one.name, "down").set(down)
            metrics.cluster_endpoints.labels(one.name, "up").set(len(one.endpoints) - down)
            metrics.cluster_active.labels(one.name).set(one.active)
            for event, total in (("call", one.calls), ("retry", one.retries), ("overflow", one.overflows)):
                before = self._counted.get((one.name, event), 0)
                # A cluster that was configured anew counts from nothing again.
                metrics.cluster_events.labels(one.name, event).inc(total - before if total >= before else total)
                self._counted[one.name, event] = total
        for gone in self._known - seen:
            metrics.cluster_active.remove(gone)
            for state in ("down", "up"):
                metrics.cluster_endpoints.remove(gone, state)
            for event in ("call", "retry", "overflow"):
                metrics.cluster_events.remove(gone, event)
                del self._counted[gone, event]
        self._known = seen

    def sessions(self, issued: int) -> None:
        """Sessions issued since the process began."""
        self._metrics.sessions.inc(issued - self._sessions)
        self._sessions = issued
