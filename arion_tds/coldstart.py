"""A restarted gateway serves what it served before: what an earlier life kept goes the road that a delivery goes.

In: the cache, what applies deliveries, the ADS client. Out: catalogs that hold what was kept, versions claimed on the
first stream, and how old all of it is. Built by app, which calls `read` before anything is loaded, and runs `run`
beside the ADS client; it listens and connects when `restored` is set.

Tools and toolkits are there by then. OpenAPI sources are expanded and MCP servers' lists judged at the
same time; what takes longer than `GRACE` comes later, and until then the control plane is asked for it anew.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from arion_tds import deriving
from arion_tds.cache.keeping import Cache, Restored
from arion_tds.cache.kept import Kept
from arion_tds.model.delivery import CLUSTERS, Delivered, Delivery, Kind
from arion_tds.model.derived import Derived
from arion_tds.model.server import McpServer
from arion_tds.xds.handling import Handler
from arion_tds.xds.held import UNSETTLED
from arion_tds.xds.stream import AdsClient

GRACE: Final = 0.5
"""Seconds that listening waits for kept sources and servers."""

_log = logging.getLogger("arion_tds.cache")


class ColdStart:
    """What an earlier life kept, until the control plane has agreed to it. `restored`: what can be there at once is."""

    def __init__(self, cache: Cache, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._cache = cache
        self._clock = clock
        self._restored = Restored()
        self._at = 0.0
        self._scopes: tuple[str, ...] = ()
        self._resources = 0
        self._recalled: set[str] = set()
        self._settled = False
        self._rescoped = asyncio.Event()
        self.restored = asyncio.Event()

    async def read(self, scopes: Iterable[str], *, shared: bool = False) -> None:
        """Read what was kept of the scopes, and (`shared`) of clusters. Never fails."""
        self._scopes = tuple(scopes)
        self._restored = await self._cache.open(self._scopes, shared=shared)
        self._at = self._clock()
        self._resources = sum(map(len, self._restored.kept.resources.values()))

    async def recall(self, server: McpServer) -> Derived | None:
        """What the server listed in the earlier life, while that is still asked for."""
        listed = self._restored.kept.listings.get(server.url)
        if listed is None:
            return None
        self._recalled.add(server.url)
        return await deriving.remember(server, listed)

    async def run(self, ads: AdsClient | None, deliver: Handler) -> None:
        """Serve what was kept, then note each time that the control plane has said all it has. Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            if ads is not None and self._resources:
                age = "unknown" if self._restored.age is None else f"{self._restored.age:.0f} s"
                _log.info("serving %d resources that were kept on disk; their age is %s", self._resources, age)
                plain = [tasks.create_task(ads.restore(one, deliver)) for one in self._plain()]
                slow = [tasks.create_task(ads.restore(one, deliver)) for one in self._slow()]
                if plain:
                    await asyncio.wait(plain)
                if slow:
                    await asyncio.wait(slow, timeout=GRACE)
            self.restored.set()
        self._cache.unlisted(self._restored.kept.listings.keys() - self._recalled)
        # Payloads and lists are not needed any more, and from now on a server is asked itself.
        self._restored = dataclasses.replace(self._restored, kept=Kept())
        while ads is not None:
            await ads.wait_complete()
            self._settled = True
            self._cache.complete(self._scopes)
            self._rescoped.clear()
            await self._rescoped.wait()

    def _plain(self) -> Iterator[Delivery]:
        for kind in (*CLUSTERS, Kind.TOOL, Kind.TOOLKIT):
            updates = tuple(self._updates(kind))
            if updates:
                yield Delivery(kind, updates, ())

    def _slow(self) -> Iterator[Delivery]:
        """Sources and servers one by one, so that none waits for the slowest."""
        for kind in (Kind.SOURCE, Kind.SERVER):
            for one in self._updates(kind):
                yield Delivery(kind, (one,), ())

    def _updates(self, kind: Kind) -> Iterator[Delivered]:
        for one in self._restored.kept.resources.get(kind, ()):
            # Another control plane may call something else by the same version.
            yield one if self._restored.trusted else dataclasses.replace(one, version=UNSETTLED)

    @property
    def is_serving(self) -> bool:
        """Whether everything that the earlier life served is here, so that probes may see "ready"."""
        return bool(self._scopes) and self._restored.complete.issuperset(self._scopes)

    def rescope(self, scopes: Iterable[str]) -> None:
        """Other scopes are consumed from now on, as the ADS client knows already: what goes is forgotten."""
        new = tuple(scopes)
        for gone in set(self._scopes).difference(new):
            self._cache.forget(gone)
        self._scopes = new
        self._rescoped.set()

    def state(self) -> Mapping[str, object]:
        """For `/readyz`: whether what is served comes from disk still, and how old that is, in seconds."""
        status = self._cache.status()
        serving = bool(self._resources) and not self._settled
        return {
            "serving_from_disk": serving,
            "age_seconds": self.age if serving else None,
            "resources_restored": self._resources,
            "pending_bytes": status.pending_bytes,
            "left_out": status.left_out,
            "last_error": status.last_error,
        }

    @property
    def left_out(self) -> int:
        """Changes that are not kept, for want of room."""
        return self._cache.status().left_out

    @property
    def age(self) -> float | None:
        """Seconds since the control plane last agreed to what was restored; None: unknown, or it has agreed since."""
        age = self._restored.age
        return None if age is None or self._settled else round(age + self._clock() - self._at, 3)
