"""The other workers' private sockets: questions to all of them at once, notes to one. Called by siblings.

Nobody waits long for one that is stuck or gone: it gets a second, and what came to nothing is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import aiohttp

from arion_tds.workers.role import Role

TIMEOUT: Final = 1.0
"""Seconds that another worker has to answer."""

MAX_ANSWER: Final = 64 << 20
"""Bytes of an answer: the metrics of some thousand scopes."""


class Others:
    """All but the one of that role. `numbers`: which there are."""

    def __init__(self, role: Role, failed: Mapping[str, Callable[[], None]]) -> None:
        """`failed` counts, by what was asked, each question that came to nothing."""
        self.numbers = [number for number in range(role.count) if number != role.number]
        self._role = role
        self._failed = failed

    async def ask(self, what: str, body: bytes | None = None) -> dict[int, bytes | None]:
        """The answer of each; None: it gave none."""
        found = await asyncio.gather(*(self._ask(number, what, body) for number in self.numbers))
        return dict(zip(self.numbers, found, strict=True))

    async def _ask(self, number: int, what: str, body: bytes | None) -> bytes | None:
        method = "GET" if body is None else "POST"
        try:
            async with (
                self._client(number) as http,
                http.request(method, f"http://worker/{what}", data=body) as response,
            ):
                if response.status == 200 and (response.content_length or 0) <= MAX_ANSWER:
                    return await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError):
            pass
        self._failed[what]()
        return None

    async def tell(self, number: int, what: str, body: bytes) -> bool:
        """Whether one has taken it."""
        try:
            async with self._client(number) as http, http.post(f"http://worker/{what}", data=body) as response:
                return response.ok
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False

    def _client(self, number: int) -> aiohttp.ClientSession:
        connector = aiohttp.UnixConnector(self._role.socket(number), force_close=True)
        return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=TIMEOUT))
