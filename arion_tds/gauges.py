"""What the gauges show at the moment of a scrape, read off the running parts.

In: the gateway. Out: values in its `Metrics`. Called by standing.
"""

from __future__ import annotations

import asyncio
import collections
from typing import TYPE_CHECKING

from arion_tds.backends.mcp.connection import STATES

if TYPE_CHECKING:
    from arion_tds.standing import Standing


def measure(gateway: Standing, now: float) -> None:
    """Bring the gauges up to date. `now`: monotonic seconds."""
    metrics = gateway.metrics
    metrics.ready.set(bool(gateway.ready()["ready"]))
    metrics.tasks.set(len(asyncio.all_tasks()))
    metrics.problems.set(len(gateway.problems))
    metrics.config_generation.set(gateway.reloader.generation)
    metrics.config_refused.set(bool(gateway.reloader.last_error))
    for catalog in gateway.catalogs:
        metrics.tools.labels(catalog.scope).set(len(catalog.published.view.tools))
        metrics.revision.labels(catalog.scope).set(catalog.published.view.revision)
        metrics.catalog_tokens.labels(catalog.scope).set(catalog.tokens.total)
    if gateway.telling is not None:
        gateway.telling.measure()
    for door in gateway.doors.values():
        door.measure()
    for embedder in gateway.embedders.values():
        embedder.measure()
    servers = collections.Counter(one.state for one in gateway.upstreams.status())
    for how in STATES:
        metrics.mcp_servers.labels(how).set(servers[how])
    metrics.mcp_refused.set(gateway.freshness.refusals)
    if gateway.coldstart is not None:
        age = gateway.coldstart.age
        metrics.cache_age.set(-1 if age is None else age)
        metrics.cache_left_out.set(gateway.coldstart.left_out)
    if gateway.ads is not None:
        _control_plane(gateway, now)


def _control_plane(gateway: Standing, now: float) -> None:
    if gateway.ads is None:
        return
    metrics, status = gateway.metrics, gateway.ads.status()
    metrics.xds_connected.set(status.connected)
    metrics.xds_attempts.set(status.attempts)
    metrics.xds_age.set(-1 if status.last_response_at is None else now - status.last_response_at)
    for kind, state in status.types.items():
        metrics.xds_responses.labels(kind.short, "ack").set(state.acks)
        metrics.xds_responses.labels(kind.short, "nack").set(state.nacks)
