"""A server's list, judged tool by tool: a bad tool costs only itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from arion_tds.backends.mcp import discovery
from arion_tds.backends.mcp.listing import Listing
from arion_tds.model.backend import McpBackend
from arion_tds.model.problem import Problem
from arion_tds.model.rbac import Permission, Rbac
from arion_tds.model.server import McpServer
from arion_tds.model.tool import Tool
from arion_tds.view import Entry

SERVER = McpServer(
    namespace="ns",
    description="d",
    url="http://up/mcp",
    rbac=Rbac(deny=False, permissions=(Permission("a", "b"),)),
    eager=True,
)
OBJECT = {"type": "object"}


def judged(*tools: Any) -> tuple[tuple[Tool, ...], tuple[Problem, ...]]:
    raw = tuple(each if isinstance(each, bytes) else json.dumps(each).encode() for each in tools)
    return discovery.tools(SERVER, Listing(raw))


def one(tool: dict[str, Any]) -> Tool:
    (found,), problems = judged(tool)
    assert problems == ()
    return found


def test_every_member_of_a_tool_is_kept() -> None:
    extra = {
        "title": "T",
        "annotations": {"readOnlyHint": True, "custom": 1},
        "_meta": {"k": "v"},
        "icons": [{"src": "data:,", "mimeType": "image/png"}],
        "execution": {"taskSupport": "optional"},
        "com.example": [1],
    }
    found = one({"name": "st", "description": "D", "inputSchema": OBJECT, "outputSchema": {"type": "array"}, **extra})
    assert found.qualified == "ns.st"
    assert found.description == "D"
    assert found.backend == McpBackend("http://up/mcp", "st")
    assert found.rbac == SERVER.rbac
    assert found.eager
    assert found.output_schema is not None
    assert found.output_schema.value() == {"type": "array"}
    assert json.loads(b"{" + found.extra[1:] + b"}") == extra


def test_a_schema_stays_the_servers_own_text() -> None:
    text = b'{"type": "object", "properties": {"n": {"maximum": 1.50, "multipleOf": 1e-3}}}'
    found = one_raw(b'{"name":"a","inputSchema":' + text + b"}")
    assert found.input_schema.text == text.replace(b" ", b"")


def one_raw(raw: bytes) -> Tool:
    (found,), _ = judged(raw)
    return found


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"name": "bad"}, "no inputSchema"),
        ({"name": "bad", "inputSchema": None}, "no inputSchema"),
        ({"name": "bad", "inputSchema": True}, "not a JSON object"),
        ({"name": "bad", "inputSchema": {"type": "string"}}, "of type string"),
        ({"name": "bad", "inputSchema": {"type": ["object", "null"]}}, "always an object"),
        (
            {"name": "bad", "inputSchema": {"type": "object", "properties": {"n": {"type": "int"}}}},
            "not valid JSON Schema",
        ),
        ({"name": "bad", "inputSchema": {"type": "object", "$ref": "http://169.254.169.254/x"}}, "not"),
        (
            {
                "name": "bad",
                "inputSchema": {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
            },
            "x-mcp-header",
        ),
        ({"name": "", "inputSchema": OBJECT}, "empty"),
        ({"name": 3, "inputSchema": OBJECT}, "string"),
        ({"inputSchema": OBJECT}, "string"),
        ({"name": "a b", "inputSchema": OBJECT}, "blank"),
        ({"name": "x" * 126, "inputSchema": OBJECT}, "longer"),
        ("x", "not an object"),
        ({"name": "good", "inputSchema": OBJECT, "title": "second"}, "more than once"),
        (b'{"name":"bad","inputSchema":{"type":"object"},"x":"\xff"}', "UTF-8"),
    ],
)
def test_a_bad_tool_is_left_out_by_name_and_its_neighbours_stand(bad: Any, why: str) -> None:
    good = {"name": "good", "inputSchema": OBJECT}
    found, problems = judged(good, bad, {"name": "also", "inputSchema": OBJECT})
    assert [tool.name for tool in found] == ["good", "also"]
    (problem,) = problems
    assert why in problem.why
    assert problem.why.endswith("left out")
    assert problem.where.startswith("ns")
    assert found[0].extra == b""


def test_a_root_without_a_type_is_an_object_and_alternatives_stay() -> None:
    """9. opentokenz/mcpx#28: one tool with a top-level oneOf must not hide all tools."""
    alternatives = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    found = one({"name": "alt", "inputSchema": alternatives})
    assert found.input_schema.value() == {"type": "object", **alternatives}


def test_nulls_where_the_schema_allows_absence_are_understood() -> None:
    found = one(
        {
            "name": "n",
            "description": None,
            "title": None,
            "annotations": None,
            "outputSchema": None,
            "icons": None,
            "_meta": None,
            "inputSchema": {"type": "object", "required": None, "properties": None},
        }
    )
    assert found.description == ""
    assert found.extra == b""
    assert found.input_schema.value() == OBJECT


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("outputSchema", {"type": "int"}),
        ("outputSchema", [1]),
        ("description", 3),
        ("title", 3),
        ("annotations", {"readOnlyHint": "yes"}),
        ("annotations", "x"),
        ("icons", [{"mimeType": "image/png"}]),
        ("icons", {}),
        ("_meta", 3),
        ("execution", []),
    ],
)
def test_a_member_that_would_poison_a_strict_client_costs_only_itself(member: str, value: object) -> None:
    (found,), (problem,) = judged({"name": "a", "inputSchema": OBJECT, member: value})
    assert member in problem.why
    assert "served without it" in problem.why
    definition = json.loads(Entry(found, "a").modern)
    assert definition == {"name": "a", "description": "", "inputSchema": OBJECT}


def test_what_is_listed_is_what_the_sdk_takes() -> None:
    found, _ = judged(
        {
            "name": "a",
            "inputSchema": OBJECT,
            "annotations": {"title": 3},
            "icons": [{}],
            "outputSchema": {"type": "array"},
        },
        {"name": "b", "inputSchema": {"anyOf": [{}]}, "_meta": "x"},
    )
    for version, modern in (("2025-11-25", False), ("2026-07-28", True)):
        definitions = [Entry(tool, tool.name) for tool in found]
        tools = [json.loads(each.modern if modern else each.legacy) for each in definitions]
        result: dict[str, Any] = {"tools": tools}
        if modern:
            result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        validate_server_result("tools/list", version, result)
        result["tools"][0]["icons"] = [{}]
        with pytest.raises(ValidationError):  # the oracle does look
            validate_server_result("tools/list", version, result)


def test_names_that_some_clients_refuse_are_served_with_a_warning() -> None:
    (found,), (problem,) = judged({"name": "a/b", "inputSchema": OBJECT})
    assert found.name == "a/b"
    assert "refuse" in problem.why


@pytest.mark.parametrize(
    ("annotations", "idempotent"),
    [
        ({"idempotentHint": True}, True),
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": False, "idempotentHint": False}, False),
        ({"destructiveHint": False}, False),
        (None, False),
    ],
)
def test_annotations_say_whether_a_call_may_be_repeated(annotations: object, *, idempotent: bool) -> None:
    assert discovery.is_idempotent(one({"name": "a", "inputSchema": OBJECT, "annotations": annotations})) is idempotent


async def test_judging_a_long_list_lets_others_run() -> None:
    raw = tuple(b'{"name":"t%d","inputSchema":{"type":"object"}}' % n for n in range(250))
    found, problems = await discovery.discover(SERVER, Listing(raw))
    assert (len(found), problems) == (250, ())


def test_equal_lists_have_equal_digests() -> None:
    assert Listing((b"ab", b"c")).digest == Listing((b"ab", b"c")).digest
    assert Listing((b"ab", b"c")).digest != Listing((b"a", b"bc")).digest
