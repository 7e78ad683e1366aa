"""What stands before a listener: who is let in. Built from config for each listener; called by app.

In: a listener's config, metrics, clocks. Out: a `Door`: the access port, what its front is told, and the tasks that
keep keys fresh.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import msgspec

from arion_tds.auth import jwt
from arion_tds.auth.access import AccessSettings, JwtAccess, Trusted, protected_resource
from arion_tds.auth.jwks import JwksHttp, KeySource, LocalKeys, RemoteKeys
from arion_tds.config.access import JwtConfig, JwtProviderConfig, LocalJwksConfig
from arion_tds.config.listener import ListenerConfig
from arion_tds.errors import ConfigError
from arion_tds.metrics import Metrics
from arion_tds.rotation import Watched


@dataclasses.dataclass(frozen=True, slots=True)
class Clocks:
    """`now`: seconds since the epoch. `elapsed`: seconds that never go back."""

    now: Callable[[], float]
    elapsed: Callable[[], float]


def _reread(local: LocalJwksConfig, source: LocalKeys) -> None:
    """Take the file's keys into use. OSError or ValueError when it has none."""
    keys = jwt.parse_keys(local.read())
    if isinstance(keys, str):
        raise ValueError(f"{local.filename} {keys}")  # noqa: TRY004 - of a wrong document, not of a wrong type
    source.replace(keys)


class Door:
    """One listener's. `access` None: everybody is anonymous. `metadata`: the RFC 9728 document, if there is one."""

    def __init__(self, listener: ListenerConfig, server_name: str, metrics: Metrics, clocks: Clocks) -> None:
        """ConfigError when a file cannot be used."""
        self.access: JwtAccess | None = None
        self.metadata: bytes | None = None
        self.cache_scope = "public"
        self.tls: ssl.SSLContext | None = None
        self._name = listener.name
        self._metrics = metrics
        self._clocks = clocks
        self._sources: dict[str, KeySource] = {}
        self._listener = listener
        if listener.jwt is not None:
            self._trust(listener.jwt, server_name)
        if listener.tls is not None:
            try:
                self.tls = listener.tls.context()
            except ValueError as error:
                raise ConfigError([f"listener {listener.name!r}: tls: {error}"]) from error

    def _trust(self, settings: JwtConfig, server_name: str) -> None:
        trusted = []
        for name, provider in settings.providers.items():
            source = self._sources[name] = self._source(name, provider)
            trusted.append(Trusted(provider.provider(name, settings.resource), source, provider.headers()))
        heard = self._metrics.auth
        self.access = JwtAccess(
            AccessSettings(
                required=settings.required,
                scopes=frozenset(settings.scopes_required),
                metadata_url=settings.metadata_url,
                max_tokens=settings.max_cached_tokens,
            ),
            trusted,
            now=self._clocks.now,
            heard=lambda outcome: heard.labels(self._name, outcome).inc(),
        )
        if settings.required:
            self.cache_scope = "private"  # what is behind a token must not be kept for those without one
        if settings.resource is not None:
            issuers = [provider.issuer for provider in settings.providers.values()]
            document = protected_resource(settings.resource, issuers, settings.scopes_required, server_name)
            self.metadata = msgspec.json.encode(document)

    def _source(self, name: str, provider: JwtProviderConfig) -> KeySource:
        where = f"listener {self._name!r}: jwt.providers.{name}"
        local, remote = provider.local_jwks, provider.remote_jwks
        if remote is not None:
            settings = remote.settings()
            try:
                tls = None if remote.ca_file is None else ssl.create_default_context(cafile=remote.ca_file)
            except (OSError, ValueError) as error:
                raise ConfigError(
                    [f"{where}.remote_jwks.ca_file {remote.ca_file!r} cannot be used: {error}"]
                ) from error
            fetches = self._metrics.jwks_fetches
            return RemoteKeys(
                name,
                settings,
                JwksHttp(settings, tls),
                clock=self._clocks.elapsed,
                heard=lambda good: fetches.labels(self._name, name, "ok" if good else "failed").inc(),
            )
        try:
            keys = jwt.parse_keys(b"" if local is None else local.read())
        except OSError as error:
            raise ConfigError([f"{where}.local_jwks: {error.filename}: {error.strerror}"]) from error
        if isinstance(keys, str):
            raise ConfigError([f"{where}.local_jwks {keys}"])
        return LocalKeys(keys)

    def watched(self, handshakes: Callable[[ssl.SSLContext], Awaitable[None]]) -> Iterator[Watched]:
        """Files of this door that may be rotated. `handshakes` is given the new TLS context."""
        name, tls, trusted = self._name, self._listener.tls, self._listener.jwt
        if tls is not None:
            settings = tls  # the one that the lambda means
            yield Watched(f"TLS of listener {name!r}", tls.files, lambda: handshakes(settings.context()))
        for provider, config in () if trusted is None else trusted.providers.items():
            local, source = config.local_jwks, self._sources[provider]
            if local is not None and local.filename is not None and isinstance(source, LocalKeys):
                what = f"JWKS of provider {provider!r} of listener {name!r}"
                yield Watched(what, (local.filename,), functools.partial(_reread, local, source))

    def measure(self) -> None:
        """Bring the gauges up to date: how old each provider's keys are (-1: there are none)."""
        for name, source in self._sources.items():
            age = source.age
            self._metrics.jwks_age.labels(self._name, name).set(-1 if age is None else age)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep keys fresh while the block runs."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run()) for one in self._sources.values() if isinstance(one, RemoteKeys)]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
