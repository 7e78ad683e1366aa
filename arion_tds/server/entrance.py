"""Everything that a request must pass before its path matters to anybody: load, Host, Origin, token, rate.

In: a request's headers. Out: the `Caller`, or the answer that turns it away. One per front; owned by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from aiohttp import web
from multidict import istr

from arion_tds.model.caller import Anonymous, Caller, Denial
from arion_tds.server import exchange, guard, limits
from arion_tds.server.reply import Reply
from arion_tds.server.settings import AccessPort, FrontSettings, Observer

_FORWARDED: Final = istr("X-Forwarded-For")
_HOSTS: Final = 64


class Entrance:
    """Turns away, or lets in and says who it is."""

    def __init__(
        self,
        settings: FrontSettings,
        access: AccessPort | None,
        observer: Observer,
        *,
        clock: Callable[[], float],
    ) -> None:
        """Without `access` every caller is anonymous."""
        self._limits = settings.limits
        self._access = access
        self._observer = observer
        self._anonymous = Anonymous()
        self._hosts: set[str | None] = set()  # good ones, as they are written in requests
        self._guard = guard.guard(
            loopback=settings.loopback, hosts=settings.allowed_hosts, origins=settings.allowed_origins
        )
        rate = self._limits.rate
        self._buckets = (
            None if rate is None else limits.Buckets(rate, self._limits.burst, self._limits.max_callers, clock)
        )

    def refusal(self, request: web.BaseRequest, under_way: int) -> Reply | None:
        """Why nobody may ask this here now, whoever they are. `under_way`: requests, this one included."""
        if under_way > self._limits.max_concurrent:
            self._observer.refused("overload")
            why = f"too many requests are under way ({self._limits.max_concurrent}, max_concurrent): try again"
            return exchange.refuse(503, why, headers={"Retry-After": "1"})
        if request.version[0] != 1:
            refused = exchange.refuse(505, "HTTP/1.1 is spoken here")
            refused.keep_alive = False
            return refused
        host = request.headers.get(exchange.HOST)  # a second one is refused by the parser
        if host not in self._hosts:
            wrong = self._guard.host(host)
            if wrong is not None:
                return exchange.refuse(421, wrong)
            if len(self._hosts) < _HOSTS:
                self._hosts.add(host)
        origin = request.headers.get(exchange.ORIGIN)
        if origin is not None:
            wrong = self._guard.origin(origin, host)
            if wrong is not None:
                return exchange.refuse(403, wrong)
        return None

    async def admit(self, request: web.BaseRequest) -> Caller | Reply:
        """Who asks, or why they are turned away."""
        caller = self._anonymous if self._access is None else await self._access.admit(request.headers)
        if isinstance(caller, Denial):
            if self._buckets is not None:
                wait = self._buckets.take("!" + self._address(request))  # their own, or neighbours could lock us out
                if wait:
                    return self._too_fast(wait)
            return exchange.refuse(caller.status, caller.message, headers=caller.headers)
        if self._buckets is not None:
            wait = self._buckets.take(self.key(request, caller))
            if wait:
                return self._too_fast(wait)
        return caller

    def key(self, request: web.BaseRequest, caller: Caller) -> str:
        """Under which name this caller's share is kept: the subject, or the address of nobody in particular."""
        return self._address(request) if caller.subject is None else caller.subject

    def _address(self, request: web.BaseRequest) -> str:
        hops = self._limits.forwarded_hops
        forwarded = ",".join(request.headers.getall(_FORWARDED, ())) if hops else None
        return "@" + limits.address(request.remote, forwarded, hops)

    def _too_fast(self, wait: float) -> Reply:
        self._observer.refused("rate")
        why = f"too many requests: {self._limits.rate:g} a second (limits.requests_per_second) are allowed"
        return exchange.refuse(429, why, headers={"Retry-After": str(math.ceil(wait))})
