"""An OpenApiToolSource as a value: a document and how to turn it into tools."""

from __future__ import annotations

import dataclasses

from arion_tds.model.policy import DEFAULT_POLICY, HttpPolicy
from arion_tds.model.rbac import Rbac


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OpenApiSource:
    """`document` is JSON or YAML bytes as delivered. Tools derived from it stand under `namespace`."""

    namespace: str
    document: bytes
    cluster: str
    policy: HttpPolicy = DEFAULT_POLICY
    rbac: Rbac | None = None
    eager: bool = False
    path_prefix: str | None = None
    skip_unsupported: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def expanded(self) -> OpenApiSource:
        """The same without its document, which nobody reads once there are tools: those of large APIs are megabytes."""
        return dataclasses.replace(self, document=b"")
