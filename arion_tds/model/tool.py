"""A tool as the registry holds it: decoded, validated, immutable."""

from __future__ import annotations

import dataclasses

from arion_tds.model import names
from arion_tds.model.backend import Backend
from arion_tds.model.names import Naming
from arion_tds.model.rbac import Rbac
from arion_tds.schema import Schema


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One callable tool.

    `extra` holds further members of its MCP definition as compact JSON without the braces and with a leading comma
    (`,"title":"…","annotations":{…}`), or nothing: what an upstream or a document said is passed on untouched.
    `embedding` is packed float32, little-endian. `qualified` is `namespace.name`, the resource name: whoever has that
    string gives it, so that it is held once.
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
    qualified: str = dataclasses.field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        qualified = names.qualified(self.namespace, self.name)
        if self.qualified != qualified:
            object.__setattr__(self, "qualified", qualified)

    def published(self, naming: Naming) -> str:
        """The name that clients of a listener see."""
        if naming is Naming.QUALIFIED:
            return self.qualified
        return names.published(naming, self.namespace, self.name)
