"""From a judged config to what parts are made of: settings with their secrets read, logs opened, what may change later.

In: a `Config`. Out: values and parts for app, or ConfigError with what cannot be read or opened. Called by app, at
start and when a config is reloaded.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

from arion_tds.access_log import AccessLog, Requests
from arion_tds.audit import Audit
from arion_tds.backends.mcp.pool import UpstreamsSettings
from arion_tds.backends.mcp.stdio import StdioServer
from arion_tds.cache.keeping import Cache, Origin
from arion_tds.config import sharing
from arion_tds.config.file import FileConfig
from arion_tds.config.judging import Config
from arion_tds.errors import ConfigError
from arion_tds.metrics import Metrics
from arion_tds.model.cluster import Cluster
from arion_tds.server.sessions import Sessions

RUNTIME: Final = frozenset({"listeners", "clusters", "data_sources", "mcp_servers", "log", "reload", "drain_delay"})
"""Keys of the config that can change while the gateway runs."""


def settings(config: Config, key: bytes | None = None) -> tuple[UpstreamsSettings, dict[str, Cluster], Sessions]:
    """What upstreams, clusters and sessions are made of, secrets and all. ConfigError when one cannot be read.

    `key` signs sessions where the config has none; None: a random one.
    """
    try:
        upstreams = config.file.mcp_servers.settings(_processes(config))
        return upstreams, {item.name: item.settings() for item in config.file.clusters}, _sessions(config, key)
    except (ValueError, OSError, KeyError) as error:
        raise ConfigError([str(error)]) from error


def fixed(old: FileConfig, new: FileConfig) -> dict[str, object]:
    """What differs and cannot change while the gateway runs, as it is now."""
    names = [name for name in FileConfig.model_fields if name not in RUNTIME]
    return {name: getattr(old, name) for name in names if getattr(old, name) != getattr(new, name)}


def shareable(file: FileConfig, count: int) -> None:
    """ConfigError when so many processes cannot serve this."""
    addresses = [("admin", file.admin.address), *((f"listener {one.name!r}", one.address) for one in file.listeners)]
    why = None if count == 1 else sharing.obstacle(addresses)
    if why is not None:
        raise ConfigError([sharing.refusal(count, why)])


def cache(file: FileConfig, connected: Callable[[], bool], *, keeps: bool) -> Cache | None:
    """The cache on disk, if there is to be one. `connected` says whether the control plane's stream is up.

    `keeps`: what comes is written there; else it is only read.
    """
    if file.cache is None:
        return None
    origin = Origin("" if file.control_plane is None else file.control_plane.address, file.node.cluster)
    clock = time.time  # noqa: TID251 - for the root
    return Cache(file.cache.directory, file.cache.max_bytes, origin, clock=clock, connected=connected, keeps=keeps)


class Logs:
    """The access log and the audit log, where the config wants them."""

    def __init__(self, file: FileConfig, metrics: Metrics, clock: Callable[[], float]) -> None:
        """`clock`: seconds since the epoch."""
        self._file = file
        self._metrics = metrics
        self._clock = clock
        self._access: AccessLog | None = None
        self._audited: AccessLog | None = None

    def open(self, stack: AsyncExitStack) -> None:
        """Write while the stack stands. ConfigError, naming the config's key, when one cannot be written."""
        access, audit, metrics = self._file.access_log, self._file.audit_log, self._metrics
        if access is not None:
            dropped = metrics.access_log_dropped.inc
            self._access = _opened(stack, "access_log", access.path, access.max_buffer_bytes, dropped)
        if audit is not None:
            self._audited = _opened(stack, "audit_log", audit.path, audit.max_buffer_bytes, metrics.audit_dropped.inc)

    def requests(self, listener: str) -> Requests | None:
        """What writes down a listener's requests."""
        settings = self._file.access_log
        if settings is None or self._access is None:
            return None
        return Requests(self._access, listener, settings.format, self._clock)

    def audit(self, listener: str) -> Audit | None:
        """What writes down a listener's calls."""
        settings = self._file.audit_log
        if settings is None or self._audited is None:
            return None
        return Audit(self._audited, listener, self._clock, arguments=settings.arguments)


def _opened(stack: AsyncExitStack, key: str, path: str, most: int, dropped: Callable[[int], None]) -> AccessLog:
    try:
        log = AccessLog(path, most, dropped)
    except OSError as error:
        raise ConfigError([f"{key}.path {path}: {error.strerror or error}"]) from error
    stack.enter_context(log.running())
    return log


def _processes(config: Config) -> dict[str, StdioServer]:
    return {
        one.url(listener.name): one.settings() for listener in config.file.listeners for one in listener.stdio_servers
    }


def _sessions(config: Config, key: bytes | None) -> Sessions:
    chosen = config.file.sessions
    key = chosen.key.read() if chosen.key is not None else key or os.urandom(32)
    return Sessions(key, clock=time.time, random_bytes=os.urandom, lifetime=chosen.lifetime)  # noqa: TID251
