"""Names of derived tools, and of their arguments.

In: operationIds, methods and paths. Out: a tool name per operation. Called by expand.

A name is a function of its own operation: rules, toolkits and caches are keyed by it, so it must not change because a
neighbour came or moved. A legal operationId is the name. A `/` in it (all of GitHub) becomes `_`. Anything else that is
lost, and anything too long, costs a hash of the whole id. Only where two operations would end with the same name do
neighbours matter: the one whose operationId is that name keeps it, the others get their hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from arion_tds.model.names import MAX_QUALIFIED

_ILLEGAL = re.compile(r"[^A-Za-z0-9_.\-]+")
_SHORT_HASH: Final = 6
_LEAST: Final = 24
"""Characters that a name gets in any case, however long its namespace is."""


def name_limit(namespace: str, max_name_chars: int) -> int:
    """Characters left for a tool's own name, so that `namespace.name` and `namespace__name` both fit."""
    left = max_name_chars - len(namespace) - 2
    return left if left >= _LEAST else max(8, MAX_QUALIFIED - len(namespace) - 2)


def candidate(operation_id: str | None, method: str, path: str, limit: int) -> str:
    """The name of an operation, looked at alone."""
    if operation_id:
        plain = operation_id.strip("/").replace("/", "_") if "//" not in operation_id else operation_id
        name = _ILLEGAL.sub("_", plain).strip("_") if _ILLEGAL.search(plain) else plain
        lost = name != plain
    else:
        name = f"{method.lower()}_{_ILLEGAL.sub('_', path).strip('_')}".rstrip("_")
        lost = not path.isascii()
    if lost or not name or len(name) > limit:
        return hashed(name, operation_id or f"{method} {path}", limit)
    return name


def hashed(name: str, source: str, limit: int) -> str:
    """The name with a short hash of what it was made of, within the limit."""
    digest = hashlib.sha1(source.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:_SHORT_HASH]
    kept = name[: limit - _SHORT_HASH - 1].rstrip("_.-")
    return f"{kept}_{digest}" if kept else f"op_{digest}"


def assign(operations: Sequence[tuple[str | None, str, str]], limit: int) -> list[str]:
    """A name for each (operationId, method, path), in order. Names of different operations differ.

    Operations that share an operationId are the caller's problem: they come out with the same name.
    """
    candidates = [candidate(*operation, limit) for operation in operations]
    groups: dict[str, list[int]] = {}
    for index, name in enumerate(candidates):
        groups.setdefault(name, []).append(index)
    for name, members in groups.items():
        sources = {_source(operations[index]) for index in members}
        if len(sources) > 1:
            for index in members:
                if operations[index][0] != name:
                    candidates[index] = hashed(name, _source(operations[index]), limit)
    return candidates


def _source(operation: tuple[str | None, str, str]) -> str:
    operation_id, method, path = operation
    return operation_id or f"{method} {path}"


def argument(name: str) -> str:
    """An argument name that every model API takes: 1-64 characters of [A-Za-z0-9_.-]."""
    plain = _ILLEGAL.sub("_", name).strip("_") if _ILLEGAL.search(name) else name
    if plain and len(plain) <= 64 and name.isascii():
        return plain
    digest = hashlib.sha1(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:_SHORT_HASH]
    return f"{plain[:57]}_{digest}" if plain else f"arg_{digest}"
