"""Search of one listener: what the caller may see of the View, ranked by the scope's index.

In: the View that the request took and what is asked. Out: `Found`. The front's SearchPort; built by app.
"""

from __future__ import annotations

from arion_tds.catalog import Catalog
from arion_tds.model.rbac import Rbac
from arion_tds.search.query import search
from arion_tds.server.settings import Allows, Found, SearchAsk
from arion_tds.view import View


class Finder:
    """Searches one catalog. The index changes only between two turns of the event loop, as the View does."""

    def __init__(self, catalog: Catalog) -> None:
        """The catalog whose index and View belong together."""
        self._catalog = catalog

    async def search(self, view: View, ask: SearchAsk, allows: Allows) -> Found:
        """The best `limit` entries after the first `offset`, of those that `allows` lets the caller see."""
        held = view.qualified

        def visible(name: str) -> bool:
            entry = held.get(name)
            return entry is not None and (entry.tool.rbac is None or allows(entry.tool.rbac))

        def permits(policy: object) -> bool:
            return not isinstance(policy, Rbac) or allows(policy)

        # While a publication is being prepared the index holds what no View does, and the other way round.
        settled = self._catalog.settled and self._catalog.published.view is view
        hits = search(
            self._catalog.index,
            ask.query,
            namespaces=ask.namespaces,
            limit=ask.limit,
            offset=ask.offset,
            permits=permits if settled and view.restricted else None,
            visible=None if settled else visible,
        )
        entries = [(held[name], score) for name, score in hits.items]
        return Found(
            hits=entries,
            tokens=[self._catalog.tokens.of(entry) for entry, _ in entries],
            total=hits.total,
            ranking=hits.ranking.value,
            corrected=dict(hits.corrected),
        )
