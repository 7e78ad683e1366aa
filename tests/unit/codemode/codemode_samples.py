"""Tools made of schemas, and a host that a test fills."""

from __future__ import annotations

from typing import Any

from arion_tds import schema
from arion_tds.codemode.bridge import Page
from arion_tds.model.backend import McpBackend
from arion_tds.model.result import CallResult, RpcError, text_block
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit
from arion_tds.schema import Schema


def compiled(value: dict[str, Any]) -> Schema:
    found = schema.of(value)
    assert isinstance(found, Schema), found
    return found


def tool(
    qualified: str = "weather.get",
    inputs: dict[str, Any] | None = None,
    outputs: dict[str, Any] | None = None,
    text: str = "A tool",
) -> Tool:
    namespace, _, name = qualified.partition(".")
    return Tool(
        namespace=namespace,
        name=name,
        description=text,
        input_schema=compiled({"type": "object", "additionalProperties": False} if inputs is None else inputs),
        backend=McpBackend("up", name),
        output_schema=None if outputs is None else compiled(outputs),
    )


class FakeHost:
    """A Host over a list of tools; search finds what has a word of the query in its name. Calls give `answer`."""

    def __init__(self, *tools: Tool, hidden: tuple[str, ...] = (), kits: tuple[Toolkit, ...] = ()) -> None:
        self.tools = {one.qualified: one for one in tools}
        self.hidden = hidden
        self.kits = {kit.name: kit for kit in kits}
        self.answer: CallResult | RpcError = CallResult(content=text_block("done"))
        self.called: list[tuple[str, dict[str, Any]]] = []

    def namespaces(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for one in self.tools.values():
            found[one.namespace] = found.get(one.namespace, 0) + 1
        return found

    def toolkits(self) -> dict[str, Toolkit]:
        return self.kits

    def find(self, name: str) -> Tool | None:
        return self.tools.get(name)

    def hides(self, name: str) -> bool:
        return name in self.hidden

    async def search(self, query: str, namespaces: tuple[str, ...] | None, limit: int, offset: int) -> Page:
        words = query.split()
        found = [
            (one, 1.0)
            for one in self.tools.values()
            if (namespaces is None or one.namespace in namespaces)
            and (not words or any(word in one.qualified for word in words))
        ]
        return Page(found[offset : offset + limit], len(found))

    async def call(self, tool: Tool, arguments: dict[str, Any]) -> CallResult | RpcError:
        self.called.append((tool.qualified, arguments))
        return self.answer
