"""What a search comes to, and the search without a word: every tool in name order.

In: the index, and what the caller may see. Out: `Hits`. Called by search.query, and by finding where there is no word.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Container, Hashable
from typing import Final

from arion_tds.search.index import SearchIndex

ENGINE: Final = "arion_tds.search.query"
"""What ranks by words, with numpy: 12 MB that a gateway nobody searches need not hold, and 0.1 s to import."""


class Ranking(enum.StrEnum):
    """What the order came from."""

    NAME = "name"
    BM25 = "bm25"
    FUSED = "bm25+embeddings"


@dataclasses.dataclass(frozen=True, slots=True)
class Hits:
    """A page: (key, score), best first. `total` counts every tool that matched and may be seen.

    Scores compare within one answer and `ranking` only; tools found by name stand first whatever their score.
    `corrected` are the words that were searched in another spelling: (as typed, as searched).
    """

    items: list[tuple[str, float]]
    total: int
    ranking: Ranking
    corrected: tuple[tuple[str, str], ...] = ()


def listed(
    index: SearchIndex,
    *,
    limit: int,
    offset: int = 0,
    namespaces: Container[str] | None = None,
    permits: Callable[[Hashable], bool] | None = None,
    visible: Callable[[str], bool] | None = None,
) -> Hits:
    """Up to `limit` tools after the first `offset`, in name order: what is asked is as `query.search` takes it."""
    offset = max(offset, 0)
    end = offset + max(limit, 0)
    if namespaces is None and permits is None and visible is None:
        page, total = [index.keys[slot] for slot in index.order.page(offset, end)], len(index)
    else:
        admitted = index.listed(namespaces, permits, visible)
        page, total = admitted[offset:end], len(admitted)
    return Hits([(key, 0.0) for key in page], total, Ranking.NAME)
