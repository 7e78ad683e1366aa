"""JSON-RPC from and to bytes: what a server sent is passed on as it came, and what is wrong with it is said."""

from __future__ import annotations

import json

import msgspec
import pytest

from arion_tds.backends.mcp import wire
from arion_tds.model.result import CallResult, ErrorCode, RpcError


def result(text: str, *, from_modern: bool = True, for_modern: bool = True) -> CallResult:
    found = wire.result_of(msgspec.Raw(text.encode()), from_modern=from_modern, for_modern=for_modern)
    assert isinstance(found, CallResult), found
    return found


def test_every_member_of_a_result_is_kept_byte_for_byte() -> None:
    found = result(
        '{"resultType":"complete","content":[{"type":"text","text":"é","x":1.50}],"structuredContent":{"b":1e400,"a":'
        '123456789012345678901234567890},"isError":true,"_meta":{"com.x/y":1},"com.z":[1, 2]}'
    )
    assert found.content == '[{"type":"text","text":"é","x":1.50}]'.encode()
    assert found.structured == b'{"b":1e400,"a":123456789012345678901234567890}'
    assert found.is_error
    assert found.meta == b'"com.x/y":1'
    assert found.extra == b',"com.z":[1, 2]'


def test_the_servers_identity_is_taken_out_of_the_meta_and_nothing_else() -> None:
    found = result('{"content":[],"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"up"},"b":{"c":[]}}}')
    assert found.meta == b'"a":1,"b":{"c":[]}'


def test_an_escaped_spelling_does_not_smuggle_the_servers_identity_through() -> None:
    found = result('{"content":[],"_meta":{"io.modelcontextprotocol\\/server\\u0049nfo":{"name":"up"}}}')
    assert found.meta == b""


def test_nulls_where_a_member_may_be_absent_are_understood() -> None:
    found = result(
        '{"content":null,"isError":null,"_meta":null,"resultType":null,"structuredContent":null}', from_modern=False
    )
    assert found == CallResult()


def test_null_is_structured_content_since_2026() -> None:
    assert result('{"content":[],"structuredContent":null}').structured == b"null"


def test_input_required_reaches_a_modern_caller_whole() -> None:
    found = result('{"resultType":"input_required","inputRequests":{"a":{"method":"x"}},"requestState":"s"}')
    assert found.result_type == "input_required"
    assert found.extra == b',"inputRequests":{"a":{"method":"x"}},"requestState":"s"'


def test_input_required_is_a_clear_error_for_an_older_caller() -> None:
    found = result('{"resultType":"input_required","requestState":"s"}', for_modern=False)
    assert found.is_error
    assert found.failure is not None
    assert found.failure.code is ErrorCode.UPSTREAM_ERROR
    assert "input" in found.failure.message


@pytest.mark.parametrize("text", ["[]", "3", '{"content":{}}', '{"resultType":3}', "null"])
def test_a_result_that_is_none_is_named(text: str) -> None:
    assert isinstance(wire.result_of(msgspec.Raw(text.encode()), from_modern=False, for_modern=False), str)


def test_code_message_and_data_of_an_error_are_kept() -> None:
    error = wire.error_of(msgspec.Raw(b'{"code":-32042,"message":"go","data":{"url":"https://x","n":1.0}}'))
    assert error == RpcError(-32042, "go", b'{"url":"https://x","n":1.0}')


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nope", b'{"result":NaN}', b"\xff\xfe", b'{"id":1,"result":"\xff"}', b"[" * 5000, b'"x"'],
)
def test_a_body_that_is_no_message_is_a_sentence_not_an_exception(body: bytes) -> None:
    assert isinstance(wire.parse(body), str)


def test_line_breaks_between_tokens_are_taken_out_and_numbers_stay() -> None:
    (message,) = wire.parse(b'{"id":1,\r\n "result":{\n"a":1.0}}')
    assert bytes(message.result) == b'{"a":1.0}'


def test_a_byte_order_mark_and_an_array_of_messages_are_understood() -> None:
    messages = wire.parse(b'\xef\xbb\xbf[{"method":"a"},{"id":"x","result":{}}]')
    assert not isinstance(messages, str)
    assert [(each.is_request, each.is_response) for each in messages] == [(False, False), (False, True)]


def test_requests_and_answers_are_json() -> None:
    assert json.loads(wire.request(7, "tools/list", b'{"cursor":""}')) == {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/list",
        "params": {"cursor": ""},
    }
    assert json.loads(wire.notification("n")) == {"jsonrpc": "2.0", "method": "n"}
    assert json.loads(wire.answer(b'"a"', b"{}")) == {"jsonrpc": "2.0", "id": "a", "result": {}}
    assert json.loads(wire.refusal(b"1", -32601, 'no "x"'))["error"] == {"code": -32601, "message": 'no "x"'}
