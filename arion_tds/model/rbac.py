"""Who may use a tool: the ToolRbac message as a value. Judged by auth.rbac, carried by tools, sources and servers."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Permission:
    """One matcher: a claim (`header` False) or JOSE header (`header` True) `field` must hold `value`."""

    field: str
    value: str
    header: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Rbac:
    """ALLOW (`deny` False): some permission must match. DENY: none may."""

    deny: bool
    permissions: tuple[Permission, ...]
