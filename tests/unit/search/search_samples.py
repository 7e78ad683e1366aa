"""Tools to be found, written briefly."""

from __future__ import annotations

from arion_tds import schema
from arion_tds.model.backend import McpBackend
from arion_tds.model.tool import Tool
from arion_tds.search import tokenize
from arion_tds.search.index import SearchIndex


def tool(qualified: str, description: str = "", **properties: str) -> Tool:
    """A tool whose parameters have these descriptions."""
    namespace, _, name = qualified.partition(".")
    input_schema = schema.of(
        {"type": "object", "properties": {key: {"description": properties[key]} for key in properties}}
    )
    assert isinstance(input_schema, schema.Schema)
    return Tool(
        namespace=namespace,
        name=name,
        description=description,
        input_schema=input_schema,
        backend=McpBackend("", name),
    )


def index(*tools: Tool) -> SearchIndex:
    """The tools, indexed."""
    made = SearchIndex()
    for each in tools:
        made.add(each.qualified, each.namespace, tokenize.document(each), policy=each.rbac)
    return made
