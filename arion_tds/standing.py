"""What a running gateway shows of itself: to the operator's pages, to gauges, and to the other workers.

In: the parts that app has built, read anew with every question. Out: values. `Gateway` of app is one; here stands what
changes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from arion_tds import gauges, observing
from arion_tds.admin import dump
from arion_tds.backends.clusters import Clusters
from arion_tds.backends.mcp.pool import Upstreams
from arion_tds.catalog import Catalog
from arion_tds.coldstart import ColdStart
from arion_tds.config.judging import Config
from arion_tds.doors import Door
from arion_tds.embedding import Embedder
from arion_tds.expansion import Expander
from arion_tds.freshness import Freshness
from arion_tds.metrics import Metrics
from arion_tds.problems import Problems
from arion_tds.reloading import Reloader
from arion_tds.server.http import McpFront
from arion_tds.server.sessions import Sessions
from arion_tds.telling import Telling
from arion_tds.tenants import Tenants
from arion_tds.xds.stream import AdsClient


class Standing:
    """The parts, which app sets, and what is read off them."""

    ads: AdsClient | None
    clusters: Clusters
    coldstart: ColdStart | None
    expander: Expander
    freshness: Freshness
    metrics: Metrics
    problems: Problems
    reloader: Reloader
    telling: Telling | None
    tenants: Tenants
    upstreams: Upstreams
    _config: Config
    _draining: bool
    _measures: observing.Measures
    _opened: asyncio.Event
    _sessions: Sessions

    def ready(self) -> Mapping[str, object]:
        """`ready`: config loaded, and the initial fetch done or timed out. Also how old the content is."""
        state: dict[str, object] = {
            "ready": self._opened.is_set() and self._fetched and not self._draining,
            "draining": self._draining,
            "config_generation": self.reloader.generation,
            "last_reload_error": self.reloader.last_error,
        }
        if self.coldstart is not None:
            state["cache"] = self.coldstart.state()
        if self.ads is not None and self._config.file.control_plane is not None:
            status = self.ads.status()
            state["control_plane"] = dump.control_plane(
                self._config.file.control_plane.address, status, time.monotonic()
            )
        return state

    @property
    def serving(self) -> bool:
        """Whether connections are taken, ready or not."""
        return self._opened.is_set()

    @property
    def _fetched(self) -> bool:
        return self.ads is None or self.ads.is_ready or (self.coldstart is not None and self.coldstart.is_serving)

    def configured(self) -> Mapping[str, object]:
        """What /config_dump says beside the state: workers, and the config. Secrets are only ever references."""
        return {
            "embeddings": {name: embedder.status() for name, embedder in self.embedders.items()},
            "openapi_workers": self.expander.status(),
            "config": self._config.file.model_dump(mode="json"),
        }

    @property
    def catalogs(self) -> Sequence[Catalog]:
        """One per listener, in the order of the config."""
        return self.tenants.catalogs

    @property
    def fronts(self) -> Mapping[str, McpFront]:
        """By listener."""
        return {name: one.front for name, one in self.tenants.listeners.items() if one.bound}

    @property
    def bound(self) -> Mapping[str, str]:
        """The address of each listener."""
        return {name: one.bound for name, one in self.tenants.listeners.items() if one.bound}

    @property
    def endpoints(self) -> Mapping[str, str]:
        """The URL of each listener."""
        return {name: one.endpoint for name, one in self.tenants.listeners.items() if one.bound}

    @property
    def doors(self) -> Mapping[str, Door]:
        """By listener."""
        return {name: one.door for name, one in self.tenants.listeners.items()}

    @property
    def embedders(self) -> Mapping[str, Embedder]:
        """By listener, where there is one."""
        found = {name: one.content.embedder for name, one in self.tenants.listeners.items()}
        return {name: one for name, one in found.items() if one is not None}

    @property
    def scopes(self) -> Mapping[str, str]:
        """The scope that each listener serves."""
        return {name: one.catalog.scope for name, one in self.tenants.listeners.items()}

    def plane_address(self) -> str:
        """Where the control plane is."""
        settings = self._config.file.control_plane
        return "" if settings is None else settings.address

    def measure(self) -> None:
        """Bring the gauges up to date."""
        gauges.measure(self, time.monotonic())
        self._measures.clusters(self.clusters.status())
        self._measures.sessions(self._sessions.issued)
