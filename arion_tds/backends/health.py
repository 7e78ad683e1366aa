"""Active health checks: every endpoint of a cluster is asked from time to time whether it is well.

In: a cluster's check, its endpoints, its connections. Out: `Endpoint.healthy`. Run by clusters, one task per cluster.
The first answer counts at once; after that it takes as many in a row as the thresholds say.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from arion_tds.backends.balancing import Balance, Endpoint
from arion_tds.backends.exchange import Pool
from arion_tds.model.cluster import HealthCheck
from arion_tds.model.http import HttpRequest, HttpResponse

_MAX_BYTES: Final = 64 * 1024
_log = logging.getLogger("arion_tds.clusters")


async def run(
    name: str, check: HealthCheck, balance: Balance, pool: Pool, sleep: Callable[[float], Awaitable[None]]
) -> None:
    """Check until cancelled."""
    while True:
        async with asyncio.TaskGroup() as group:
            for endpoint in balance.endpoints:
                group.create_task(_one(name, check, endpoint, pool))
        await sleep(check.interval)


async def _one(name: str, check: HealthCheck, endpoint: Endpoint, pool: Pool) -> None:
    request = HttpRequest("GET", check.path, (), None)
    headers = [] if check.host is None else [("host", check.host)]
    why = f"no answer within {check.timeout:g} s"
    try:
        async with asyncio.timeout(check.timeout):
            answer = await pool.attempt(endpoint.origin, request, headers, _MAX_BYTES)
    except TimeoutError:
        well = False
    else:
        well = isinstance(answer, HttpResponse) and any(start <= answer.status < end for start, end in check.statuses)
        why = f"it answered {answer.status}" if isinstance(answer, HttpResponse) else str(answer)
    _judge(name, check, endpoint, why, well=well)


def _judge(name: str, check: HealthCheck, endpoint: Endpoint, why: str, *, well: bool) -> None:
    if endpoint.healthy is well:
        endpoint.streak = 0
        return
    endpoint.streak += 1
    needed = check.healthy_threshold if well else check.unhealthy_threshold
    if endpoint.healthy is not None and endpoint.streak < needed:
        return
    first, endpoint.healthy, endpoint.streak = endpoint.healthy is None, well, 0
    if not well:
        endpoint.last_error = f"health check: {why}"
        _log.warning('cluster "%s": %s fails its health check: %s', name, endpoint.origin, why)
    elif not first:
        _log.info('cluster "%s": %s passes its health check again', name, endpoint.origin)
