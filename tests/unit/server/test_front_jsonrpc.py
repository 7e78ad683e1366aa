"""Bytes of a POST become one message, or the fault to answer with."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arion_tds.server import jsonrpc
from arion_tds.server.jsonrpc import Fault, Notification, Request, Response


def test_a_request_keeps_the_bytes_of_its_id_and_params() -> None:
    found = jsonrpc.parse(b'{"jsonrpc":"2.0","id":"7\\u0041","method":"tools/call","params":{"n": [1,  2.50]}}')
    assert isinstance(found, Request)
    assert found.id == b'"7\\u0041"'
    assert found.method == "tools/call"
    assert bytes(found.params["n"]) == b"[1,  2.50]"


def test_a_message_without_an_id_is_a_notification() -> None:
    found = jsonrpc.parse(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert found == Notification("notifications/initialized", {})


@pytest.mark.parametrize("member", [b'"result":{}', b'"error":{"code":1,"message":"x"}'])
def test_a_posted_answer_is_recognised(member: bytes) -> None:
    assert isinstance(jsonrpc.parse(b'{"jsonrpc":"2.0","id":1,' + member + b"}"), Response)


@pytest.mark.parametrize(
    ("body", "identity", "code", "word"),
    [
        (b"", b"null", -32700, "JSON"),
        (b"{", b"null", -32700, "JSON"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":nope}}', b"null", -32700, "JSON"),
        (b"\xff\xfe{", b"null", -32700, "JSON"),
        (b'{"id":1} trailing', b"null", -32700, "JSON"),
        (b"[" * 100_000, b"null", -32600, "batches"),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":' + b"[" * 100_000, b"null", -32700, "JSON"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b"null", -32600, "batches"),
        (b'"ping"', b"null", -32600, "object"),
        (b'{"jsonrpc":"2.0","id":4}', b"4", -32600, "method"),
        (b'{"jsonrpc":"2.0","id":4,"method":5}', b"4", -32600, "method"),
        (b'{"jsonrpc":"1.0","id":4,"method":"ping"}', b"4", -32600, "2.0"),
        (b'{"jsonrpc":2,"id":4,"method":"ping"}', b"4", -32600, "2.0"),
        (b'{"id":4,"method":"ping"}', b"4", -32600, "2.0"),
        (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":[1]}', b"4", -32602, "params"),
        (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":null}', b"4", -32602, "params"),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b"null", -32600, "id"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', b"null", -32600, "id"),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', b"null", -32600, "id"),
        (b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}', b"null", -32600, "id"),
    ],
)
def test_what_is_not_a_message_is_a_fault_that_says_why(body: bytes, identity: bytes, code: int, word: str) -> None:
    found = jsonrpc.parse(body)
    assert isinstance(found, Fault)
    assert (found.id, found.code) == (identity, code)
    assert word in found.message


def test_answers_are_json_with_the_id_as_it_came() -> None:
    assert json.loads(jsonrpc.result(b'"a"', b'{"x":1}')) == {"jsonrpc": "2.0", "id": "a", "result": {"x": 1}}
    assert json.loads(jsonrpc.error(b"9007199254740993", -32602, 'say "why"', b"[1]")) == {
        "jsonrpc": "2.0",
        "id": 9007199254740993,
        "error": {"code": -32602, "message": 'say "why"', "data": [1]},
    }
    assert json.loads(jsonrpc.notification("n", b'{"a":1}')) == {"jsonrpc": "2.0", "method": "n", "params": {"a": 1}}


@given(
    st.binary(max_size=60)
    | st.text(alphabet='{}[]":,0123456789.eE-+tfnul jsonrpcidmethod', max_size=80).map(str.encode)
)
def test_no_bytes_raise(body: bytes) -> None:
    assert isinstance(jsonrpc.parse(body), Request | Notification | Response | Fault)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.integers() | st.text(max_size=12).filter(lambda text: text.isprintable()),
    st.dictionaries(st.text(max_size=5), _json, max_size=3),
)
def test_any_request_that_json_can_write_is_read(identity: bytes, params: dict[str, Any]) -> None:
    found = jsonrpc.parse(json.dumps({"jsonrpc": "2.0", "id": identity, "method": "m", "params": params}).encode())
    assert isinstance(found, Request)
    assert json.loads(found.id) == identity
    assert {key: json.loads(bytes(value)) for key, value in found.params.items()} == params
