"""Two rankings made one. In: keys, best first. Out: keys with scores, best first. Called by search.query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

RANK_CONSTANT: Final = 10
"""k of reciprocal rank fusion. 10 measured better than the customary 60: the first places count for more."""


def reciprocal_rank(rankings: Sequence[Sequence[str]], k: int = RANK_CONSTANT) -> list[tuple[str, float]]:
    """Each key scores the sum of 1 / (k + rank) over the rankings that hold it (ranks from 1). Ties in key order."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
