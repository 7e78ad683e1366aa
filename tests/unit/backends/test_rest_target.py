"""Arguments in a request target: each value stays in its place, whatever it holds."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arion_tds.backends.target import target
from arion_tds.model import template
from arion_tds.model.backend import QueryParam, RestBackend
from arion_tds.model.result import CallFailure, ErrorCode
from arion_tds.model.template import Template


def backend(path: str, **query: str) -> RestBackend:
    made = template.parse(path)
    assert isinstance(made, Template)
    params = tuple(QueryParam(name, tuple(source.split("."))) for name, source in query.items())
    return RestBackend("GET", made, "weather", params)


def filled(path: str, arguments: dict[str, object], **query: str) -> str:
    made = target(backend(path, **query), arguments)
    assert isinstance(made, str), made
    return made


def refused(path: str, arguments: dict[str, object], **query: str) -> str:
    made = target(backend(path, **query), arguments)
    assert isinstance(made, CallFailure), made
    assert made.code is ErrorCode.INVALID_ARGUMENTS
    assert not made.retryable
    return made.message


def test_a_value_takes_the_place_of_its_variable() -> None:
    assert filled("/v1/{{city}}/forecast", {"city": "Oslo"}) == "/v1/Oslo/forecast"


def test_a_dot_path_reaches_into_objects_and_lists() -> None:
    assert filled("/{{user.ids.1}}", {"user": {"ids": [4, 5]}}) == "/5"


@pytest.mark.parametrize(
    ("value", "segment"),
    [
        ("a/b", "a%2Fb"),
        ("50%", "50%25"),
        ("%2e%2e/x", "%252e%252e%2Fx"),
        ("a;b?c#d", "a%3Bb%3Fc%23d"),
        ("São Paulo", "S%C3%A3o%20Paulo"),
        ("a+b&c=d", "a%2Bb%26c%3Dd"),
        ("../etc", "..%2Fetc"),
        ("...", "..."),
        ("~_-.a", "~_-.a"),
        (True, "true"),
        (False, "false"),
        (12, "12"),
        (2**70, "1180591620717411303424"),
        (-3, "-3"),
        (3.0, "3"),
        (2.5, "2.5"),
        (1e22, "1e%2B22"),
    ],
)
def test_a_value_is_percent_encoded_as_one_segment(value: object, segment: str) -> None:
    assert filled("/x/{{v}}/y", {"v": value}) == f"/x/{segment}/y"


@pytest.mark.parametrize("value", ["", ".", "..", "%2e", "%2E%2e", ".%2e", "%252e%252E", "%25252e."])
def test_an_empty_value_or_a_dot_segment_is_refused(value: str) -> None:
    assert '"v"' in refused("/x/{{v}}/y", {"v": value})


@pytest.mark.parametrize("value", ["\0", "a\nb", "\x7f", "a\tb"])
def test_a_control_character_in_a_path_is_refused(value: str) -> None:
    assert "control character" in refused("/{{v}}", {"v": value})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "null"),
        ({"a": 1}, "an object"),
        ([1], "a list"),
        (float("nan"), "not a finite number"),
        (float("inf"), "not a finite number"),
    ],
)
def test_what_is_no_scalar_cannot_stand_in_a_path(value: object, said: str) -> None:
    assert refused("/{{user.id}}", {"user": {"id": value}}).startswith(f'argument "user.id" is {said}')


def test_an_absent_variable_is_named() -> None:
    assert refused("/{{user.id}}", {"user": {}}) == 'argument "user.id" is missing: the request path needs it'


def test_neighbours_cannot_make_a_dot_segment_together() -> None:
    assert "a, b together make a dot segment" in refused("/x/{{a}}{{b}}/y", {"a": "%2", "b": "e"})
    assert filled("/x/{{a}}{{b}}/y", {"a": "v1.", "b": "."[:0] or "0"}) == "/x/v1.0/y"


def test_dot_segments_that_the_template_itself_holds_are_its_own_affair() -> None:
    assert filled("/a/./{{v}}", {"v": "x.y"}) == "/a/./x.y"


def test_a_value_beside_literal_text_only_has_to_fit_the_whole_segment() -> None:
    assert filled("/files/{{name}}.json", {"name": "a.b"}) == "/files/a.b.json"


def test_a_static_query_is_kept_and_merged() -> None:
    assert filled("/f?units=metric", {"days": 3}, days="days") == "/f?units=metric&days=3"
    assert filled("/f?", {"days": 3}, days="days") == "/f?days=3"
    assert filled("/f?a=1&", {"days": 3}, days="days") == "/f?a=1&days=3"
    assert filled("/f?units=metric", {}, days="days") == "/f?units=metric"


def test_a_variable_in_the_query_part_is_a_query_component() -> None:
    assert filled("/f?q={{q}}&n={{n}}", {"q": "../a b&c=d#", "n": ""}) == "/f?q=..%2Fa%20b%26c%3Dd%23&n="
    assert filled("/f?q={{q}}", {"q": ".."}) == "/f?q=.."
    assert "q" in refused("/f?q={{q}}", {"q": ["a"]})


def test_a_question_mark_in_a_value_starts_no_query() -> None:
    assert filled("/{{a}}/{{b}}", {"a": "x?y", "b": "z"}) == "/x%3Fy/z"
    assert '"b"' in refused("/{{a}}/{{b}}", {"a": "x?y", "b": ".."})


def test_absent_and_null_query_sources_are_left_out() -> None:
    assert filled("/f", {"b": None, "c": ""}, a="a", b="b", c="c") == "/f?c="


def test_a_list_repeats_its_key_and_an_object_is_json() -> None:
    arguments: dict[str, object] = {"tags": ["a b", 2, True, None, 1.0], "where": {"x": [1, "é"]}, "none": []}
    made = filled("/f", arguments, tag="tags", where="where", none="none")
    assert made == "/f?tag=a%20b&tag=2&tag=true&tag=1&where=%7B%22x%22%3A%5B1%2C%22%C3%A9%22%5D%7D"


def test_a_query_name_is_encoded_too() -> None:
    made = target(RestBackend("GET", Template(("/f",)), "c", (QueryParam("filter[a]&b", ("v",)),)), {"v": 1})
    assert made == "/f?filter%5Ba%5D%26b=1"


@pytest.mark.parametrize("value", [float("nan"), [1, float("-inf")]])
def test_numbers_that_json_lacks_are_never_sent(value: object) -> None:
    assert '"n"' in refused("/f", {"n": value}, n="n")


def test_literal_text_is_sent_as_it_is_and_encoded_only_where_it_must() -> None:
    assert filled("/a%20b/c:d/(e)", {}) == "/a%20b/c:d/(e)"
    assert filled("/a b/é#x", {}) == "/a%20b/%C3%A9%23x"
    assert filled("/{id}", {}) == "/%7Bid%7D"


def test_a_path_always_starts_with_a_slash() -> None:
    assert filled("{{a}}", {"a": "//evil.example"}) == "/%2F%2Fevil.example"


JSON_SCALARS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])), st.booleans(), st.integers(), st.floats(allow_nan=True)
)


@given(a=JSON_SCALARS, b=JSON_SCALARS, q=JSON_SCALARS)
def test_whatever_the_arguments_the_path_keeps_its_segments_and_values_come_back(
    a: object, b: object, q: object
) -> None:
    made = target(backend("/v1/{{a}}/{{b}}/end?s=1", q="q"), {"a": a, "b": b, "q": q})
    if isinstance(made, CallFailure):
        return
    assert made.isascii()
    assert not any(ord(char) <= 0x20 for char in made)
    parts = urlsplit(made)
    segments = parts.path.split("/")
    assert len(segments) == 5
    assert segments[1] == "v1"
    assert segments[4] == "end"
    for sent, value in zip(segments[2:4], (a, b), strict=True):
        assert unquote(sent) not in {"", ".", ".."}
        if isinstance(value, str):
            assert unquote(sent) == value
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    assert pairs[0] == ("s", "1")
    if isinstance(q, str):
        assert pairs[1:] == [("q", q)]
