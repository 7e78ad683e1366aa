"""One cluster at work: which endpoint has its turn, what is tried again, and what a caller hears when nothing helped.

In: an Outgoing (a request with its final headers, its retry policy and its deadline). Out: HttpResponse or
CallFailure. Called by clusters, which sets the time limit around it.

Endpoints take turns. One that refuses connections is passed over for a few seconds, and a call goes on to the next
endpoint at once: nothing was sent, so nothing can be done twice. Everything else is repeated only as the RetryPolicy
says, with one exception every HTTP client makes: an idempotent request whose kept connection turns out to be closed
is sent once more (RFC 9110, 9.2.2).
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from arion_tds.backends import spans
from arion_tds.backends.balancing import Balance, Endpoint
from arion_tds.backends.exchange import Broken, Pool
from arion_tds.backends.retry import IDEMPOTENT, Fault, back_off, on_fault, on_status
from arion_tds.model.cluster import Cluster
from arion_tds.model.http import HttpRequest, HttpResponse
from arion_tds.model.policy import RetryPolicy
from arion_tds.model.result import CallFailure, ErrorCode

_log = logging.getLogger("arion_tds.clusters")

PASS_OVER: Final = 5.0
"""Seconds for which an endpoint that refused a connection is asked last."""


@dataclasses.dataclass(slots=True)  # made with every call: see docs/architecture.md, Rules
class Outgoing:
    """A request ready to be sent. `deadline` is a time of `loop`'s clock; `max_bytes` limits the answer.

    `tries`: where its tries are told as spans.
    """

    request: HttpRequest
    headers: list[tuple[str, str]]
    retry: RetryPolicy | None
    max_bytes: int
    deadline: float
    loop: asyncio.AbstractEventLoop
    tries: spans.Tries | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class EndpointStatus:
    """`down`: passed over at the moment. `last_error` is the latest one, however long ago."""

    origin: str
    down: bool
    last_error: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterStatus:
    """Counts since the cluster was configured; `active` are calls under way."""

    name: str
    endpoints: tuple[EndpointStatus, ...]
    active: int
    calls: int
    retries: int
    overflows: int


class Upstream:
    """A cluster's endpoints, connections and counts. Its fields belong to the calls of one event loop."""

    def __init__(
        self, cluster: Cluster, pool: Pool, rng: Callable[[], float], sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        """`rng` draws from [0, 1) for the jitter of waits, `sleep` does the waiting."""
        self.cluster = cluster
        self.pool = pool
        self.active = 0
        self.calls = 0
        self.overflows = 0
        self.retired = False
        self.told: Callable[[str, str, str, str], None] | None = None
        self._retries = 0
        self._rng = rng
        self._sleep = sleep
        self.balance = Balance(cluster, rng)

    async def send(self, outgoing: Outgoing) -> HttpResponse | CallFailure:
        """Send, and send again as the policy says, until the answer is one to keep."""
        loop, retry = outgoing.loop, outgoing.retry
        idempotent = outgoing.request.method in IDEMPOTENT
        resent = False
        retries = 0
        while True:
            outcome = await self._try(outgoing)
            if isinstance(outcome, CallFailure):
                return outcome
            if isinstance(outcome, Broken) and outcome.stale and idempotent and not resent:
                resent = True
                continue
            if retry is None or retries >= retry.num_retries or not _unwelcome(retry, outcome):
                break
            wait = back_off(retry, retries, self._rng())
            if loop.time() + wait >= outgoing.deadline:
                break
            retries += 1
            self._retries += 1
            await self._sleep(wait)
        return self._failure(outcome, idempotent=idempotent) if isinstance(outcome, Broken) else outcome

    def status(self, now: float) -> ClusterStatus:
        """A snapshot for the admin page."""
        return ClusterStatus(
            name=self.cluster.name,
            endpoints=tuple(
                EndpointStatus(one.origin, one.rank(now) > 0, one.last_error) for one in self.balance.endpoints
            ),
            active=self.active,
            calls=self.calls,
            retries=self._retries,
            overflows=self.overflows,
        )

    async def _try(self, outgoing: Outgoing) -> HttpResponse | Broken | CallFailure:
        """One try, at the first endpoint that takes the connection."""
        loop = outgoing.loop
        outcome: HttpResponse | Broken | CallFailure = Broken(Fault.CONNECT, "the cluster has no endpoints")
        for endpoint in self.balance.order(loop.time()):
            outcome = await self._ask(endpoint, outgoing)
            self._judge(endpoint, outcome, loop.time())
            if not isinstance(outcome, Broken):
                if endpoint.down_until:
                    endpoint.down_until = 0.0
                    _log.info('cluster "%s": %s answers again', self.cluster.name, endpoint.origin)
                    self._tell(endpoint, "up")
                break
            endpoint.last_error = outcome.why
            if not outcome.fault.unsent:
                break
            if not endpoint.down_until:  # said once, not with every call
                _log.warning('cluster "%s": %s: %s', self.cluster.name, endpoint.origin, outcome.why)
                self._tell(endpoint, "down", outcome.why)
            endpoint.down_until = loop.time() + PASS_OVER
        return outcome

    def _tell(self, endpoint: Endpoint, state: str, why: str = "") -> None:
        if self.told is not None:
            self.told(self.cluster.name, endpoint.origin, state, why)

    def move(self, cluster: Cluster) -> None:
        """The same cluster at other endpoints; connections, counts and what is known of those that stay are kept."""
        self.cluster = cluster
        self.balance.replace(cluster.endpoints)

    def _judge(self, endpoint: Endpoint, outcome: HttpResponse | Broken | CallFailure, now: float) -> None:
        if isinstance(outcome, CallFailure):
            return
        good = isinstance(outcome, HttpResponse) and outcome.status < 500
        seconds = self.balance.answered(endpoint, good=good, now=now)
        if seconds is not None:
            name = self.cluster.name
            _log.warning(
                'cluster "%s": %s is passed over for %g s: too many 5xx in a row', name, endpoint.origin, seconds
            )
            self._tell(endpoint, "down", "too many 5xx in a row")

    async def _ask(self, endpoint: Endpoint, outgoing: Outgoing) -> HttpResponse | Broken | CallFailure:
        endpoint.active += 1
        try:
            if outgoing.tries is not None:
                return await self._told_of(endpoint, outgoing, outgoing.tries)
            return await self._within(endpoint, outgoing, outgoing.headers)
        finally:
            endpoint.active -= 1

    async def _told_of(
        self, endpoint: Endpoint, outgoing: Outgoing, tries: spans.Tries
    ) -> HttpResponse | Broken | CallFailure:
        span = tries.begin(self.cluster.name, endpoint.origin, outgoing.request.method)
        error = spans.CANCELLED
        try:
            outcome = await self._within(endpoint, outgoing, tries.headers(outgoing.headers, span))
            error = spans.answered(span, outcome)
        except asyncio.CancelledError:
            if outgoing.loop.time() >= outgoing.deadline:
                error = spans.TIMEOUT
            raise
        else:
            return outcome
        finally:
            span.finish(error)

    async def _within(
        self, endpoint: Endpoint, outgoing: Outgoing, headers: list[tuple[str, str]]
    ) -> HttpResponse | Broken | CallFailure:
        attempt = self.pool.attempt(endpoint.origin, outgoing.request, headers, outgoing.max_bytes)
        per_try = outgoing.retry.per_try_timeout if outgoing.retry is not None else None
        if per_try is None:
            return await attempt
        try:
            async with asyncio.timeout(per_try):
                return await attempt
        except TimeoutError:
            return Broken(Fault.TRY_TIMEOUT, f"no whole answer within {per_try:g} s (per_try_timeout)")

    def _failure(self, broken: Broken, *, idempotent: bool) -> CallFailure:
        late = broken.fault in {Fault.CONNECT_TIMEOUT, Fault.TRY_TIMEOUT}
        return CallFailure(
            ErrorCode.UPSTREAM_TIMEOUT if late else ErrorCode.UPSTREAM_ERROR,
            f'cluster "{self.cluster.name}": {broken.why}',
            retryable=broken.fault is not Fault.TLS and (idempotent or broken.fault.unsent),
        )


def _unwelcome(retry: RetryPolicy, outcome: HttpResponse | Broken) -> bool:
    return on_fault(retry, outcome.fault) if isinstance(outcome, Broken) else on_status(retry, outcome.status)
