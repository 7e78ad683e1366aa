"""The keys of an issuer: read once from the config, or fetched, kept, and fetched anew when they age or do not fit.

In: settings, a way to fetch, a clock. Out: the `Keys` of this moment, and how old they are. Called by auth.access;
`RemoteKeys.run` is a task of the app. Keys that cannot be renewed stay in use: an issuer that is down must not lock
everybody out.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import NoReturn, Protocol

import aiohttp

from arion_tds.auth import jwt
from arion_tds.auth.jwt import Keys

_log = logging.getLogger("arion_tds.auth")


class KeySource(Protocol):
    """Where a provider's keys come from."""

    @property
    def age(self) -> float | None:
        """Seconds since the keys were had from the issuer; None while there are none."""
        ...

    async def keys(self) -> Keys | None:
        """The keys in use; None when there are none yet (the caller waits at most the fetch's timeout)."""
        ...

    async def renewed(self, unfit: Keys) -> Keys | None:
        """Keys newer than `unfit`, if asking the issuer again brings some within the cool-down's rules."""
        ...


class LocalKeys:
    """Keys from the config: they have no age and do not change, unless `replace` says so."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    @property
    def age(self) -> float | None:
        """Always fresh."""
        return 0.0

    def replace(self, keys: Keys) -> None:
        """The file was rotated."""
        self._keys = keys

    async def keys(self) -> Keys | None:
        """The keys."""
        return self._keys

    async def renewed(self, unfit: Keys) -> Keys | None:
        """What `replace` brought since, if anything."""
        return self._keys if self._keys is not unfit else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSettings:
    """Times in seconds. `cooldown`: least time between two fetches that nobody but a token asked for."""

    uri: str
    timeout: float = 5.0
    cache_duration: float = 600.0
    cooldown: float = 30.0
    max_bytes: int = 1 << 20


Fetch = Callable[[], Awaitable[bytes | str]]
"""The document, or a sentence that says why it cannot be had. Bounds its own time and size."""


class RemoteKeys:
    """Keys of a JWKS address. All state is the event loop's; `run` alone fetches."""

    def __init__(
        self,
        name: str,
        settings: RemoteSettings,
        fetch: Fetch,
        *,
        clock: Callable[[], float],
        heard: Callable[[bool], None] | None = None,
    ) -> None:
        """`clock`: monotonic seconds. `heard` is told of each fetch whether it brought keys."""
        self._name = name
        self._settings = settings
        self._fetch = fetch
        self._clock = clock
        self._heard = heard
        self._keys: Keys | None = None
        self._had_at: float | None = None
        self._tried_at = float("-inf")
        self._wake = asyncio.Event()
        self._tried = asyncio.Event()
        self._failing = ""

    @property
    def age(self) -> float | None:
        """Seconds since the last good answer."""
        return None if self._had_at is None else self._clock() - self._had_at

    async def keys(self) -> Keys | None:
        """The keys in use. Waits only for the very first fetch, or for another try once the cool-down has passed."""
        if self._keys is None:
            await self._ask()
        return self._keys

    async def renewed(self, unfit: Keys) -> Keys | None:
        """What a fetch brings, if there was none within the cool-down."""
        if self._keys is unfit:
            await self._ask()
        return self._keys if self._keys is not unfit else None

    async def _ask(self) -> None:
        """Have `run` try now, unless it tried within the cool-down; wait for the outcome."""
        trying = self._tried
        if self._clock() - self._tried_at < self._settings.cooldown and not self._wake.is_set():
            return
        self._wake.set()
        try:
            async with asyncio.timeout(self._settings.timeout):
                await trying.wait()
        except TimeoutError:
            return

    async def run(self) -> NoReturn:
        """Fetch at once, then whenever the keys have aged or somebody asks. Ends when cancelled."""
        while True:
            self._wake.set()  # whoever asks meanwhile waits for this try
            had = await self._try()
            self._tried_at = self._clock()
            self._wake.clear()
            self._tried.set()
            self._tried = asyncio.Event()
            settings = self._settings
            pause = settings.cache_duration if had else min(settings.cooldown, settings.cache_duration)
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _try(self) -> bool:
        found = await self._fetch()
        keys = jwt.parse_keys(found) if isinstance(found, bytes) else found
        if isinstance(keys, str):
            self._failed(keys)
        else:
            self._had(keys)
        if self._heard is not None:
            self._heard(isinstance(keys, Keys))
        return isinstance(keys, Keys)

    def _had(self, keys: Keys) -> None:
        self._had_at = self._clock()
        if self._failing:
            _log.info("JWKS of provider %s is back", self._name)
            self._failing = ""
        if self._keys is not None and self._keys.document == keys.document:
            return  # the same object tells that nothing was rotated
        for problem in keys.skipped[:8]:
            _log.warning("JWKS of provider %s: %s", self._name, problem)
        self._keys = keys

    def _failed(self, why: str) -> None:
        if why == self._failing:
            return
        self._failing = why
        age = self.age
        kept = "nobody is let in by it yet" if age is None else f"keys that are {age:.0f} s old stay in use"
        _log.warning("JWKS of provider %s at %s %s; %s", self._name, self._settings.uri, why, kept)


class JwksHttp:
    """Fetches one document over HTTP: no redirects, no proxies, a time limit and a size limit."""

    def __init__(self, settings: RemoteSettings, tls: ssl.SSLContext | None = None) -> None:
        """`tls` None: the system's authorities."""
        self._settings = settings
        self._tls: ssl.SSLContext | bool = True if tls is None else tls

    async def __call__(self) -> bytes | str:
        """See `Fetch`."""
        settings = self._settings
        timeout = aiohttp.ClientTimeout(total=settings.timeout)
        headers = {"Accept": "application/json", "User-Agent": "arion-tds"}
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers, cookie_jar=aiohttp.DummyCookieJar()) as session,
                session.get(settings.uri, allow_redirects=False, ssl=self._tls) as response,
            ):
                if response.status != 200:
                    return f"answers with status {response.status}"
                body = bytearray()
                async for part in response.content.iter_any():
                    body += part
                    if len(body) > settings.max_bytes:
                        return f"is larger than {settings.max_bytes} bytes"
                return bytes(body)
        except TimeoutError:
            return f"does not answer within {settings.timeout:g} s (timeout)"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return f"cannot be had: {str(error)[:200] or type(error).__name__}"
