"""An OpenAI-compatible embedding endpoint whose vectors are a function of the text, and which can be told to misbehave.

Words of one meaning share a direction, so that search by meaning finds what no shared word would.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web

DIMENSIONS = 16
MEANINGS = {"weather": "sky", "forecast": "sky", "rain": "sky", "umbrella": "sky", "invoice": "money", "bill": "money"}

Handler = Callable[[dict[str, Any]], Any]


def vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """The sum of a fixed direction per word (of its meaning, where it has one)."""
    total = [0.0] * dimensions
    for word in text.lower().replace(":", " ").split():
        digest = hashlib.sha256(MEANINGS.get(word, word).encode()).digest()
        for at in range(dimensions):
            total[at] += digest[at] / 127.5 - 1
    size = math.sqrt(sum(number * number for number in total)) or 1.0
    return [number / size for number in total]


def good(asked: dict[str, Any]) -> Any:
    """The answer to a request as it should be."""
    length = asked.get("dimensions", DIMENSIONS)
    return {"data": [{"index": at, "embedding": vector(text, length)} for at, text in enumerate(asked["input"])]}


class Endpoint:
    """What was asked so far, and `answer`, which a test may replace: a value to send as JSON, bytes, or a status."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answer: Handler = good
        self.hang: asyncio.Event | None = None
        self.origin = ""
        self._moved = asyncio.Condition()

    @property
    def texts(self) -> list[str]:
        """Every text so far, in order."""
        return [text for one in self.asked for text in one["input"]]

    async def handle(self, request: web.BaseRequest) -> web.Response:
        asked = json.loads(await request.read())
        async with self._moved:
            self.asked.append(asked)
            self._moved.notify_all()
        if self.hang is not None:
            await self.hang.wait()
        answer = self.answer(asked)
        if isinstance(answer, int):
            return web.Response(status=answer, text="no")
        return web.Response(body=answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    async def until(self, met: Callable[[], bool]) -> None:
        """Wait for the request after which `met` holds."""
        async with asyncio.timeout(10), self._moved:
            await self._moved.wait_for(met)


@contextlib.asynccontextmanager
async def endpoint() -> AsyncIterator[Endpoint]:
    """A served endpoint."""
    here = Endpoint()
    runner = web.ServerRunner(web.Server(here.handle, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        here.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield here
    finally:
        if here.hang is not None:
            here.hang.set()
        await runner.cleanup()
