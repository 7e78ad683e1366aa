"""One result, two eras."""

from __future__ import annotations

import json
from typing import Any

from mcp_types.methods import validate_server_result

from arion_tds.model.result import CallFailure, CallResult, ErrorCode, failed, text_block
from arion_tds.server import render

IDENTITY = render.server_meta("gw", "1")
WHO = {"io.modelcontextprotocol/serverInfo": {"name": "gw", "version": "1"}}


def modern(result: CallResult) -> Any:
    return json.loads(render.modern(result, IDENTITY))


def legacy(result: CallResult) -> Any:
    return json.loads(render.legacy(result))


def test_a_plain_result() -> None:
    result = CallResult(content=text_block("hi"), structured=b'{"a":1}')
    content = [{"type": "text", "text": "hi"}]
    assert legacy(result) == {"content": content, "structuredContent": {"a": 1}, "isError": False}
    assert modern(result) == {
        "resultType": "complete",
        "content": content,
        "structuredContent": {"a": 1},
        "isError": False,
        "_meta": WHO,
    }
    validate_server_result("tools/call", "2025-11-25", legacy(result))
    validate_server_result("tools/call", "2026-07-28", modern(result))


def test_structured_content_that_is_no_object_is_for_the_modern_era_only() -> None:
    result = CallResult(structured=b"[1,2]")
    assert "structuredContent" not in legacy(result)
    assert modern(result)["structuredContent"] == [1, 2]


def test_a_failure_keeps_its_error_object() -> None:
    result = failed(CallFailure(ErrorCode.UPSTREAM_TIMEOUT, "too slow", retryable=True))
    for rendered in (legacy(result), modern(result)):
        assert rendered["isError"] is True
        assert rendered["structuredContent"]["error"]["code"] == "upstream_timeout"


def test_what_the_upstream_said_in_meta_stays_but_its_identity_does_not() -> None:
    meta = b'"com.x/y":1,"io.modelcontextprotocol/serverInfo":{"name":"up"},"io.modelcontextprotocol/other":2'
    result = CallResult(meta=meta, extra=b',"com.z":[1]')
    assert modern(result)["_meta"] == {**WHO, "com.x/y": 1, "io.modelcontextprotocol/other": 2}
    assert legacy(result)["_meta"] == {"com.x/y": 1}
    assert modern(result)["com.z"] == legacy(result)["com.z"] == [1]
    assert "_meta" not in legacy(CallResult(meta=b'"io.modelcontextprotocol/serverInfo":{}'))


def test_a_question_back_is_passed_on_to_the_modern_era() -> None:
    result = CallResult(result_type="input_required", extra=b',"inputRequests":{"a":{}},"requestState":"s"')
    assert modern(result) == {
        "resultType": "input_required",
        "inputRequests": {"a": {}},
        "requestState": "s",
        "_meta": WHO,
    }


def test_a_question_back_is_an_error_with_words_for_older_clients() -> None:
    rendered = legacy(CallResult(result_type="input_required", extra=b',"requestState":"s"'))
    assert rendered["isError"] is True
    assert "2026-07-28" in rendered["content"][0]["text"]
    assert "requestState" not in rendered
