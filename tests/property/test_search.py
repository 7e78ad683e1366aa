"""An index that was changed many times against one that is built anew, and against BM25 as the textbook has it."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from arion_tds.search import scoring
from arion_tds.search.index import SearchIndex
from arion_tds.search.query import Hits, search
from arion_tds.search.tokenize import Document

History = list[tuple[str, Document | None, int]]
KEYS = [f"{space}.tool{number}" for space in ("git", "mail", "wiki") for number in range(6)]
WORDS = ["alpha", "beta", "gamma", "delta", "omega", "sigma"]

documents = st.dictionaries(st.sampled_from(WORDS), st.integers(1, 255), max_size=6).map(
    lambda terms: Document(terms, sum(terms.values()), ("".join(terms), "tool"))
)
changes = st.lists(st.tuples(st.sampled_from(KEYS), st.none() | documents, st.integers(1, 3)), max_size=120)
queries = st.lists(st.sampled_from([*WORDS, "alpah", "tool", "a"]), max_size=4).map(" ".join)
spaces = st.none() | st.sets(st.sampled_from(["git", "mail", "wiki", "none"]))


def changed(history: History) -> tuple[SearchIndex, dict[str, Document]]:
    index, living = SearchIndex(), {}
    for key, document, times in history:
        for _ in range(times if document else 1):
            if document is None:
                index.remove(key)
                living.pop(key, None)
            else:
                index.add(key, key.partition(".")[0], document, policy=len(document.terms) % 2)
                living[key] = document
    return index, living


def rebuilt(living: dict[str, Document]) -> SearchIndex:
    index = SearchIndex()
    for key, document in sorted(living.items()):
        index.add(key, key.partition(".")[0], document, policy=len(document.terms) % 2)
    return index


@settings(max_examples=150, deadline=None)
@given(changes, queries, spaces, st.integers(0, 20), st.integers(0, 5), st.booleans(), st.booleans())
def test_an_index_answers_as_if_it_had_just_been_built(
    history: History, query: str, namespaces: set[str] | None, limit: int, offset: int, odd: bool, judged: bool
) -> None:
    index, living = changed(history)

    def answer(of: SearchIndex) -> Hits:
        return search(
            of,
            query,
            limit=limit,
            offset=offset,
            namespaces=namespaces,
            permits=(lambda policy: policy == 1) if odd else None,
            visible=(lambda key: not key.endswith("3")) if judged else None,
        )

    assert answer(index) == answer(rebuilt(living))
    assert len(index) == len(living)


@settings(max_examples=100, deadline=None)
@given(changes, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
def test_scores_are_bm25_of_the_living_documents(history: History, terms: list[str]) -> None:
    index, living = changed(history)
    scores = scoring.scores(index.words, [(term, 1.0) for term in terms])
    mean = sum(document.length for document in living.values()) / max(len(living), 1)
    for key, document in living.items():
        expected = 0.0
        for term in terms:
            weight = document.terms.get(term, 0) / 4
            holding = sum(term in other.terms for other in living.values())
            idf = math.log(1 + (len(living) - holding + 0.5) / (holding + 0.5))
            expected += idf * weight / (weight + 1.2 * (0.25 + 0.75 * document.length / mean)) if weight else 0.0
        assert math.isclose(scores[index.slot(key)], expected, rel_tol=1e-5)
    assert sum(score > 0 for score in scores) == sum(
        any(term in doc.terms for term in terms) for doc in living.values()
    )


@settings(max_examples=100, deadline=None)
@given(changes)
def test_what_is_removed_leaves_nothing_behind(history: History) -> None:
    index, living = changed(history)
    for key in living:
        index.remove(key)
    assert len(index) == 0
    assert search(index, "", limit=10).total == 0
    assert sorted(index.words._free_slots) == list(range(index.words.size))
    assert not index.words._numbers
    assert not index.words._letters
    assert not index._group_numbers


@settings(max_examples=100, deadline=None)
@given(changes, queries, st.integers(1, 4))
def test_pages_put_together_are_the_whole_answer(history: History, query: str, step: int) -> None:
    index, _ = changed(history)
    whole = search(index, query, limit=1000)
    pages = [search(index, query, limit=step, offset=offset) for offset in range(0, whole.total + step, step)]
    assert [item for page in pages for item in page.items] == whole.items
    assert len(whole.items) == whole.total == len({key for key, _ in whole.items})
