"""What the tests of REST upstreams share: a recorded server, calls over one cluster, and the fixtures' types."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from arion_tds.backends.clusters import Clusters
from arion_tds.model.cluster import Cluster
from arion_tds.model.context import CallContext, Limits
from arion_tds.model.http import HttpRequest, HttpResponse
from arion_tds.model.policy import DEFAULT_POLICY, HttpPolicy
from arion_tds.model.result import CallFailure

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

CONTEXT = CallContext(request_id="req-1", traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
LIMITS = Limits(timeout=5.0, max_response_bytes=1 << 20)


class Upstream:
    """A server on loopback that keeps what it was asked."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.seen: list[web.BaseRequest] = []
        self.bodies: list[bytes] = []
        self.connections: set[tuple[str, int]] = set()


class Calls:
    """Sends over one cluster called `c`, and remembers the waits between retries instead of waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.clusters = Clusters({})

    async def use(self, *endpoints: str, **settings: object) -> Calls:
        await self.clusters.close()
        cluster = Cluster(name="c", endpoints=endpoints, **settings)  # type: ignore[arg-type]
        self.clusters = Clusters({"c": cluster}, rng=lambda: 0.5, sleep=self._wait)
        return self

    async def send(
        self,
        method: str = "GET",
        target: str = "/",
        *,
        headers: tuple[tuple[str, str], ...] = (),
        body: bytes | None = None,
        policy: HttpPolicy = DEFAULT_POLICY,
        limits: Limits = LIMITS,
    ) -> HttpResponse | CallFailure:
        request = HttpRequest(method, target, headers, body)
        async with asyncio.timeout(10):
            return await self.clusters.send("c", request, policy, limits, CONTEXT)

    async def answered(self, *args: object, **kwargs: object) -> HttpResponse:
        outcome = await self.send(*args, **kwargs)  # type: ignore[arg-type]
        assert isinstance(outcome, HttpResponse), outcome
        return outcome

    async def failed(self, *args: object, **kwargs: object) -> CallFailure:
        outcome = await self.send(*args, **kwargs)  # type: ignore[arg-type]
        assert isinstance(outcome, CallFailure), outcome
        return outcome

    async def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)


Serve = Callable[..., Awaitable[Upstream]]
Listen = Callable[..., Awaitable[str]]
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def read_head(reader: asyncio.StreamReader) -> bytes:
    """A request's head, up to and with the empty line."""
    return await reader.readuntil(b"\r\n\r\n")
