"""Malformed JSON-RPC: an error that says so, never a fault of ours, never a call."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from hostile_wire import Target, call, request, target
from hypothesis import given, settings
from hypothesis import strategies as st

from arion_tds.model.result import RpcError
from arion_tds.server import jsonrpc, search
from arion_tds.server.shape import too_deep

DEEP = 200_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Target]:
    async with target() as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def here(shared: Target) -> AsyncIterator[Target]:
    shared.asked.clear()
    yield shared
    await shared.works()


def message(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", **members}).encode()


BODIES: dict[str, bytes] = {
    "empty": b"",
    "blank": b"   ",
    "no-json": b"{",
    "text": b'"tools/call"',
    "number": b"1",
    "null": b"null",
    "batch": b"[" + call() + b"," + call() + b"]",
    "two-messages": call() + call(),
    "trailing": call() + b"x",
    "byte-order-mark": b"\xef\xbb\xbf" + call(),
    "utf-16": call().decode().encode("utf-16"),
    "not-utf-8": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\xff\xfe"}}',
    "lone-surrogate": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
    "nul-in-name": message(params={"name": "a.marker\0"}),
    "name-endless": message(params={"name": "a" * 1_000_000}),
    "name-list": message(params={"name": ["a.marker"]}),
    "arguments-list": message(params={"name": "a.marker", "arguments": []}),
    "arguments-text": message(params={"name": "a.marker", "arguments": "{}"}),
    "arguments-deep": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a.marker","arguments":{"a":'
    + b"[" * DEEP + b"]" * DEEP + b"}}}",
    "objects-deep": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "params-deep": b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "brackets-unclosed": b"[" * 1_000_000,
    "quotes": b'"' * 1_000_001,
    "backslashes": b'{"a":"' + b"\\" * 1_000_001,
    "number-endless": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a.marker","arguments":{"n":'
    + b"9" * 1_000_000 + b"}}}",
    "exponent-endless": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a.marker","arguments":{"n":'
    + b"1e" + b"9" * 1000 + b"}}}",
    "id-object": message(id={"a": 1}),
    "id-float": message(id=1.5),
    "id-true": message(id=True),
    "method-endless": message(method="x" * 1_000_000),
    "method-number": message(method=7),
    "version-1": b'{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"a.marker"}}',
    "keys-many": json.dumps({f"k{number}": 1 for number in range(50_000)}).encode(),
    "response": b'{"jsonrpc":"2.0","id":1,"result":{}}',
    "cursor-forged": b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"bjphLnggOiBET1M"}}',
    "cursor-object": b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":{}}}',
    "infinity": call().replace(b'"arguments": {}', b'"arguments": {"n": Infinity}'),
    "dunder": message(params={"name": "__class__", "arguments": {"__proto__": {}, "constructor": 1}}),
}  # fmt: skip


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", BODIES)
async def test_a_bad_message_is_an_error_and_no_call(here: Target, name: str) -> None:
    answer = await here.throw(request(BODIES[name]))
    status = int(answer.split(b" ", 2)[1])
    assert here.asked == []
    assert status in {200, 202, 400, 404}, answer[:300]
    if status == 200:
        assert b'"error"' in answer
    assert len(answer) < 5000, "what was sent is not sent back"
    assert b"Traceback" not in answer


@pytest.mark.asyncio(loop_scope="module")
async def test_a_member_that_comes_twice_counts_once(here: Target) -> None:
    twice = b'{"jsonrpc":"2.0","id":1,"method":"nothing","method":"tools/call","params":{"name":"a.marker"}}'
    assert (await here.throw(request(twice))).startswith(b"HTTP/1.1 200")
    assert here.asked == ["/a/marker"]


@given(st.binary(max_size=400))
@settings(max_examples=300)
def test_no_bytes_make_the_parser_fail(body: bytes) -> None:
    too_deep(body, 8)
    assert isinstance(jsonrpc.parse(body), jsonrpc.Message)
    assert search.parse(body, 10)


@given(st.integers(0, 200), st.binary(min_size=1, max_size=4), st.sampled_from([call(), b'{"query":"x","limit":3}']))
@settings(max_examples=300)
def test_no_mutation_makes_the_parser_fail(at: int, bytes_: bytes, base: bytes) -> None:
    mutated = base[:at] + bytes_ + base[at + len(bytes_) :]
    found = jsonrpc.parse(mutated)
    if isinstance(found, jsonrpc.Request):
        assert not isinstance(jsonrpc.members(jsonrpc.member(found.params, "arguments")), RpcError)
    search.parse(mutated, 10)
