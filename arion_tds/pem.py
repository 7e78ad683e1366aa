"""Everything that is made of PEM files, as things whose files may be rotated: listeners, clusters, MCP servers, the
control plane. Called by app.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterable

import grpc

from arion_tds.backends import tls
from arion_tds.backends.clusters import Clusters
from arion_tds.backends.mcp.pool import Upstreams
from arion_tds.config import judging
from arion_tds.config.file import ControlPlaneConfig
from arion_tds.errors import ConfigError
from arion_tds.model.cluster import ClusterTls
from arion_tds.rotation import Watched

_log = logging.getLogger("arion_tds.rotation")


def clusters(found: Clusters) -> Callable[[], Iterable[Watched]]:
    """The clusters that have files."""

    def things() -> Iterable[Watched]:
        for cluster, context in found.secured():
            if cluster.tls is not None:
                yield _client(f"TLS of cluster {cluster.name!r}", cluster.tls, context)

    return things


def upstreams(found: Upstreams) -> Callable[[], Iterable[Watched]]:
    """The MCP servers that have files; those with the same ones are one thing."""

    def things() -> Iterable[Watched]:
        for files, context in found.secured():
            if _paths(files):
                yield _client(f"TLS of MCP servers with {', '.join(_paths(files))}", files, context)

    return things


def _client(what: str, files: ClusterTls, context: ssl.SSLContext) -> Watched:
    return Watched(what, _paths(files), lambda: tls.renew(context, files))


def _paths(files: ClusterTls) -> tuple[str, ...]:
    return tuple(path for path in (files.ca_file, files.cert_file, files.key_file) if path is not None)


class PlaneCredentials:
    """The control plane's TLS files, read at each connection; those that were good last where they cannot be."""

    def __init__(self, settings: ControlPlaneConfig) -> None:
        """ConfigError when they cannot be read now."""
        self._settings = settings
        self._last = judging.credentials(settings)

    @property
    def wanted(self) -> Callable[[], grpc.ChannelCredentials] | None:
        """For `AdsSettings.credentials`: None for plain text."""
        return None if self._last is None else self._read

    def _read(self) -> grpc.ChannelCredentials:
        try:
            self._last = judging.credentials(self._settings) or self._last
        except ConfigError as error:
            _log.warning("the files that were good before are used: %s", error)
        if self._last is None:  # a config does not lose its `tls` while it is in use
            raise RuntimeError("TLS towards the control plane without files")
        return self._last
