"""The indexed word that an unknown word was probably meant to be.

In: a word that no tool holds, and the indexed words. Out: a term and its word, or None. Called by search.query.
"""

from __future__ import annotations

from typing import Final

from arion_tds.search.postings import Postings

SHORTEST: Final = 5
"""Letters of a word that is corrected: in a shorter one a single letter is most of the meaning."""

LONGEST: Final = 32
SIMILAR: Final = 0.75
"""Least similarity: one slip in four letters, two in eight. On the labelled sets slips cost 6.7 points of nDCG;
0.75 gives 4.9 of them back and takes 0.1 from clean queries, 0.8 gives 4.1 and takes nothing."""


def nearest(word: str, postings: Postings) -> tuple[str, str] | None:
    """The term, and a word for it, most similar to a word; of equals the most frequent, then the first in order.

    Words are compared, not stems: the stem of a misspelt word is often cut elsewhere (`recipeint`; `recipi`).
    """
    if not SHORTEST <= len(word) <= LONGEST:
        return None
    # Here, not above: 2 MB that a gateway nobody has misspelt a word to need not hold.
    from rapidfuzz import process
    from rapidfuzz.distance import DamerauLevenshtein

    found = process.extract(
        word,
        postings.like(word[0]),
        scorer=DamerauLevenshtein.normalized_similarity,
        score_cutoff=SIMILAR,
        limit=None,
    )
    if not found:
        return None
    near = min(found, key=lambda match: (-match[1], -postings.frequency(match[2]), match[2]))
    return near[2], near[0]
