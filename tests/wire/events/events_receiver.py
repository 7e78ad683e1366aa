"""A webhook as an operator would run it: takes batches of CloudEvents, or refuses them as the test says."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web
from gateway_house import BOUND, serving

Event = dict[str, Any]


class Receiver:
    """`batches`: what was taken. `answers`: to the next POSTs, then 202. `open` closed: none."""

    def __init__(self) -> None:
        self.batches: list[list[Event]] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[int] = []
        self.asked = 0
        self.open = asyncio.Event()
        self.open.set()
        self.url = ""
        self._changed = asyncio.Condition()

    @property
    def events(self) -> list[Event]:
        """Everything that was taken, in order."""
        return [event for batch in self.batches for event in batch]

    def of(self, kind: str) -> list[Event]:
        """The events of one type."""
        return [event for event in self.events if event["type"] == kind]

    async def handle(self, request: web.BaseRequest) -> web.Response:
        body = json.loads(await request.read())
        self.asked += 1
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        async with self._changed:
            self._changed.notify_all()
        await self.open.wait()
        status = self.answers.pop(0) if self.answers else 202
        if status == 202:
            self.batches.append(body)
        async with self._changed:
            self._changed.notify_all()
        return web.Response(status=status)

    async def until(self, what: Any) -> None:
        """Wait until `what()` holds."""
        async with asyncio.timeout(BOUND), self._changed:
            await self._changed.wait_for(what)


@contextlib.asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that listens."""
    made = Receiver()
    async with serving(made.handle) as origin:
        made.url = f"{origin}/hook?tenant=ops"
        yield made
