"""Requests that arguments must not be able to bend, whatever the input schema would have said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arion_tds.model.http import HttpRequest
from arion_tds.model.result import CallFailure
from arion_tds.openapi.binding import Binding, Body, Parameter
from arion_tds.openapi.request import build

Operation = Callable[..., Any]

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    value=JSON,
    style=st.sampled_from(["simple", "label", "matrix"]),
    explode=st.booleans(),
)
@settings(max_examples=50, deadline=None)
def test_no_value_adds_a_segment_to_a_path_or_leaves_it(value: Any, style: str, *, explode: bool) -> None:
    place = Parameter("a", "a", "path", style, explode, required=True)
    made = build(Binding("GET", ("/x/", place, "/y"), "*/*"), {"a": value})
    if isinstance(made, HttpRequest):
        segments = made.target.split("/")
        assert len(segments) == 4
        assert segments[2] not in ("", ".", "..")
        assert not set(made.target) & set("?#\\ \r\n\0")
        assert made.target.isascii()


@given(
    value=JSON,
    style=st.sampled_from(["form", "spaceDelimited", "pipeDelimited", "deepObject"]),
    explode=st.booleans(),
    reserved=st.booleans(),
)
@settings(max_examples=50, deadline=None)
def test_no_value_ends_a_query(value: Any, style: str, *, explode: bool, reserved: bool) -> None:
    query = Parameter("a", "a", "query", style, explode, reserved)
    made = build(Binding("GET", ("/x",), "*/*", parameters=(query,)), {"a": value})
    if isinstance(made, HttpRequest):
        assert not set(made.target) & set("# \r\n\0")
        assert made.target.isascii()
        if not isinstance(value, dict) and not isinstance(value, list):
            assert "&" not in made.target


@given(value=JSON, explode=st.booleans())
@settings(max_examples=50, deadline=None)
def test_no_value_adds_a_header_or_a_cookie(value: Any, *, explode: bool) -> None:
    parameters = (
        Parameter("a", "X-A", "header", "simple", explode),
        Parameter("b", "b", "cookie", "form", explode=False),
    )
    made = build(Binding("GET", ("/x",), "*/*", parameters=parameters), {"a": value, "b": value})
    if isinstance(made, HttpRequest):
        assert all(32 <= ord(char) < 127 or char == "\t" for _, text in made.headers for char in text)
        assert dict(made.headers).get("cookie", "").count(";") == 0


@given(value=st.dictionaries(st.text(), JSON, max_size=4), kind=st.sampled_from(["json", "form", "multipart", "text"]))
@settings(max_examples=50, deadline=None)
def test_any_object_is_a_body_or_a_refusal(value: Any, kind: Any) -> None:
    made = build(Binding("POST", ("/x",), "*/*", body=Body(kind, "x/y", "body", required=True)), {"body": value})
    assert isinstance(made, HttpRequest | CallFailure)
    if kind == "multipart" and isinstance(made, HttpRequest) and made.body is not None:
        boundary = dict(made.headers)["content-type"].partition("boundary=")[2].encode()
        assert made.body.endswith(b"--" + boundary + b"--\r\n")


def test_a_form_name_cannot_break_out_of_its_part(operation: Operation) -> None:
    api = operation(
        "requestBody: {required: true, content: {multipart/form-data: {schema: {type: object, "
        "additionalProperties: {type: string}}}}}"
    )
    sent = api.send("call", body={'a"\r\nX-Evil: 1\r\n\r\n': "v"}).body or b""
    assert b'name="a%22%0D%0AX-Evil: 1%0D%0A%0D%0A"' in sent


def test_what_is_missing_or_null_in_a_path_is_named(operation: Operation) -> None:
    api = operation("parameters: [{name: id, in: path, schema: {type: string}}]", path="'/x/{id}'")
    assert api.refused("call") == "argument 'id' is required"
    assert "null" in api.refused("call", id=None)


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (1, "1"), (1.0, "1"), (1.5, "1.5"), (1e21, "1e%2B21"), ("", ""), (10**30, "1" + "0" * 30)],
)
def test_scalars_are_written_as_json_writes_them(operation: Operation, value: Any, text: str) -> None:
    api = operation("parameters: [{name: a, in: query, schema: {}}]", method="get")
    assert api.send("call", a=value).target == f"/call?a={text}"


def test_null_and_empty_lists_are_left_out(operation: Operation) -> None:
    api = operation("parameters: [{name: a, in: query, schema: {}}, {name: X-B, in: header, schema: {}}]", method="get")
    assert api.send("call", a=None, **{"X-B": None}).target == "/call"
    assert api.send("call", a=[]).target == "/call"
    assert api.send("call", a={}).target == "/call"


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_what_json_cannot_say_is_refused(operation: Operation, value: float) -> None:
    api = operation("parameters: [{name: a, in: query, schema: {}}]", method="get")
    assert "not a finite number" in api.refused("call", a=value)


def test_a_body_over_its_limit_is_refused_with_the_limits_name(operation: Operation) -> None:
    from arion_tds.openapi.limits import Limits

    api = operation(
        "requestBody: {required: true, content: {application/json: {schema: {}}}}", limits=Limits(max_body_bytes=10)
    )
    assert "max_body_bytes = 10" in api.refused("call", body="x" * 20)


def test_the_accept_header_asks_for_json_where_there_is_json(operation: Operation) -> None:
    api = operation("responses: {'200': {description: ok, content: {text/csv: {}, application/vnd.a+json: {}}}}")
    assert dict(api.send("call").headers)["accept"] == "application/vnd.a+json"
    api = operation("responses: {'200': {description: ok, content: {image/png: {}}}}")
    assert dict(api.send("call").headers)["accept"] == "image/png, */*;q=0.5"
