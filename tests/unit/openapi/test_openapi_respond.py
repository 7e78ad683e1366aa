"""Upstream answers to MCP results."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from arion_tds.model.result import CallResult

Open = Callable[..., Any]


def content(result: CallResult) -> Any:
    return json.loads(result.content)


def test_json_becomes_structured_content_and_the_same_text(opened: Open) -> None:
    result = opened("outputs").answer("one", 200, b'{\n  "id": 1,\n  "next": null\n}')
    assert result.structured == b'{"id":1,"next":null}'
    assert content(result) == [{"type": "text", "text": '{"id":1,"next":null}'}]
    assert not result.is_error


def test_what_servers_really_answer_passes_the_loosened_schema(opened: Open) -> None:
    answer = b'{"id":null,"kind":"new one","more":1}'
    assert opened("outputs").answer("one", 200, answer).structured == answer
    assert opened("outputs", output="strict").answer("one", 200, answer).is_error


def test_a_mismatch_fails_a_safe_call_and_shows_the_body(opened: Open) -> None:
    result = opened("outputs").answer("one", 200, b'{"id":"seven"}')
    assert result.is_error
    assert json.loads(result.structured or b"")["error"]["code"] == "invalid_output"
    assert "/id" in content(result)[0]["text"]
    assert content(result)[1]["text"] == '{"id":"seven"}'


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [(201, b'{"id":"seven"}', "application/json"), (201, b"{broken", "application/json"), (200, b"done", "text/plain")],
)
def test_a_mismatch_after_a_change_is_text_and_no_error(opened: Open, status: int, body: bytes, kind: str) -> None:
    result = opened("outputs").answer("make", status, body, kind)
    assert (result.is_error, result.structured) == (False, None)
    assert content(result)[0]["text"] == body.decode()


def test_an_empty_answer_says_its_status(opened: Open) -> None:
    result = opened("outputs").answer("gone", 204, b"", "")
    assert (content(result), result.is_error) == ([{"type": "text", "text": "HTTP 204"}], False)
    assert opened("outputs").answer("one", 200, b"").is_error
    assert not opened("outputs").answer("make", 201, b"").is_error


@pytest.mark.parametrize(
    ("name", "status", "retryable"),
    [("one", 503, True), ("one", 500, True), ("one", 404, False), ("make", 500, False), ("make", 429, True)],
)
def test_a_refusal_is_an_error_with_status_and_body(opened: Open, name: str, status: int, *, retryable: bool) -> None:
    result = opened("outputs").answer(name, status, b'{"error":"nope"}')
    error = json.loads(result.structured or b"")["error"]
    assert result.is_error
    assert (error["code"], error["status"], error["retryable"]) == ("upstream_error", status, retryable)
    assert '{"error":"nope"}' in error["message"]


def test_a_redirect_is_an_error_and_a_long_body_is_cut(opened: Open) -> None:
    assert "answered 302" in content(opened("outputs").answer("one", 302, b""))[0]["text"]
    assert len(content(opened("outputs").answer("one", 500, b"x" * 100_000, "text/html"))[0]["text"]) < 2_200


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/plain; charset=latin-1", "grüß".encode("latin-1"), "grüß"),
        ("text/csv", b"a,b", "a,b"),
        ("text/plain; charset=nonsense", "ü".encode(), "ü"),
        ("", b"plain", "plain"),
        ("application/xml", b"<a/>", "<a/>"),
        ("application/json", b"{broken", "{broken"),
        ("application/problem+json", b'{"a":1}', '{"a":1}'),
    ],
)
def test_text_is_a_text_block(opened: Open, kind: str, body: bytes, text: str) -> None:
    assert content(opened("outputs").answer("text", 200, body, kind)) == [{"type": "text", "text": text}]


@pytest.mark.parametrize("kind", ["image/png", "audio/mpeg"])
def test_pictures_and_sound_are_blocks_of_their_own(opened: Open, kind: str) -> None:
    block = content(opened("outputs").answer("text", 200, b"\x89\x00", kind))[0]
    assert block == {"type": kind.partition("/")[0], "data": base64.b64encode(b"\x89\x00").decode(), "mimeType": kind}


@pytest.mark.parametrize(("kind", "shown"), [("application/pdf", "application/pdf"), ("", "application/octet-stream")])
def test_other_bytes_are_an_embedded_resource(opened: Open, kind: str, shown: str) -> None:
    block = content(opened("outputs").answer("text", 200, b"\x00\xff", kind))[0]
    assert block["type"] == "resource"
    assert (block["resource"]["mimeType"], block["resource"]["blob"]) == (shown, "AP8=")


def test_json_in_another_encoding_is_read(opened: Open) -> None:
    body = '{"id":1,"kind":"ü"}'
    for charset in ("utf-16", "latin-1"):
        answer = opened("outputs").answer("one", 200, body.encode(charset), f"application/json; charset={charset}")
        assert answer.structured == body.encode()
    assert opened("outputs").answer("one", 200, b"\xef\xbb\xbf" + body.encode()).structured == body.encode()


def test_deep_json_is_an_error_and_no_crash(opened: Open) -> None:
    assert opened("outputs").answer("one", 200, b"[" * 100_000).is_error
