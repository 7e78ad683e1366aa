"""Named clusters: where requests go, how many at once, and within how much time.

In: cluster settings; HttpRequest, HttpPolicy, Limits and CallContext of a call. Out: HttpResponse, or the CallFailure
that says why there is none. Called by rest and by the pipelines (OpenAPI operations, embeddings); built by the app.

Which endpoint is asked and what is tried again stands in `attempts`, one try in `exchange`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping

from yarl import URL

from arion_tds.backends import health, tls
from arion_tds.backends.attempts import ClusterStatus, Outgoing, Upstream
from arion_tds.backends.exchange import Pool
from arion_tds.backends.headers import outgoing
from arion_tds.backends.retry import IDEMPOTENT
from arion_tds.backends.spans import Tries
from arion_tds.model.cluster import Cluster, ClusterTls
from arion_tds.model.context import CallContext, Limits
from arion_tds.model.http import HttpRequest, HttpResponse
from arion_tds.model.policy import HttpPolicy
from arion_tds.model.result import CallFailure, ErrorCode


class Clusters:
    """Every cluster of the configuration, by name. Used from one event loop; closed by its owner, the app."""

    def __init__(
        self,
        settings: Mapping[str, Cluster],
        *,
        rng: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Raises ValueError, naming cluster and file or endpoint, when one cannot be set up. Connects to nothing.

        `rng` draws from [0, 1) for the jitter between retries, `sleep` waits that long.
        """
        self._rng = rng
        self._sleep = sleep
        self.told: Callable[[str, str, str, str], None] | None = None  # cluster, origin, `up` or `down`, why
        self._upstreams = {name: self._upstream(cluster) for name, cluster in settings.items()}
        self._retired: set[Upstream] = set()
        self._checks: dict[Upstream, asyncio.Task[None]] = {}

    async def send(
        self, cluster: str, request: HttpRequest, policy: HttpPolicy, limits: Limits, context: CallContext
    ) -> HttpResponse | CallFailure:
        """Send a request and read its answer, whatever its status.

        The time limit is the policy's, else the cluster's, else the gateway's; it spans tries and waiting. Failures:
        `upstream_timeout`, `overflow` (too many calls of this cluster), `response_too_large`, `upstream_error` (no
        answer), `invalid_arguments` (a header value or target that cannot be sent).
        """
        upstream = self._upstreams.get(cluster)
        if upstream is None:
            return CallFailure(
                ErrorCode.UPSTREAM_ERROR,
                f'there is no cluster "{cluster}": define it under `clusters` in the gateway\'s configuration',
            )
        headers = outgoing(request, policy, context)
        if isinstance(headers, CallFailure):
            return headers
        if upstream.active >= upstream.cluster.max_requests:
            upstream.overflows += 1
            return CallFailure(
                ErrorCode.OVERFLOW,
                f'cluster "{cluster}" has {upstream.active} requests under way, its limit (max_requests): try later',
                retryable=True,
            )
        own = policy.timeout if policy.timeout is not None else upstream.cluster.timeout
        timeout = own if own is not None else limits.timeout
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        upstream.active += 1
        upstream.calls += 1
        try:
            async with asyncio.timeout_at(deadline):
                tries = None if context.span is None else Tries(context.span)
                most = limits.max_response_bytes
                return await upstream.send(Outgoing(request, headers, policy.retry, most, deadline, loop, tries))
        except TimeoutError:
            return CallFailure(
                ErrorCode.UPSTREAM_TIMEOUT,
                f'cluster "{cluster}": no whole answer within {timeout:g} s',
                retryable=request.method in IDEMPOTENT,
            )
        finally:
            upstream.active -= 1
            if upstream.retired and not upstream.active:
                await self._forget(upstream)

    async def replace(self, settings: Mapping[str, Cluster]) -> None:
        """Take new settings. Unchanged clusters keep their connections; calls under way end on the old ones.

        Raises ValueError as the constructor does, and then nothing has changed.
        """
        old = self._upstreams
        kept = {
            name: found for name, one in settings.items() if (found := old.get(name)) and _is_same(found.cluster, one)
        }
        self._upstreams = {name: kept.get(name) or self._upstream(one) for name, one in settings.items()}
        for name, upstream in kept.items():
            upstream.move(settings[name])
        self._check_health()
        gone = [upstream for name, upstream in old.items() if name not in kept]
        for upstream in gone:
            upstream.retired = True
            self._retired.add(upstream)
        for upstream in gone:
            if not upstream.active:
                await self._forget(upstream)

    async def close(self) -> None:
        """Close every connection. Calls under way fail; later ones find no cluster."""
        closing = [*self._upstreams.values(), *self._retired]
        self._upstreams = {}
        self._retired.clear()
        for task in self._checks.values():
            task.cancel()
        await asyncio.gather(*self._checks.values(), return_exceptions=True)
        self._checks.clear()
        await asyncio.gather(*[upstream.pool.close() for upstream in closing])

    def _check_health(self) -> None:
        """One task for each cluster that is in use and has a health check."""
        wanted = {one for one in self._upstreams.values() if one.cluster.health_check is not None}
        for gone in self._checks.keys() - wanted:
            self._checks.pop(gone).cancel()
        for one in wanted - self._checks.keys():
            if one.cluster.health_check is not None:
                checking = health.run(one.cluster.name, one.cluster.health_check, one.balance, one.pool, self._sleep)
                self._checks[one] = asyncio.get_running_loop().create_task(checking)

    def secured(self) -> list[tuple[Cluster, ssl.SSLContext]]:
        """The clusters that are spoken to over TLS, with their contexts: for whoever watches the files."""
        pools = [(upstream.cluster, upstream.pool.context) for upstream in self._upstreams.values()]
        return [(cluster, context) for cluster, context in pools if context is not None]

    def status(self) -> tuple[ClusterStatus, ...]:
        """Every cluster in the order of the configuration."""
        now = asyncio.get_running_loop().time()
        return tuple(upstream.status(now) for upstream in self._upstreams.values())

    async def _forget(self, upstream: Upstream) -> None:
        self._retired.discard(upstream)
        await upstream.pool.close()

    def _upstream(self, cluster: Cluster) -> Upstream:
        made = Upstream(cluster, Pool(cluster, _context(cluster)), self._rng, self._sleep)
        made.told = self._tell
        return made

    def _tell(self, cluster: str, origin: str, state: str, why: str) -> None:
        if self.told is not None:
            self.told(cluster, origin, state, why)


def _is_same(old: Cluster, new: Cluster) -> bool:
    """Whether nothing but endpoints of the same kind differs."""
    return old == dataclasses.replace(new, endpoints=old.endpoints) and _schemes(old) == _schemes(new)


def _schemes(cluster: Cluster) -> set[str]:
    if cluster.pushed:
        return set()  # those follow from its TLS settings
    return {endpoint.partition(":")[0] for endpoint in cluster.endpoints}


def _context(cluster: Cluster) -> ssl.SSLContext | None:
    """The TLS context that the cluster's endpoints need, after a look at the endpoints."""
    if not cluster.endpoints and not cluster.pushed:
        raise ValueError(f'cluster "{cluster.name}" has no endpoints: give at least one, like http://10.0.0.1:8080')
    secure = cluster.pushed and cluster.tls is not None
    for number, endpoint in enumerate(cluster.endpoints):
        if not _is_origin(endpoint):
            raise ValueError(
                f'cluster "{cluster.name}": endpoints[{number}] is not an origin like http://10.0.0.1:8080 '
                "(scheme, host and port, without user, path or query)"
            )
        secure = secure or endpoint.startswith("https:")
    if not secure:
        return None
    try:
        return tls.context(cluster.tls if cluster.tls is not None else ClusterTls())
    except ValueError as error:
        raise ValueError(f'cluster "{cluster.name}": {error}') from error


def _is_origin(endpoint: str) -> bool:
    try:
        url = URL(endpoint)
        return endpoint.startswith(("http://", "https://")) and bool(url.host) and url == url.origin() / ""
    except ValueError:
        return False
