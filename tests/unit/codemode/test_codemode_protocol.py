"""Lines from a sandbox are judged before they are believed."""

from __future__ import annotations

import json

import pytest

from arion_tds.codemode import protocol
from arion_tds.codemode.protocol import Call, Done, Log, Ready


def test_frames_are_read() -> None:
    assert protocol.read(b'{"t":"ready","version":1}') == Ready(1)
    assert protocol.read(b'{"t":"log","text":"hi"}') == Log("hi")
    call = protocol.read(b'{"t":"call","id":3,"op":"tool","args":{"name":"a.b","args":{"n":9007199254740993}}}')
    assert isinstance(call, Call)
    assert (call.id, call.op, bytes(call.args)) == (3, "tool", b'{"name":"a.b","args":{"n":9007199254740993}}')
    done = protocol.read(b'{"t":"done","value":[1],"undefined":false,"calls":2}')
    assert isinstance(done, Done)
    assert (bytes(done.value), done.calls) == (b"[1]", 2)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"Uncaught error",
        b"{}",
        b'{"t":"other"}',
        b'{"t":"run"}',
        b'{"t":"done"}',
        b'{"t":"call","id":1,"op":"shell","args":{}}',
        b'{"t":"call","id":0,"op":"tool","args":{}}',
        b'{"t":"call","id":1e400,"op":"tool","args":{}}',
        b'{"t":"call","id":99999999999999999999,"op":"tool","args":{}}',
        b'{"t":"call","id":"1","op":"tool","args":{}}',
        b'{"t":"call","id":1,"op":"tool","args":',
        b'{"t":"log","text":7}',
        b'{"t":"log","text":"\xff"}',
        b'{"t":"done","value":1,"calls":-1}',
        b'{"t":"error","kind":"fatal","name":"","message":""}',
        b'{"t":"error","kind":"runtime","name":"' + b"n" * 400 + b'","message":""}',
        b'{"t":"done","value":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_is_no_frame_is_a_sentence(line: bytes) -> None:
    found = protocol.read(line)
    assert isinstance(found, str)
    assert found.startswith("not a frame")


def test_answers_are_one_line_whatever_is_in_them() -> None:
    for line in (
        protocol.value(1, b'{\n  "a": "x\\ny"\r\n}'),
        protocol.text(2, "two\nlines\u2028"),
        protocol.error(3, "upstream_error", "a\nb", retryable=True, status=503),
    ):
        assert b"\n" not in line
        assert b"\r" not in line
    assert json.loads(protocol.value(1, b'{\n  "a": "x\\ny"\r\n}')) == {"t": "ret", "id": 1, "value": {"a": "x\ny"}}
    assert json.loads(protocol.error(3, "c", "m", status=503))["error"] == {
        "code": "c",
        "message": "m",
        "retryable": False,
        "status": 503,
    }


def test_a_program_is_told_of_so_many_namespaces_at_most() -> None:
    names = [f"n{number}" for number in range(protocol.MAX_NAMESPACES + 5)]
    line = protocol.run(["data:,"], max_output=1, max_argument=2, namespaces=names)
    assert len(json.loads(line)["namespaces"]) == protocol.MAX_NAMESPACES
