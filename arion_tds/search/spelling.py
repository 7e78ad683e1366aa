"""The indexed word that an unknown word was probably meant to be.

In: a word that no tool holds, and the indexed terms. Out: a term, or None. Called by search.query.
"""

from __future__ import annotations

from typing import Final

from rapidfuzz import process
from rapidfuzz.distance import DamerauLevenshtein

from arion_tds.search.postings import Postings

SHORTEST: Final = 5
"""Letters of a word that is corrected: in a shorter one a single letter is most of the meaning. (Its stem may be one
letter shorter: `repos`, `repo`.)"""

LONGEST: Final = 32
SIMILAR: Final = 0.75
"""Least similarity: one slip in four letters, two in eight. On the labelled sets 0.8 recovers half as much (4.0 of 5.6
points of nDCG lost to typos against 5.4) and spares clean queries 0.1 points."""


def nearest(word: str, term: str, postings: Postings) -> str | None:
    """The most similar term of the same first letter; of equals the most frequent, then the first in the alphabet."""
    if not SHORTEST <= len(word) <= LONGEST:
        return None
    found = process.extract(
        term,
        postings.like(term[0]),
        scorer=DamerauLevenshtein.normalized_similarity,
        score_cutoff=SIMILAR,
        limit=None,
    )
    if not found:
        return None
    return min(found, key=lambda match: (-match[1], -postings.frequency(match[0]), match[0]))[0]
