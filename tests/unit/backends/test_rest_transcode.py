"""Requests from arguments, and results from answers."""

from __future__ import annotations

import base64
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arion_tds import schema
from arion_tds.backends.transcode import EXCERPT_BYTES, answer, build
from arion_tds.model import template
from arion_tds.model.backend import JsonBody, RestBackend
from arion_tds.model.http import HttpRequest, HttpResponse
from arion_tds.model.result import CallFailure, CallResult, ErrorCode
from arion_tds.model.template import Template, Variable
from arion_tds.schema import Schema

PATH = Template(("/items",))
JSON = "application/json"


def posted(body: Template | JsonBody, arguments: dict[str, object]) -> HttpRequest | CallFailure:
    return build(RestBackend("POST", PATH, "c", (), body), arguments)


def sent(body: Template | JsonBody, arguments: dict[str, object]) -> bytes:
    request = posted(body, arguments)
    assert isinstance(request, HttpRequest), request
    assert request.body is not None
    return request.body


def refused(body: Template | JsonBody, arguments: dict[str, object]) -> str:
    failure = posted(body, arguments)
    assert isinstance(failure, CallFailure)
    assert failure.code is ErrorCode.INVALID_ARGUMENTS
    return failure.message


def json_template(text: str) -> Template:
    made = template.parse_body(text)
    assert isinstance(made, Template)
    assert made.json
    return made


def test_a_request_without_body_has_neither_body_nor_content_type() -> None:
    assert build(RestBackend("GET", PATH, "c"), {}) == HttpRequest("GET", "/items")


def test_inside_quotes_a_value_is_escaped() -> None:
    body = json_template('{"say":"<{{text}}>"}')
    assert json.loads(sent(body, {"text": 'a"b\\c\n{{x}} é'})) == {"say": '<a"b\\c\n{{x}} é>'}


def test_inside_quotes_what_is_no_string_stands_as_its_json_text() -> None:
    body = json_template('{"say":"{{v}}"}')
    assert json.loads(sent(body, {"v": {"a": ['"', None]}})) == {"say": '{"a":["\\"",null]}'}
    assert json.loads(sent(body, {"v": True})) == {"say": "true"}


def test_outside_quotes_a_value_is_written_as_json_objects_and_lists_too() -> None:
    body = json_template('{"a":{{s}},"b":{{o}},"c":[{{l}},{{n}},{{z}}]}')
    arguments: dict[str, object] = {"s": 'x"', "o": {"k": 1}, "l": [1, 2], "n": 2**70, "z": None}
    assert json.loads(sent(body, arguments)) == {"a": 'x"', "b": {"k": 1}, "c": [[1, 2], 2**70, None]}


def test_a_json_body_says_so() -> None:
    request = posted(json_template('{"a":{{a}}}'), {"a": 1})
    assert isinstance(request, HttpRequest)
    assert request.headers == (("content-type", JSON),)


def test_an_absent_variable_of_the_body_is_named() -> None:
    assert '"user.name"' in refused(json_template('{"a":"{{user.name}}"}'), {"user": {}})
    assert '"user.name"' in refused(Template((Variable(("user", "name")),)), {"user": {}})


def test_another_template_takes_values_as_they_are() -> None:
    body = Template(("to=", Variable(("to",)), "&n=", Variable(("n",)), "&o=", Variable(("o",)), Variable(("z",))))
    request = posted(body, {"to": 'a&b="c"', "n": 3.0, "o": {"k": [1]}, "z": None})
    assert isinstance(request, HttpRequest)
    assert request.body == b'to=a&b="c"&n=3&o={"k":[1]}null'
    assert request.headers == (("content-type", "text/plain; charset=utf-8"),)


def test_a_number_that_json_lacks_is_refused_in_text_and_never_written_in_json() -> None:
    assert '"n"' in refused(Template((Variable(("n",)),)), {"n": float("nan")})
    assert sent(json_template('{"n":{{n}}}'), {"n": float("inf")}) == b'{"n":null}'


def test_body_json_sends_the_argument_at_its_path() -> None:
    request = posted(JsonBody(("item", "data")), {"item": {"data": {"a": [1, None, "é"]}}})
    assert isinstance(request, HttpRequest)
    assert request.body == '{"a":[1,null,"é"]}'.encode()
    assert request.headers == (("content-type", JSON),)


def test_body_json_without_its_argument_names_it() -> None:
    assert '"item.data"' in refused(JsonBody(("item", "data")), {"item": {}})


def test_half_a_surrogate_pair_is_an_argument_error_wherever_it_stands() -> None:
    half = {"v": "\ud800"}
    assert "surrogate" in refused(json_template('{"a":"{{v}}"}'), dict(half))
    assert "surrogate" in refused(Template((Variable(("v",)),)), dict(half))
    assert isinstance(build(RestBackend("GET", Template(("/", Variable(("v",)))), "c"), dict(half)), CallFailure)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(inside=st.text(st.characters(exclude_categories=["Cs"])), outside=JSON_VALUES)
def test_a_json_template_stays_json_whatever_the_arguments_hold(inside: str, outside: object) -> None:
    body = json_template('{"a":"x{{inside}}y","b":{{outside}},"c":1}')
    value = json.loads(sent(body, {"inside": inside, "outside": outside}))
    assert value == {"a": f"x{inside}y", "b": outside, "c": 1}


def made(text: str) -> Schema:
    parsed = schema.parse(text)
    assert isinstance(parsed, Schema)
    return parsed


CITY = made('{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}')


def response(body: bytes, kind: str | None = JSON, status: int = 200) -> HttpResponse:
    return HttpResponse(status, (("content-type", kind),) if kind is not None else (), body)


def text(result: CallResult) -> str:
    block = msgspec.json.decode(result.content)[0]
    assert block["type"] == "text"
    return str(block["text"])


def test_with_an_output_schema_the_body_is_structured_content_byte_for_byte() -> None:
    body = b'{"city": "Oslo", "t": 1.00, "n": 123456789012345678901234567890}'
    result = answer(CITY, response(body))
    assert result.structured == body
    assert text(result) == body.decode()
    assert not result.is_error


def test_line_breaks_between_tokens_go_so_that_an_event_can_hold_the_result() -> None:
    result = answer(CITY, response(b'{\r\n  "city": "a\\n b",\n  "t": 1.00\n}\n'))
    assert result.structured == b'{"city":"a\\n b","t":1.00}'


def test_an_output_schema_may_want_a_list() -> None:
    assert answer(made('{"type":"array"}'), response(b"[1]")).structured == b"[1]"


def test_an_answer_nested_too_deeply_to_judge_is_a_result_not_a_crash() -> None:
    for depth in (200, 300, 900):
        result = answer(made('{"type":"array"}'), response(b"[" * depth + b"]" * depth))
        assert result.structured is not None or result.is_error


def test_a_byte_order_mark_and_another_charset_are_understood() -> None:
    assert answer(CITY, response(b'\xef\xbb\xbf{"city":"x"}')).structured == b'{"city":"x"}'
    latin = answer(CITY, response('{"city":"é"}'.encode("latin-1"), "application/json; charset=ISO-8859-1"))
    assert latin.structured == '{"city":"é"}'.encode()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"city":1}', "/city"),
        (b"[]", "output schema"),
        (b"<html>", "not JSON"),
        (b"", "empty"),
        (b'{"city":NaN}', "not JSON"),
        (b'{"city":"\xff"}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_an_answer_that_does_not_match_is_invalid_output(body: bytes, said: str) -> None:
    result = answer(CITY, response(body))
    assert result.is_error
    assert result.failure is not None
    assert result.failure.code is ErrorCode.INVALID_OUTPUT
    assert not result.failure.retryable
    assert said in result.failure.message


def test_without_a_schema_the_text_is_returned_as_it_came() -> None:
    result = answer(None, response(b'{"a": 1}\n'))
    assert text(result) == '{"a": 1}\n'
    assert result.structured is None


def test_an_empty_answer_is_an_empty_text() -> None:
    assert text(answer(None, response(b"", None, 204))) == ""


@pytest.mark.parametrize(
    ("body", "kind", "shown"),
    [
        ("é".encode("latin-1"), "text/plain; charset=latin-1", "é"),
        ("é".encode("utf-16"), 'text/plain;charset="utf-16"', "é"),
        (b"a\xffb", "text/plain", "a\ufffdb"),
        (b"a\xffb", "text/plain; charset=no-such", "a\ufffdb"),
        (b"6869", "text/plain; charset=hex", "6869"),
        (b"\\ud800", "text/plain; charset=unicode_escape", "?"),
        (b"\xef\xbb\xbfhi", "text/html", "hi"),
        (b"<svg/>", "image/svg+xml", "<svg/>"),
        (b"hi", None, "hi"),
        (b"hi", "application/vnd.custom", "hi"),
    ],
)
def test_text_is_decoded_by_its_charset(body: bytes, kind: str | None, shown: str) -> None:
    assert text(answer(None, response(body, kind))) == shown


@pytest.mark.parametrize("kind", ["image/png", "audio/mpeg"])
def test_images_and_sounds_are_blocks_of_their_kind(kind: str) -> None:
    (block,) = msgspec.json.decode(answer(None, response(b"\x89PNG\0", kind)).content)
    assert block == {"type": kind.partition("/")[0], "data": base64.b64encode(b"\x89PNG\0").decode(), "mimeType": kind}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"%PDF-1.7", "application/pdf"),
        (b"\0\1", "application/octet-stream"),
        (b"\0\1", None),
        (b"\xff\xfe", "application/vnd.custom"),
    ],
)
def test_other_binary_answers_are_embedded_resources(body: bytes, kind: str | None) -> None:
    (block,) = msgspec.json.decode(answer(None, response(body, kind)).content)
    assert block["type"] == "resource"
    assert base64.b64decode(block["resource"]["blob"]) == body
    assert block["resource"]["mimeType"] == kind or "application/octet-stream"
    assert block["resource"]["uri"]


def test_another_status_is_an_upstream_error_with_the_start_of_its_body() -> None:
    result = answer(CITY, response(b'{"error":"invalid_token"}', status=401), idempotent=True)
    assert result.is_error
    assert result.structured is not None
    assert msgspec.json.decode(result.structured) == {
        "error": {
            "code": "upstream_error",
            "message": 'the upstream answered 401 Unauthorized: {"error":"invalid_token"}',
            "retryable": False,
            "status": 401,
        }
    }


def test_an_error_body_is_cut_to_two_kilobytes_of_whole_characters() -> None:
    failure = answer(None, response("é".encode() * 5000, "text/html", 404)).failure
    assert failure is not None
    shown = failure.message.partition(": ")[2]
    assert EXCERPT_BYTES - 4 <= len(shown.encode()) <= EXCERPT_BYTES
    assert shown.endswith("é…")


def test_a_binary_error_body_is_only_described() -> None:
    failure = answer(None, response(b"\0" * 9, "image/png", 500)).failure
    assert failure is not None
    assert failure.message.endswith(": (9 bytes of image/png)")


def test_a_redirect_says_that_it_is_not_followed() -> None:
    failure = answer(None, response(b"", None, 302), idempotent=True).failure
    assert failure is not None
    assert "redirects are not followed" in failure.message
    assert failure.status == 302
    assert not failure.retryable


def test_an_unknown_status_is_told_by_its_number() -> None:
    failure = answer(None, response(b"", None, 599)).failure
    assert failure is not None
    assert failure.message == "the upstream answered 599"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_passing_failure_is_retryable_but_only_if_the_call_cannot_be_done_twice(status: int) -> None:
    idempotent = answer(None, response(b"", None, status), idempotent=True).failure
    other = answer(None, response(b"", None, status), idempotent=False).failure
    assert idempotent is not None
    assert idempotent.retryable
    assert other is not None
    assert other.retryable is (status in {429, 503})
