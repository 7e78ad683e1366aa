"""Searches as a caller makes them."""

from __future__ import annotations

import pytest
from search_samples import index, tool

from arion_tds.search import query as queries
from arion_tds.search import tokenize
from arion_tds.search.index import SearchIndex
from arion_tds.search.query import Ranking, search

CREATE = tool("github.create_issue", "Open a new issue in a repository", title="Title of the issue")
LIST = tool("github.list_issues", "List the issues of a repository")
CLOSE = tool("gitlab.create_issue", "Open an issue in a GitLab project", severity="How severe the incident is")
SEND = tool("mail.sendMessage", "Send an email message to a recipient", recipient="Address")
ALL = (CREATE, LIST, CLOSE, SEND)


def keys(of: SearchIndex, text: str, **more: object) -> list[str]:
    return [key for key, _ in search(of, text, limit=10, **more).items]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["github.create_issue", "github__create_issue", "GitHub create issue", "githubCreateIssue"]
)
def test_a_whole_name_in_any_spelling_comes_first(name: str) -> None:
    assert keys(index(*ALL), name)[0] == "github.create_issue"


def test_a_local_name_finds_it_in_every_namespace_before_anything_else() -> None:
    assert set(keys(index(*ALL), "create_issue")[:2]) == {"github.create_issue", "gitlab.create_issue"}
    assert keys(index(*ALL), "sendmessage")[0] == "mail.sendMessage"


def test_the_beginning_of_a_name_comes_before_better_words() -> None:
    of = index(*ALL, tool("wiki.search", "send send send"))
    assert keys(of, "send")[0] == "mail.sendMessage"
    assert keys(of, "mail.se") == ["mail.sendMessage"]
    assert keys(of, "gitl")[0] == "gitlab.create_issue"


def test_words_of_parameters_and_namespaces_find_a_tool() -> None:
    assert keys(index(*ALL), "severe incident") == ["gitlab.create_issue"]
    assert keys(index(*ALL), "which recipients") == ["mail.sendMessage"]


def test_total_counts_all_matches_and_pages_do_not_overlap() -> None:
    of = index(*ALL)
    first, second = search(of, "issue", limit=2), search(of, "issue", limit=2, offset=2)
    assert (first.total, len(first.items), len(second.items)) == (3, 2, 1)
    assert not set(first.items) & set(second.items)
    assert search(of, "issue", limit=0).items == []
    assert search(of, "issue", limit=5, offset=-3).total == 3


def test_equal_scores_are_in_key_order() -> None:
    of = index(*(tool(f"space.tool{letter}", "same words") for letter in "dbac"))
    assert keys(of, "same words") == ["space.toola", "space.toolb", "space.toolc", "space.toold"]
    assert [key for key, _ in search(of, "same", limit=2).items] == ["space.toola", "space.toolb"]


@pytest.mark.parametrize("text", ["", "  ", "?"])
def test_a_query_without_a_word_lists_by_name_with_the_exact_total(text: str) -> None:
    hits = search(index(*ALL), text, limit=2, offset=1)
    assert [key for key, _ in hits.items] == ["github.list_issues", "gitlab.create_issue"]
    assert (hits.total, hits.ranking) == (4, Ranking.NAME)
    narrowed = search(index(*ALL), text, limit=9, namespaces="github")
    assert [key for key, _ in narrowed.items] == ["github.create_issue", "github.list_issues"]
    assert narrowed.total == 2


def test_namespaces_are_one_or_several_and_an_unknown_one_is_empty() -> None:
    of = index(*ALL)
    assert keys(of, "issue", namespaces="gitlab") == ["gitlab.create_issue"]
    assert set(keys(of, "issue", namespaces=["gitlab", "github"])) == {
        CREATE.qualified,
        LIST.qualified,
        CLOSE.qualified,
    }
    assert search(of, "issue", limit=9, namespaces="git").total == 0
    assert search(of, "create_issue", limit=9, namespaces="mail").total == 0
    assert search(of, "", limit=9, namespaces=()).total == 0


def test_what_a_caller_may_not_see_is_neither_found_nor_counted() -> None:
    of = index(*ALL)
    for text in ("create_issue", "issue", "crea", ""):
        hits = search(of, text, limit=9, visible=lambda key: not key.startswith("github."))
        assert not any(key.startswith("github.") for key, _ in hits.items)
        assert hits.total == len(hits.items) > 0


def test_a_policy_is_judged_once_for_all_its_tools() -> None:
    of, asked = SearchIndex(), []
    for at in range(50):
        of.add(f"s.t{at}", f"n{at}", queries.tokenize.document(tool(f"s.t{at}", "word")), policy=at % 2)

    def permits(policy: object) -> bool:
        asked.append(policy)
        return policy == 1

    assert search(of, "word", limit=99, permits=permits).total == 25
    assert sorted(asked) == [0, 1]
    assert (
        search(of, "t4", limit=99, permits=permits).total == 5
    )  # t41, t43 … begin so; t4 itself and the even ones do not show


def test_only_words_that_no_tool_holds_are_corrected_and_it_says_so() -> None:
    hits = search(index(*ALL), "mesage to a recipeint", limit=9)
    assert hits.items[0][0] == "mail.sendMessage"
    assert hits.corrected == (("mesage", "message"), ("recipeint", "recipient"))
    assert search(index(*ALL), "message recipient", limit=9).corrected == ()


@pytest.mark.parametrize("text", ["qqqqqq", "lst", "1ssue", "zissue", "repo" * 20])
def test_a_word_that_is_like_none_is_left_alone(text: str) -> None:
    hits = search(index(*ALL), text, limit=9)
    assert (hits.items, hits.total, hits.corrected) == ([], 0, ())


def test_corrections_of_one_query_are_bounded() -> None:
    hits = search(index(*ALL), " ".join(f"recipi{chr(97 + at)}nt" for at in range(26) if at != 4), limit=9)
    assert len(hits.corrected) == queries.MAX_CORRECTED


def test_unknown_words_that_are_like_nothing_are_looked_up_no_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(queries.spelling, "nearest", lambda word, _: looked.append(word))
    search(index(*ALL), " ".join(f"{'q' * at} {'q' * at}" for at in range(5, 40)), limit=1)
    assert len(looked) == len(set(looked)) == queries.MAX_CORRECTED


def test_an_endless_query_is_read_up_to_its_limits() -> None:
    of = index(*ALL, *(tool(f"n.x{at}y", f"{chr(97 + at // 26)}{chr(97 + at % 26)}word") for at in range(100)))
    text = " ".join(f"{chr(97 + at // 26)}{chr(97 + at % 26)}word" for at in range(100))
    assert search(of, text, limit=1).total == queries.MAX_TERMS
    assert search(of, "blah " * 1_000_000 + "issue", limit=1).total == 0


def test_a_replaced_or_removed_tool_is_what_is_found_at_once() -> None:
    of = index(*ALL)
    changed = tool("mail.sendMessage", "Dispatch a telegram")
    of.add("mail.sendMessage", "mail", queries.tokenize.document(changed))
    assert keys(of, "telegram") == ["mail.sendMessage"]
    assert keys(of, "recipient") == []
    of.remove("mail.sendMessage")
    of.remove("mail.sendMessage")
    assert keys(of, "telegram") == keys(of, "sendMessage") == []
    assert len(of) == 3
    assert "mail.sendMessage" not in of


def test_an_empty_index_answers() -> None:
    for text in ("", "word", "create_issue"):
        assert search(SearchIndex(), text, limit=5).total == 0


def test_chinese_descriptions_are_found() -> None:
    of = index(tool("bing.search", "使用必应搜索指定的关键词，并返回搜索结果列表"), tool("map.route", "规划路线"))
    assert keys(of, "搜索关键词") == ["bing.search"]


def test_meaning_is_fused_with_words_and_only_what_may_be_seen_of_it() -> None:
    of = index(*ALL)
    dense = [("mail.sendMessage", 0.9), ("gitlab.create_issue", 0.8), ("gone.tool", 0.7)]
    hits = search(of, "issues of a project", limit=9, dense=dense)
    assert hits.ranking is Ranking.FUSED
    assert hits.items[0][0] == "gitlab.create_issue"
    assert hits.total == len(hits.items) == 4
    seen = search(of, "issues of a project", limit=9, dense=dense, namespaces=["gitlab"])
    assert [key for key, _ in seen.items] == ["gitlab.create_issue"]
    assert seen.total == 1


def test_a_whole_name_stands_before_fused_ranks() -> None:
    hits = search(index(*ALL), "list_issues", limit=9, dense=[("mail.sendMessage", 0.9), ("github.list_issues", 0.1)])
    assert hits.items[0][0] == "github.list_issues"
    assert hits.total == len(hits.items) == 4


def test_fused_pages_are_cut_from_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "FUSED", 5)
    of = index(*(tool(f"n.t{at:02}", "word " * (at + 1) + "other " * 5) for at in range(30)))
    dense = [(f"n.t{at:02}", 0.5) for at in range(3, 30, 3)]
    whole = search(of, "word", limit=100, dense=dense)
    pages = [search(of, "word", limit=4, offset=at, dense=dense).items for at in range(0, 32, 4)]
    assert [item for page in pages for item in page] == whole.items
    assert whole.total == len(whole.items) == 30
    assert [score for _, score in whole.items] == sorted((score for _, score in whole.items), reverse=True)


def test_a_census_counts_the_permitted_tools_of_each_namespace() -> None:
    made = index(tool("b.one"), tool("a.two"), tool("a.three"))
    secret = tool("c.secret")
    made.add("c.secret", "c", tokenize.document(secret), "admins")
    assert list(made.census(None).items()) == [("a", 2), ("b", 1), ("c", 1)]
    assert made.census(lambda policy: policy is None) == {"a": 2, "b": 1}
    made.remove("b.one")
    assert made.census(lambda policy: policy is None) == {"a": 2}
