"""What a program's host calls are answered with."""

from __future__ import annotations

import json
from typing import Any

import pytest
from codemode_samples import FakeHost, tool

from arion_tds.codemode import bridge
from arion_tds.codemode.bridge import Bridge
from arion_tds.codemode.protocol import Op
from arion_tds.model.result import CallFailure, CallResult, ErrorCode, RpcError, failed, text_block
from arion_tds.model.toolkit import Toolkit


async def ask(host: FakeHost, op: Op, args: object) -> Any:
    """The answer's value."""
    found = json.loads(await Bridge(host).answer(1, op, json.dumps(args).encode()))
    assert "error" not in found, found
    return found.get("value", found.get("text"))


async def refused(host: FakeHost, op: Op, args: object) -> tuple[str, str]:
    """The error's code and message."""
    found = json.loads(await Bridge(host).answer(1, op, json.dumps(args).encode()))["error"]
    return found["code"], found["message"]


async def test_pages_of_a_list_end_and_miss_nothing() -> None:
    host = FakeHost(*[tool(f"a.t{number}") for number in range(7)])
    seen, cursor = [], None
    while True:
        page = await ask(host, "list", {"options": {"limit": 3, **({"cursor": cursor} if cursor else {})}})
        seen += [one["name"] for one in page["tools"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    assert seen == [f"a.t{number}" for number in range(7)]
    assert page["total"] == 7


async def test_the_first_results_of_a_search_carry_their_signatures() -> None:
    host = FakeHost(*[tool(f"a.find{number}") for number in range(7)])
    page = await ask(host, "search", {"query": "find"})
    assert ["signature" in one for one in page["tools"]] == [True] * bridge.SIGNED + [False] * 2
    assert page["tools"][0]["score"] == 1.0


async def test_a_description_is_the_whole_tool() -> None:
    host = FakeHost(tool("a.b", {"type": "object"}, {"type": "string"}))
    assert await ask(host, "describe", {"name": "a.b"}) == {
        "name": "a.b",
        "namespace": "a",
        "description": "A tool",
        "call": "tools.a.b",
        "signature": "tools.a.b(): Promise<string>",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "string"},
    }


async def test_a_tool_is_called_by_any_spelling_of_its_name() -> None:
    host = FakeHost(tool("my-ns.list/all"))
    for name in ("my-ns.list/all", "my_ns.list_all", "my-ns.list_all"):
        await ask(host, "tool", {"name": name, "args": {"a": 1}})
    assert host.called == [("my-ns.list/all", {"a": 1})] * 3


async def test_an_unknown_tool_is_answered_with_what_may_have_been_meant() -> None:
    host = FakeHost(tool("weather.forecast"))
    code, message = await refused(host, "tool", {"name": "forecast.weather", "args": {}})
    assert code == "unknown_tool"
    assert "did you mean weather.forecast?" in message
    code, message = await refused(FakeHost(), "describe", {"name": "__proto__"})
    assert (code, "catalog.tools.search" in message) == ("unknown_tool", True)


@pytest.mark.parametrize(
    ("op", "args", "why"),
    [
        ("tool", {"name": "a.b", "args": [1]}, "takes one object of arguments, not a list"),
        ("tool", {"name": "a.b", "args": "x"}, "takes one object of arguments, not str 'x'"),
        ("tool", {"name": "a.b", "args": None}, "takes one object"),
        ("tool", {"args": {}}, "usage: tools."),
        ("tool", 7, "usage: tools."),
        ("search", {"query": 7}, "usage: catalog.tools.search"),
        ("search", {"query": "a", "options": {"limt": 3}}, "usage: catalog.tools.search"),
        ("search", {"query": "a", "options": {"limit": 0}}, "limit is 0"),
        ("list", {"options": {"cursor": "x"}}, "nextCursor"),
        ("describe", {}, "usage: catalog.tools.describe"),
        ("toolkit", {"name": None}, "usage: catalog.toolkits.get"),
    ],
)
async def test_wrong_arguments_are_answered_with_the_usage(op: Op, args: object, why: str) -> None:
    code, message = await refused(FakeHost(tool("a.b")), op, args)
    assert code == "invalid_arguments"
    assert why in message


async def test_arguments_nested_beyond_reason_are_refused() -> None:
    deep = b'{"name":"a.b","args":{"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}}"
    found = json.loads(await Bridge(FakeHost(tool("a.b"))).answer(1, "tool", deep))
    assert found["error"]["code"] == "invalid_arguments"


async def test_a_namespace_is_found_as_an_identifier_too_and_a_wrong_one_is_said() -> None:
    host = FakeHost(tool("my-ns.x"), tool("other.y"))
    page = await ask(host, "list", {"options": {"namespace": "my_ns"}})
    assert [one["name"] for one in page["tools"]] == ["my-ns.x"]
    assert (await refused(host, "list", {"options": {"namespace": "no"}}))[0] == "unknown_namespace"


async def test_a_toolkit_leaves_out_what_the_caller_may_not_see() -> None:
    kit = Toolkit(name="k", description="d", instructions="i", tools=("a.b", "a.secret", "a.later"))
    host = FakeHost(tool("a.b"), hidden=("a.secret",), kits=(kit,))
    found = await ask(host, "toolkit", {"name": "k"})
    assert [(one["name"], one.get("pending", False)) for one in found["tools"]] == [("a.b", False), ("a.later", True)]
    assert (await refused(host, "toolkit", {"name": "z"}))[1] == "no toolkit 'z'; there are: k"


@pytest.mark.parametrize(
    ("result", "given"),
    [
        (CallResult(content=text_block("t"), structured=b'{"a":1}'), {"value": {"a": 1}}),
        (CallResult(content=text_block('{"a":1}')), {"text": '{"a":1}'}),
        (CallResult(content=b"[]"), {"value": []}),
        (CallResult(content=b'[{"type":"image","data":""}]'), {"value": [{"type": "image", "data": ""}]}),
        (CallResult(content=b'[{"type":"text","text":"a"},{"type":"text","text":"b"}]'), None),
    ],
)
def test_a_result_is_its_data(result: CallResult, given: dict[str, Any] | None) -> None:
    found = json.loads(bridge.returned(1, result))
    del found["t"], found["id"]
    assert found == (given or {"value": json.loads(result.content)})


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (
            failed(CallFailure(ErrorCode.UPSTREAM_ERROR, "503 it said", retryable=True, status=503)),
            {"code": "upstream_error", "message": "503 it said", "retryable": True, "status": 503},
        ),
        (
            CallResult(content=text_block("no such city"), is_error=True),
            {"code": "tool_error", "message": "no such city", "retryable": False},
        ),
        (
            RpcError(-32602, "Unknown tool"),
            {"code": "upstream_error", "message": "Unknown tool (JSON-RPC error -32602)", "retryable": False},
        ),
    ],
)
def test_a_failure_is_an_error(result: CallResult | RpcError, error: dict[str, Any]) -> None:
    assert json.loads(bridge.returned(1, result))["error"] == error


def test_a_tool_that_wants_to_ask_the_user_is_an_error() -> None:
    found = json.loads(bridge.returned(1, CallResult(result_type="input_required")))
    assert found["error"]["code"] == "input_required"
