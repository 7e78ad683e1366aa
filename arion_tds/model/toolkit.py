"""A Toolkit as a value: a named subset of tools with instructions, for code mode."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """`tools` are qualified names; they need not exist (yet)."""

    name: str
    description: str
    instructions: str
    tools: tuple[str, ...]
