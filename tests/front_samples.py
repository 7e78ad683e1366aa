"""Small tools and Views for the front's unit tests."""

from __future__ import annotations

from typing import Any

from arion_tds import schema
from arion_tds.model.backend import McpBackend
from arion_tds.model.names import Naming
from arion_tds.model.rbac import Permission, Rbac
from arion_tds.model.tool import Tool
from arion_tds.schema import Schema
from arion_tds.view import Published, View, entry

PLAIN = b'{"type":"object"}'
ADMINS = Rbac(deny=False, permissions=(Permission("role", "admin"),))


def compiled(text: bytes) -> Schema:
    found = schema.parse(text)
    assert isinstance(found, Schema), found
    return found


def tool(
    name: str, *, namespace: str = "shop", inputs: bytes = PLAIN, output: bytes | None = None, **more: Any
) -> Tool:
    return Tool(
        namespace=namespace,
        name=name,
        description=more.pop("description", f"does {name}"),
        input_schema=compiled(inputs),
        output_schema=None if output is None else compiled(output),
        backend=McpBackend("http://up", name),
        **more,
    )


def published(*tools: Tool, naming: Naming = Naming.QUALIFIED) -> Published:
    place = Published("shop/main", naming)
    put(place, *tools, naming=naming)
    return place


def put(place: Published, *come: Tool, gone: tuple[Tool, ...] = (), naming: Naming = Naming.QUALIFIED) -> View:
    place.publish(place.view.replace(gone, [entry(one, naming) for one in come], {}, eager_only=False))
    return place.view
