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

from arion_tds.access_log import AccessLog
from arion_tds.backends.mcp.pool import UpstreamsSettings
from arion_tds.backends.mcp.stdio import StdioServer
from arion_tds.cache.keeping import Cache, Origin
from arion_tds.config.file import FileConfig
from arion_tds.config.judging import Config
from arion_tds.errors import ConfigError
from arion_tds.model.cluster import Cluster
from arion_tds.server.sessions import Sessions

RUNTIME: Final = frozenset({"listeners", "clusters", "data_sources", "mcp_servers", "log", "reload", "drain_delay"})
"""Keys of the config that can change while the gateway runs."""


def settings(config: Config) -> tuple[UpstreamsSettings, dict[str, Cluster], Sessions]:
    """What upstreams, clusters and sessions are made of, secrets and all. ConfigError when one cannot be read."""
    try:
        upstreams = config.file.mcp_servers.settings(_processes(config))
        return upstreams, {item.name: item.settings() for item in config.file.clusters}, _sessions(config)
    except (ValueError, OSError, KeyError) as error:
        raise ConfigError([str(error)]) from error


def fixed(old: FileConfig, new: FileConfig) -> dict[str, object]:
    """What differs and cannot change while the gateway runs, as it is now."""
    names = [name for name in FileConfig.model_fields if name not in RUNTIME]
    return {name: getattr(old, name) for name in names if getattr(old, name) != getattr(new, name)}


def cache(file: FileConfig, connected: Callable[[], bool]) -> Cache | None:
    """The cache on disk, if there is to be one. `connected` says whether the control plane's stream is up."""
    if file.cache is None:
        return None
    origin = Origin("" if file.control_plane is None else file.control_plane.address, file.node.cluster)
    clock = time.time  # noqa: TID251 - for the root
    return Cache(file.cache.directory, file.cache.max_bytes, origin, clock=clock, connected=connected)


def opened(stack: AsyncExitStack, key: str, path: str, most: int, dropped: Callable[[int], None]) -> AccessLog:
    """A log that is written while the stack stands. ConfigError, naming the config's key, when it cannot be."""
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


def _sessions(config: Config) -> Sessions:
    chosen = config.file.sessions
    key = chosen.key.read() if chosen.key is not None else os.urandom(32)
    return Sessions(key, clock=time.time, random_bytes=os.urandom, lifetime=chosen.lifetime)  # noqa: TID251
