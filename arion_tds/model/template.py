"""`{{a.b}}` templates over a call's arguments, compiled once when a tool arrives.

In: template text. Out: `Template` (literal and variable parts) or a sentence that says why it does not compile.
Called by decode (compile) and transcode (render).
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Final

import msgspec

MISSING: Final = object()
"""What `lookup` returns for a path that leads nowhere (None is a value: JSON null)."""

CACHED: Final = 2048
CACHED_TEXT: Final = 512
"""Compiled texts that are kept, and the longest of them in characters."""

_VARIABLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_QUOTE = re.compile(r'\\.|"', re.DOTALL)  # an escape is taken whole, so an escaped quote is not one
_PATH = re.compile(r"[^\s.{}]+(?:\.[^\s.{}]+)*\Z")

_decode = msgspec.json.Decoder().decode


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
    return _again(text) if len(text) <= CACHED_TEXT else _parse(text)


def _parse(text: str) -> Template | str:
    parts = _split(text)
    if isinstance(parts, str):
        return parts
    for part in parts:
        if isinstance(part, str) and "}}" in part:
            return _unbalanced(part)
    return Template(tuple(parts))


def parse_body(text: str) -> Template | str:
    """A Template whose `json` tells whether the text is JSON, with `quoted` marks then, or why it does not compile.

    It is JSON if it parses with every variable inside quotes replaced by `x` and every other one by `null`.
    Unlike in `parse`, `}}` alone is literal text: JSON objects end so.
    """
    return _body_again(text) if len(text) <= CACHED_TEXT else _parse_body(text)


def _parse_body(text: str) -> Template | str:
    parts = _split(text)
    if isinstance(parts, str):
        return parts
    marked = _mark(parts)
    sample = "".join(part if isinstance(part, str) else "x" if part.quoted else "null" for part in marked)
    try:
        _decode(sample)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return Template(tuple(parts))
    return Template(tuple(marked), json=True)


# The tools of one service repeat their texts, and every tool of a catalog passes here.
_again = functools.lru_cache(CACHED)(_parse)
_body_again = functools.lru_cache(CACHED)(_parse_body)


def _split(text: str) -> list[str | Variable] | str:
    parts: list[str | Variable] = []
    at = 0
    for found in _VARIABLE.finditer(text):
        literal = text[at : found.start()]
        path = found.group(1).strip()
        if not _PATH.match(path):
            return f"{{{{{_shorten(found.group(1))}}}}} is not a dot path of arguments"
        if literal:
            parts.append(literal)
        parts.append(Variable(tuple(path.split("."))))
        at = found.end()
    rest = text[at:]
    if "{{" in rest:
        return _unbalanced(rest[rest.index("{{") :])
    if rest:
        parts.append(rest)
    return parts


def _mark(parts: list[str | Variable]) -> list[str | Variable]:
    """The parts with `quoted` set on the variables that stand between a quote and the next unescaped one."""
    marked: list[str | Variable] = []
    inside = False
    for part in parts:
        if isinstance(part, str):
            inside ^= _QUOTE.findall(part).count('"') % 2 == 1
            marked.append(part)
        else:
            marked.append(Variable(part.path, quoted=inside))
    return marked


def _unbalanced(near: str) -> str:
    return f"unbalanced braces near {_shorten(near.strip())!r}"


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


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
