"""One search: words in, a page of tools out.

In: the index, query text, and what the caller may see. Out: `Hits`. Called by server (the search tool) and codemode.

The order: tools whose whole name was typed, then tools whose name begins with what was typed, then the rest by BM25, or
by BM25 and a ranking by meaning fused. Among equals the key decides, so that pages never overlap. Only words that no
tool holds are corrected. A query without a word lists every tool in name order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import Final

import numpy as np

from arion_tds.search import hits, scoring, spelling, tokenize
from arion_tds.search.fuse import RANK_CONSTANT, reciprocal_rank
from arion_tds.search.hits import Hits, Ranking
from arion_tds.search.index import SearchIndex
from arion_tds.search.scoring import Scores, Slots

MAX_TERMS: Final = 64
"""Different words of a query that count; what follows is not looked at."""

MAX_CORRECTED: Final = 8
"""Unknown words of a query that are looked up for a correction: each costs about 0.2 ms in a large catalog."""

FUSED: Final = 100
"""Places of each ranking that are fused; what is beyond follows in BM25 order. The same for every page."""

_NONE: Final[Slots] = np.empty(0, np.intp)


class _Asked:
    """The index as one caller may see it, for the length of one search."""

    def __init__(
        self,
        index: SearchIndex,
        namespaces: Container[str] | None,
        permits: Callable[[Hashable], bool] | None,
        visible: Callable[[str], bool] | None,
    ) -> None:
        self.index = index
        self.within = None if namespaces is None and permits is None else scoring.within(index, namespaces, permits)
        self.visible = visible

    def only(self, slots: Slots) -> Slots:
        """Those of the slots that belong to the answer."""
        if self.within is not None:
            slots = slots[self.within[slots]]
        if self.visible is None:
            return slots
        keys, visible = self.index.keys, self.visible
        return np.array([slot for slot in slots.tolist() if visible(keys[slot])], np.intp)

    def named(self, query: str) -> tuple[Slots, Slots]:
        """Slots of tools whose name is the query, and of those whose name begins with it."""
        folded = tokenize.fold(query)
        if not folded or len(folded) > tokenize.MAX_NAME_BYTES:
            return _NONE, _NONE
        whole, begun = scoring.named(self.index, folded)
        return self.only(whole), self.only(begun)

    def at(self, keys: Iterable[str]) -> Slots:
        """Slots of those of the keys that belong to the answer, in the same order."""
        slots = [slot for slot in map(self.index.slot, keys) if slot is not None]
        return self.only(np.array(slots, np.intp))

    def best(self, slots: Slots, scores: Scores, count: int) -> list[tuple[str, float]]:
        """The first `count` of the slots by score, then key, without sorting them all."""
        if count <= 0 or not len(slots):
            return []
        values = scores[slots]
        keys = self.index.keys
        if count < len(slots):
            least = np.partition(values, len(slots) - count)[len(slots) - count]
            above, level = slots[values > least], slots[values == least]
            ties = heapq.nsmallest(count - len(above), [(keys[slot], slot) for slot in level.tolist()])
            slots = np.concatenate([above, np.array([slot for _, slot in ties], np.intp)])
            values = scores[slots]
        named = [(keys[slot], value) for slot, value in zip(slots.tolist(), values.tolist(), strict=True)]
        named.sort(key=lambda item: (-item[1], item[0]))
        return named


def search(  # noqa: PLR0913 - each is a question of its own, and all but two have an answer already
    index: SearchIndex,
    query: str,
    *,
    limit: int,
    offset: int = 0,
    namespaces: str | Container[str] | None = None,
    permits: Callable[[Hashable], bool] | None = None,
    visible: Callable[[str], bool] | None = None,
    dense: Sequence[tuple[str, float]] | None = None,
) -> Hits:
    """Up to `limit` tools after the first `offset`.

    `namespaces`: one, or several; an unknown one holds nothing. `permits` judges a policy (see `SearchIndex.add`), once
    each. `visible` judges a key, and is asked about every match, because `total` must not count what the caller may not
    see: where a policy can say it, `permits` is far cheaper. `dense`: what is nearest by meaning, best first, from
    `Vectors.nearest` with a limit of `FUSED`; None where there is no such ranking.
    """
    spaces = (namespaces,) if isinstance(namespaces, str) else namespaces
    words = tokenize.words(query)
    if not words:
        return hits.listed(index, limit=limit, offset=offset, namespaces=spaces, permits=permits, visible=visible)
    offset = max(offset, 0)
    end = offset + max(limit, 0)
    asked = _Asked(index, spaces, permits, visible)
    terms, corrected = _terms(index, words)
    scores = scoring.scores(index.words, terms)
    whole, begun = asked.named(query)
    named = np.concatenate([whole, begun])
    rest = asked.only(_without(np.flatnonzero(scores), named))
    page = asked.best(whole, scores, end)
    page += asked.best(begun, scores, end - len(page))
    total = len(named) + len(rest)
    if dense is None:
        page += asked.best(rest, scores, end - len(page))
        return Hits(page[offset:end], total, Ranking.BM25, corrected)
    meant = _without(asked.at(key for key, _ in dense), named)[:FUSED]
    lexical = [key for key, _ in asked.best(rest, scores, max(end, FUSED))]
    page += _fused(lexical, [index.keys[slot] for slot in meant.tolist()])
    total += len(_without(meant, rest))
    return Hits(page[offset:end], total, Ranking.FUSED, corrected)


def _without(slots: Slots, others: Slots) -> Slots:
    return slots[~np.isin(slots, others)] if len(others) else slots


def _fused(lexical: list[str], meant: list[str]) -> list[tuple[str, float]]:
    """The first places of both fused, then the rest of the words' ranking with the scores that its ranks give."""
    head = reciprocal_rank([lexical[:FUSED], meant])
    seen = {key for key, _ in head}
    tail = [
        (key, 1 / (RANK_CONSTANT + rank)) for rank, key in enumerate(lexical, 1) if rank > FUSED and key not in seen
    ]
    return head + tail


def _terms(
    index: SearchIndex, words: list[tokenize.QueryWord]
) -> tuple[list[tuple[str, float]], tuple[tuple[str, str], ...]]:
    """Terms with how often they were said, and what was corrected."""
    factors: dict[str, float] = {}
    corrected: dict[str, str] = {}
    unknown: dict[str, tuple[str, str] | None] = {}
    for word in words:
        term = word.term
        if not index.words.frequency(term):
            if not word.whole:
                continue
            if word.text not in unknown:
                looked = len(unknown) < MAX_CORRECTED
                unknown[word.text] = spelling.nearest(word.text, index.words) if looked else None
            meant = unknown[word.text]
            if meant is None:
                continue
            term, corrected[word.text] = meant
        factors[term] = factors.get(term, 0.0) + 1.0
        if len(factors) >= MAX_TERMS:
            break
    return list(factors.items()), tuple(corrected.items())
