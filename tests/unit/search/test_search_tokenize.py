"""Text to words: what a tool can be found by."""

from __future__ import annotations

import dataclasses
import json

import pytest
from search_samples import tool

from arion_tds.schema import Schema
from arion_tds.search import tokenize


def texts(query: str) -> list[str]:
    return [word.text for word in tokenize.words(query)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("create_issue", ["create", "issue"]),
        ("git-hub.create issue!", ["git", "hub", "create", "issue"]),
        ("createIssue", ["createissue", "create", "issue"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("list URLs", ["list", "urls"]),
        ("Repositories", ["repositories"]),
        ("OAuth2 token", ["oauth2", "auth", "token"]),
        ("ipv4 2024", ["ipv4", "ipv", "2024"]),
        ("café – naïve", ["cafe", "naive"]),
        ("搜索关键词", ["搜索", "索关", "关键", "键词"]),
        ("用GitHub搜", ["用", "github", "git", "hub", "搜"]),
        ("поиск Файлов", ["поиск", "файлов"]),
        ("हिन्दी", ["हिन्दी"]),
        ("한국어", ["한국", "국어"]),
        ("", []),
        ("?!… —", []),
    ],
)
def test_a_query_is_cut_into_words(query: str, expected: list[str]) -> None:
    assert texts(query) == expected


def test_stop_words_are_dropped_unless_nothing_else_is_said() -> None:
    assert texts("what is the weather") == ["weather"]
    assert texts("who am I") == ["who", "am", "i"]


def test_inflected_words_share_a_term_and_it_can_be_spoken() -> None:
    (one,), (other,) = tokenize.words("repository"), tokenize.words("repositories")
    assert one.term == other.term
    tokenize.document(tool("git.clone", "Clone a repository. Repositories are many."))
    assert tokenize.spoken(one.term) == "repository"
    assert tokenize.spoken("never-seen") == "never-seen"


def test_fields_weigh_by_how_much_they_say() -> None:
    made = tokenize.document(tool("zulu.alpha", "bravo", charlie="delta"))
    assert made.terms == {"alpha": 8, "zulu": 4, "bravo": 4, "charli": 2, "delta": 1}
    assert made.length == 19


def test_a_compound_name_is_also_one_word() -> None:
    terms = tokenize.document(tool("git.create_issue")).terms
    assert {"creat", "issu"} < terms.keys()
    assert terms["createissu"] == 8


def test_a_name_of_stop_words_is_still_found() -> None:
    terms = tokenize.document(tool("me.who_am_i")).terms
    assert {"who", "am", "i", "whoami"} <= terms.keys()
    assert tokenize.document(tool("x.do")).terms["do"] == 8


def test_nested_properties_and_items_count_too() -> None:
    value = {
        "properties": {
            "order": {
                "properties": {"customer": {"description": "buyer"}},
                "items": {"properties": {"article": {"description": 7}}},
            },
            "odd": True,
        },
        "items": {"properties": {"root": {}}},
    }
    found = dataclasses.replace(tool("shop.buy"), input_schema=Schema(json.dumps(value).encode()))
    assert {"order", "custom", "buyer", "articl", "odd", "root"} <= tokenize.document(found).terms.keys()


@pytest.mark.parametrize(
    "text", [b"true", b"[]", b'{"properties":[1]}', b'{"properties":{"a":null}}', b'{"items":[1]}']
)
def test_a_schema_of_another_shape_adds_nothing_and_breaks_nothing(text: bytes) -> None:
    found = dataclasses.replace(tool("a.b", "word"), input_schema=Schema(text))
    assert tokenize.document(found).terms["word"] == 4


def test_a_schema_is_walked_only_so_deep_and_so_far() -> None:
    deep: dict[str, object] = {"properties": {"bottom": {}}}
    for level in range(40):
        deep = {"properties": {f"level{level}": deep}}
    wide = {
        "properties": {f"q{chr(97 + at % 26)}{chr(97 + at // 26 % 26)}{chr(97 + at // 676)}": {} for at in range(5000)}
    }
    for value, most in ((deep, 3 * tokenize.MAX_DEPTH), (wide, tokenize.MAX_PROPERTIES)):
        found = dataclasses.replace(tool("a.b"), input_schema=Schema(json.dumps(value).encode()))
        terms = tokenize.document(found).terms
        assert "bottom" not in terms
        assert len(terms) <= most + 2


def test_long_texts_are_read_up_to_a_limit_and_weights_fit_a_byte() -> None:
    made = tokenize.document(tool("a.b", "word " * 10_000 + "beyond"))
    assert made.terms["word"] == tokenize.MAX_WEIGHT
    assert "beyond" not in made.terms
    assert made.length == sum(made.terms.values())


def test_text_cut_inside_a_character_is_read_up_to_it() -> None:
    made = tokenize.document(tool("a.b", "x" * (tokenize.MAX_DESCRIPTION_BYTES - 4) + " é"))
    assert all("\ufffd" not in term for term in made.terms)


def test_names_are_folded_in_each_spelling_a_client_may_use() -> None:
    short = tokenize.document(tool("git-hub.createIssue"))
    assert short.names == ("createissue", "githubcreateissue")
    assert tokenize.fold("git-hub__createIssue") == "githubcreateissue"
    long = tokenize.document(tool(f"{'n' * 40}.{'m' * 40}"))
    assert len(long.names) == 3  # published names are cut and end in a digest


def test_a_word_cache_that_overflows_forgets_rare_words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenize, "CACHED_WORDS", 8)
    monkeypatch.setattr(tokenize, "_words", tokenize._Words())
    told = tool("alpha.beta", "one two three four five six sevens")
    before = tokenize.document(told).terms
    assert tokenize.document(told).terms == before
    assert before["one"] == 4
    assert len(tokenize._words) <= 8 >= len(tokenize._words.older)
    assert tokenize.spoken("seven") == "sevens"
    for rare in map(str, range(40)):
        tokenize.document(tool("alpha.beta", f"sevens rare{rare}"))
    assert tokenize.spoken("seven") == "sevens"
    assert tokenize.spoken("five") == "five"


def test_lone_surrogates_do_not_break_indexing() -> None:
    assert tokenize.document(tool("a.b", "good \ud800 word")).terms["good"] == 4
    assert tokenize.fold("a\ud800b") == "ab"
