"""The gateway's side in these tests: a handler that applies what it gets, an ear for events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from xds_peer import LONGEST

from arion_tds.model.delivery import CATALOG, Delivered, Delivery, DeliveryVerdict, Kind
from arion_tds.model.problem import Problem
from arion_tds.xds.stream import AdsClient


class Handler:
    """Applies deliveries to `content`. `hold` delays those of a name; `refuse` rejects names; `broken` raises."""

    def __init__(self) -> None:
        self.content: dict[Kind, dict[str, str]] = {kind: {} for kind in CATALOG}
        self.deliveries: list[Delivery] = []
        self.hold: dict[str, asyncio.Event] = {}
        self.refuse: dict[str, str] = {}
        self.broken = False
        self.running = 0
        self.most_running = 0
        self._changed = asyncio.Event()

    async def __call__(self, delivery: Delivery) -> DeliveryVerdict:
        self.deliveries.append(delivery)
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        self._changed.set()
        try:
            if self.broken:
                raise RuntimeError("a bug")
            for update in delivery.updates:
                if str(update.id) in self.hold:
                    await self.hold[str(update.id)].wait()
            for removed in delivery.removals:
                self.content[delivery.kind].pop(str(removed), None)
            rejected = [problem for update in delivery.updates if (problem := self._apply(delivery.kind, update))]
            return DeliveryVerdict(tuple(rejected))
        finally:
            self.running -= 1
            self._changed.set()

    def _apply(self, kind: Kind, update: Delivered) -> Problem | None:
        name = str(update.id)
        if name in self.refuse:
            return Problem(name, self.refuse[name])
        self.content[kind][name] = update.payload.decode()
        return None

    async def until(self, condition: Callable[[], bool]) -> None:
        """Until a call has begun or ended and the condition holds."""
        async with asyncio.timeout(LONGEST):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


class Ear:
    """Hears everything, and can wait for it."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []
        self._changed = asyncio.Event()

    def _hear(self, *event: object) -> None:
        self.heard.append(event)
        self._changed.set()

    def connected(self) -> None:
        self._hear("connected")

    def disconnected(self, reason: str) -> None:
        self._hear("disconnected", reason)

    def response(self, kind: Kind, size: int) -> None:
        self._hear("response", kind, size > 0)

    def answered(self, kind: Kind, *, accepted: bool) -> None:
        self._hear("answered", kind, accepted)

    def dropped(self, type_url: str) -> None:
        self._hear("dropped", type_url)

    async def until(self, event: str, times: int = 1) -> None:
        """Until an event of that name was heard so often."""
        async with asyncio.timeout(LONGEST):
            while sum(heard[0] == event for heard in self.heard) < times:
                self._changed.clear()
                await self._changed.wait()


async def ready(client: AdsClient) -> None:
    async with asyncio.timeout(LONGEST):
        await client.wait_ready()


Start = Callable[..., AdsClient]
"""Starts a client: scopes, then `address`, `apply`, `observer` and fields of `AdsSettings` by name."""
