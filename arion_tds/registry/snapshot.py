"""Everything that one scope holds, as an immutable value. Made by reduce, kept by catalog, shown by admin."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit
from arion_tds.registry.index import Index


class Owner(enum.Enum):
    """Who provides the tools of a namespace."""

    TOOLS = "tools"
    SOURCE = "source"
    SERVER = "server"


@dataclasses.dataclass(frozen=True, slots=True)
class Namespace:
    """`tools` by local name (an Index where tools own). `definition` is what a source or server was put as."""

    owner: Owner
    tools: Mapping[str, Tool]
    definition: OpenApiSource | McpServer | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """`published` finds a tool by the name that clients see. A qualified name is held at most once."""

    namespaces: Index[Namespace]
    toolkits: Mapping[str, Toolkit]
    published: Index[Tool]

    @property
    def count(self) -> int:
        """Tools of all namespaces."""
        return len(self.published)

    def find(self, qualified: str) -> Tool | None:
        """The tool of that qualified name, wherever its namespace ends."""
        return find(self.namespaces, qualified)


def find(namespaces: Mapping[str, Namespace], qualified: str) -> Tool | None:
    """The tool of that qualified name. Tried at each dot: `a.b.c` is `b.c` of `a`, or `c` of `a.b`."""
    dot = qualified.find(".")
    while dot >= 0:
        held = namespaces.get(qualified[:dot])
        if held is not None:
            tool = held.tools.get(qualified[dot + 1 :])
            if tool is not None:
                return tool
        dot = qualified.find(".", dot + 1)
    return None


EMPTY: Final = Snapshot(Index(), MappingProxyType({}), Index())
"""A scope that holds nothing."""
