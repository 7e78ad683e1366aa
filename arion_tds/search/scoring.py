"""BM25 over the postings, and the filters of a search, for all tools at once.

In: an index and what is asked of it. Out: numbers and flags by slot, slots. Called by search.query. With it comes
numpy, 12 MB that a gateway nobody searches need not hold: no module that every gateway imports imports this one.

How scores stay exact. Document frequencies, count and average length are always those of the living documents, and all
sums over documents are sums of integers: the scores are, to the bit, those of an index that was built anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Hashable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from arion_tds.search.index import SearchIndex
from arion_tds.search.postings import WEIGHT_BITS, Postings

K1: Final = 1.2
B: Final = 0.75
"""BM25's usual constants; the evaluation hardly moves between k1 0.9 and 2.0, b 0.5 and 0.9."""

_QUARTERS: Final = 4
_WEIGHT_MASK: Final = (1 << WEIGHT_BITS) - 1

Floats = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float64]
Slots = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


def scores(words: Postings, terms: Sequence[tuple[str, float]]) -> Scores:
    """BM25 by slot (Lucene's idf, no constant factor) of (term, factor) pairs; zero where none of them occurs."""
    where: list[Slots] = []
    parts: list[Floats] = []
    flat = np.float32(_QUARTERS * K1 * (1 - B))
    slope = np.float32(_QUARTERS * K1 * B * words.living / max(words.total, 1))
    lengths = np.frombuffer(words.lengths, np.float32)
    for term, factor in terms:
        held, frequency = words.held(term)
        if not held:
            continue
        packed = np.frombuffer(held, np.uint32)
        idf = math.log(1 + (words.living - frequency + 0.5) / (frequency + 0.5))
        slots = (packed >> WEIGHT_BITS).astype(np.intp)
        weights = (packed & _WEIGHT_MASK).astype(np.float32)
        del packed  # an array that is looked at cannot grow
        norms = lengths[slots]
        norms *= slope
        norms += flat
        norms += weights
        weights /= norms
        weights *= np.float32(idf * factor)
        where.append(slots)
        parts.append(weights)
    if not where:
        return np.zeros(words.size)
    return np.bincount(np.concatenate(where), np.concatenate(parts), words.size).astype(np.float64, copy=False)


def living(words: Postings) -> Flags:
    """By slot: whether a document is there."""
    return np.isfinite(np.frombuffer(words.lengths, np.float32))


def within(index: SearchIndex, namespaces: Container[str] | None, permits: Callable[[Hashable], bool] | None) -> Flags:
    """By slot: whether a tool is there whose namespace is one of these and whose policy is permitted."""
    there = living(index.words)
    there &= np.frombuffer(index.chosen(namespaces, permits), np.bool_)[np.frombuffer(index.group_of, np.int32)]
    return there


def named(index: SearchIndex, folded: str) -> tuple[Slots, Slots]:
    """Slots of tools of that (folded) name, and of those with a longer name that begins with it; none twice."""
    whole = _spelled(index, folded + "\0")
    begun = _spelled(index, folded)
    return whole, begun[~np.isin(begun, whole)] if len(whole) else begun


def _spelled(index: SearchIndex, prefix: str) -> Slots:
    return np.unique(np.array(index.spelled(prefix), np.intp))
