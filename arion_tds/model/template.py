"""`{{a.b}}` templates over a call's arguments, compiled once when a tool arrives.

In: template text. Out: `Template` (literal and variable parts) or a sentence that says why it does not compile.
Called by decode (compile) and transcode (render).
"""

from __future__ import annotations

import dataclasses
import re
from typing import Final

MISSING: Final = object()
"""What `lookup` returns for a path that leads nowhere (None is a value: JSON null)."""

_VARIABLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_PATH = re.compile(r"[^\s.{}]+(?:\.[^\s.{}]+)*\Z")


@dataclasses.dataclass(frozen=True, slots=True)
class Variable:
    """A place to fill. `path` is the dot path, split; `quoted` tells that it stands inside a JSON string."""

    path: tuple[str, ...]
    quoted: bool = False

    @property
    def name(self) -> str:
        """The dot path as it was written."""
        return ".".join(self.path)


@dataclasses.dataclass(frozen=True, slots=True)
class Template:
    """Literal text and variables in order. `json` tells that the text is JSON around its variables."""

    parts: tuple[str | Variable, ...]
    json: bool = False

    def variables(self) -> tuple[Variable, ...]:
        """The places to fill, in order."""
        return tuple(part for part in self.parts if isinstance(part, Variable))


def parse(text: str) -> Template | str:
    """A Template (with `json` False and no variable `quoted`), or why the text does not compile."""
    parts: list[str | Variable] = []
    at = 0
    for found in _VARIABLE.finditer(text):
        literal = text[at : found.start()]
        path = found.group(1).strip()
        if not _PATH.match(path):
            return f"{{{{{found.group(1)}}}}} is not a dot path of arguments"
        if literal:
            parts.append(literal)
        parts.append(Variable(tuple(path.split("."))))
        at = found.end()
    if text[at:]:
        parts.append(text[at:])
    for part in parts:
        if isinstance(part, str) and ("{{" in part or "}}" in part):
            return f"unbalanced braces near {part.strip()[:40]!r}"
    return Template(tuple(parts))


def lookup(arguments: object, path: tuple[str, ...]) -> object:
    """The value at a dot path (object keys, and array positions as digits), or MISSING."""
    value = arguments
    for step in path:
        if isinstance(value, dict):
            if step not in value:
                return MISSING
            value = value[step]
        elif isinstance(value, list) and step.isascii() and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value
