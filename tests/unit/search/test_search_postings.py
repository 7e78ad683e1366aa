"""What removal leaves in the index, and for how long."""

from __future__ import annotations

import pytest

from arion_tds.search import postings
from arion_tds.search.postings import Postings
from arion_tds.search.scoring import living, scores


def test_a_term_is_forgotten_with_its_last_document() -> None:
    words = Postings()
    slot = words.add({"alpha": 4, "beta": 8}, 12)
    assert words.like("a") == {"alpha": "alpha"}
    words.remove(slot)
    assert words.frequency("alpha") == 0
    assert words.like("a") == {}
    assert scores(words, [("alpha", 1.0)]).tolist() == [0.0]


def test_a_removed_document_scores_nothing_at_once_even_where_its_postings_stay() -> None:
    words = Postings()
    slots = [words.add({"common": 4}, 4) for _ in range(100)]
    words.remove(slots[7])
    found = scores(words, [("common", 1.0)])
    assert found[slots[7]] == 0
    assert (found > 0).sum() == words.frequency("common") == 99
    assert living(words).sum() == 99


def test_stale_postings_stay_below_a_quarter_and_slots_are_used_again() -> None:
    words = Postings()
    slots = [words.add({"common": 4, f"own{at}": 4}, 8) for at in range(100)]
    for turn in range(500):
        at = turn * 7 % 100
        words.remove(slots[at])
        slots[at] = words.add({"common": 4, f"own{at}": 4}, 8)
        assert len(words.held("common")[0]) <= 134
    assert words.size <= 134
    assert words.frequency("common") == 100


def test_terms_of_all_documents_are_cut_down_one_with_each_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MANY", 50)
    common = [f"common{at}" for at in range(5)]
    words = Postings()
    slots = [words.add({**dict.fromkeys(common, 4), f"own{at}": 4}, 24) for at in range(100)]

    def sizes() -> list[int]:
        return [len(words.held(term)[0]) for term in common]

    seen = []
    for slot in slots[:40]:
        before = sizes()
        words.remove(slot)
        seen.append(sum(now != then for now, then in zip(sizes(), before, strict=True)))
        assert [words.frequency(term) for term in common] == [words.living] * 5
    assert max(seen) == 1
    assert sum(seen) == 5
    assert max(sizes()) < 80


def test_a_document_without_words_can_come_and_go() -> None:
    words = Postings()
    for _ in range(3):
        words.remove(words.add({}, 0))
    assert words.size == 1
    assert scores(words, []).tolist() == [0.0]


def test_room_grows_with_the_documents() -> None:
    words = Postings()
    slots = [words.add({"word": 4}, 4) for _ in range(1000)]
    assert slots == list(range(1000))
    assert (scores(words, [("word", 1.0)]) > 0).all()


def test_a_document_of_terms_that_two_bytes_cannot_count_goes_as_it_came() -> None:
    words = Postings()
    many = words.add({f"term{at}": 1 for at in range(70_000)}, 70_000)
    late = words.add({"term3": 1, "term69999": 1, "late": 2}, 4)
    assert words.frequency("term69999") == words.frequency("term3") == 2
    words.remove(late)
    assert [words.frequency(term) for term in ("term3", "term69999", "late")] == [1, 1, 0]
    words.remove(many)
    assert words.frequency("term69999") == 0
