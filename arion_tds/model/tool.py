"""A tool as the registry holds it: decoded, validated, immutable."""

from __future__ import annotations

import dataclasses

from arion_tds.model.backend import Backend
from arion_tds.model.rbac import Rbac
from arion_tds.schema import Schema


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One callable tool.

    `extra` holds further members of its MCP definition as compact JSON without the braces and with a leading comma
    (`,"title":"…","annotations":{…}`), or nothing: what an upstream or a document said is passed on untouched.
    `embedding` is packed float32, little-endian.
    """

    namespace: str
    name: str
    description: str
    input_schema: Schema
    backend: Backend
    output_schema: Schema | None = None
    rbac: Rbac | None = None
    embedding: bytes | None = None
    eager: bool = False
    extra: bytes = b""

    @property
    def qualified(self) -> str:
        """`namespace.name`: the resource name."""
        return f"{self.namespace}.{self.name}"
