"""Search of one listener: what the caller may see of the View, ranked by the scope's index, and by meaning.

In: the View that the request took and what is asked. Out: `Found`. The front's SearchPort; built by app.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from arion_tds import pace
from arion_tds.catalog import Catalog
from arion_tds.model.rbac import Rbac
from arion_tds.search.hits import ENGINE, listed
from arion_tds.server.settings import Allows, Found, SearchAsk
from arion_tds.view import View

Near = Callable[[int, Callable[[str], bool] | None, Iterable[str] | None], list[tuple[str, float]]]
"""The tools nearest to one query: at most how many, which keys are allowed, among which to look (None: all)."""


class Meaning(Protocol):
    """Knows tools by meaning."""

    async def near(self, asked: str) -> Near | str | None:
        """What finds the tools nearest to a query; why none can be told now; None where there is nothing to tell."""
        ...


class Finder:
    """Searches one catalog. The index changes only between two turns of the event loop, as the View does."""

    def __init__(self, catalog: Catalog, meaning: Meaning | None = None) -> None:
        """The catalog whose index and View belong together. `meaning` ranks by vectors beside the words."""
        self._catalog = catalog
        self._meaning = meaning

    async def search(self, view: View, ask: SearchAsk, allows: Allows) -> Found:
        """The best `limit` entries after the first `offset`, of those that `allows` lets the caller see."""
        held = view.qualified
        near = None
        worded = bool(ask.query.strip())
        if worded:
            await pace.load(ENGINE)
            if self._meaning is not None:
                near = await self._meaning.near(ask.query)
        # From here on nothing is waited for: what the index says holds until the answer is made.

        def visible(name: str) -> bool:
            entry = held.get(name)
            return entry is not None and (entry.tool.rbac is None or allows(entry.tool.rbac))

        def permits(policy: object) -> bool:
            return not isinstance(policy, Rbac) or allows(policy)

        # While a publication is being prepared the index holds what no View does, and the other way round.
        settled = self._catalog.settled and self._catalog.published.view is view
        index = self._catalog.index
        judges: dict[str, Any] = {
            "permits": permits if settled and view.restricted else None,
            "visible": None if settled else visible,
        }
        page: dict[str, Any] = {"limit": ask.limit, "offset": ask.offset, "namespaces": ask.namespaces, **judges}
        corrected: dict[str, str] = {}
        if not worded:
            hits = listed(index, **page)
        else:
            from arion_tds.search.query import FUSED, search

            dense = None
            if near is not None and not isinstance(near, str):
                among = None if ask.namespaces is None else index.listed(ask.namespaces)
                dense = near(FUSED, visible if view.restricted or not settled else None, among)
            hits = search(index, ask.query, dense=dense, **page)
            corrected = dict(hits.corrected)
            if view.restricted or not settled:
                # A word of a tool that the caller may not see must not be told as what was meant.
                seen = {read: search(index, read, limit=1, **judges).total for read in corrected.values()}
                corrected = {typed: read for typed, read in corrected.items() if seen[read]}
        entries = [(held[name], score) for name, score in hits.items]
        return Found(
            hits=entries,
            tokens=[self._catalog.tokens.of(entry) for entry, _ in entries],
            total=hits.total,
            ranking=hits.ranking.value,
            corrected=corrected,
            namespaces=self._catalog.index.census(permits if view.restricted else None) if ask.overview else {},
            degraded=f"embeddings: {near}" if isinstance(near, str) else None,
        )
