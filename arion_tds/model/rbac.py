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
    _hash: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Policies are keys of dicts that every publication goes through, and a hash of texts is not cheap.
        object.__setattr__(self, "_hash", hash((self.deny, self.permissions)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Rbac], tuple[bool, tuple[Permission, ...]]]:
        return Rbac, (self.deny, self.permissions)  # hashes of texts differ from process to process
