"""Components of a document as JSON Schema 2020-12, each converted once per direction, and the `$defs` a tool needs.

In: a Document and references into it. Out: converted components, and for a set of references the closure that makes a
schema self-contained. Called by convert (names of targets) and operations (closures). A component's converted value is
shared by all tools that need it: never change it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from arion_tds import schema as json_schema
from arion_tds.model.problem import Problem
from arion_tds.openapi import convert, discriminator
from arion_tds.openapi.limits import Limits
from arion_tds.openapi.refs import MAX_CHAIN, Document, Key, Unusable
from arion_tds.openapi.value import Json

_encode = msgspec.json.Encoder().encode
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._\-]+")


class Component(NamedTuple):
    """`schema` is converted; `refs` are the components it names, `inplace` those that apply to the same value."""

    name: str
    schema: Json
    refs: tuple[Key, ...]
    inplace: tuple[Key, ...]
    size: int


class TooLarge(Unusable):
    """A closure over its limit: a request schema costs its operation, a response schema only itself."""


class Converter:
    """All components of one document in one direction, converted when first needed. One expansion, one thread."""

    def __init__(
        self, document: Document, limits: Limits, *, response: bool, loose: bool = False, bare: bool = False
    ) -> None:
        """`response` drops writeOnly instead of readOnly properties; `loose` loosens what the document demands.

        `bare` leaves out titles and descriptions: names are the same as without it, so closures can be exchanged.
        """
        self.document = document
        self.limits = limits
        self.response = response
        self.loose = loose
        self.bare = bare
        self.warnings: dict[Problem, None] = {}
        self.family = discriminator.Family(document)
        self._components: dict[Key, Component | Problem] = {}
        self._names: dict[Key, str] = {}
        self._targets: dict[str, str] = {}
        self._patterns: dict[str, bool] = {}
        self._sound: set[Key] = set()

    def target(self, ref: Json, at: convert.At) -> str:
        """The pointer of what a schema's `$ref` means: through bare references to the first one with content."""
        found = self._targets.get(ref) if isinstance(ref, str) else None
        if found is None:
            where = convert.pointer(at)
            found = self._chase(ref, where)
            self._targets[ref] = found
        return found

    def _chase(self, ref: Json, where: str) -> str:
        at, node = self.document.resolve(ref, where)
        for _ in range(MAX_CHAIN):
            if not isinstance(node, dict) or "$ref" not in node or not (self.document.is_30 or len(node) == 1):
                return at
            at, node = self.document.resolve(node["$ref"], at)
        raise Unusable(where, f"references from {ref!r} go in a circle and never reach a schema (last: #{at})")

    def node(self, at: str) -> Json:
        """The raw value at a pointer that `target` returned."""
        return self.document.resolve("#" + _quote(at), at)[1]

    def name(self, key: Key) -> str:
        """The `$defs` name of a component: its own where that is plain. It does not depend on what was named before."""
        known = self._names.get(key)
        if known is not None:
            return known
        tokens = key.pointer.split("/")
        last = tokens[-1].replace("~1", "/").replace("~0", "~")
        name = _NOT_IN_NAMES.sub("_", last)
        inside = not (len(tokens) == 4 and tokens[1:3] == ["components", "schemas"])
        odd = inside or name != last or not name
        if key.base:
            name += "-base"
            odd = odd or name in self.document.section("components", "schemas")
        if odd:
            name = f"{name}_{hashlib.sha1(str(key).encode(), usedforsecurity=False).hexdigest()[:6]}"
        self._names[key] = name
        return name

    def component(self, key: Key) -> Component:
        """The converted component. Raises Unusable, every time, for one that cannot be used."""
        found = self._components.get(key)
        if found is None:
            found = self._convert(key)
            self._components[key] = found
        if isinstance(found, Problem):
            raise Unusable(found.where, found.why)
        return found

    def _convert(self, key: Key) -> Component | Problem:
        walk = convert.Walk(self, key)
        try:
            schema = walk.component(self.node(key.pointer))
        except Unusable as error:
            return error.problem
        return Component(self.name(key), schema, tuple(walk.refs), tuple(walk.inplace), len(_encode(schema)))

    def closure(self, refs: Iterable[Key], where: str, limit: str) -> dict[str, Json]:
        """`$defs` for everything the references lead to, sorted by name. Raises TooLarge or Unusable.

        `limit` is the name of the limit for all of it together, in bytes.
        """
        max_bytes = getattr(self.limits, limit)
        todo = list(refs)
        seen = set(todo)
        defs: dict[str, Json] = {}
        size = 0
        while todo:
            key = todo.pop()
            found = self.component(key)
            size += found.size + len(found.name) + 4
            if size > max_bytes:
                raise TooLarge(where, f"schema with all it refers to is too large {self.limits.named(limit)}")
            if len(seen) > self.limits.max_schema_components:
                raise TooLarge(
                    where, f"schema refers to too many components {self.limits.named('max_schema_components')}"
                )
            defs[found.name] = found.schema
            for inner in found.refs:
                if inner not in seen:
                    seen.add(inner)
                    todo.append(inner)
        self._refuse_circles(seen, where)
        return dict(sorted(defs.items()))

    def _refuse_circles(self, keys: Iterable[Key], where: str) -> None:
        """Schemas that apply one another to the same value for ever, through `$ref`, `allOf` and the like."""
        for start in keys:
            path: list[Key] = []
            stack: list[tuple[Key, bool]] = [(start, False)]
            on_path: set[Key] = set()
            while stack:
                key, leaving = stack.pop()
                if leaving:
                    on_path.discard(path.pop())
                    self._sound.add(key)
                    continue
                if key in self._sound:
                    continue
                if key in on_path:
                    circle = " → ".join(self.name(step) for step in [*path[path.index(key) :], key])
                    raise Unusable(where, f"schemas refer to each other in a circle without content: {circle}")
                path.append(key)
                on_path.add(key)
                stack.append((key, True))
                stack.extend((inner, False) for inner in self.component(key).inplace)

    def pattern(self, text: object, at: convert.At) -> bool:
        """Whether a `pattern` compiles; one that does not is dropped with a warning (ECMA-262 differs)."""
        if not isinstance(text, str):
            return False
        known = self._patterns.get(text)
        if known is None:
            known = json_schema.check({"pattern": text}) is None
            self._patterns[text] = known
            if not known:
                self.warn(at, f"pattern {text[:80]!r} does not compile: it is left out")
        return known

    def warn(self, at: convert.At, why: str) -> None:
        """Remember something that does not cost the operation."""
        self.warnings[Problem(convert.pointer(at), why)] = None


def _quote(pointer: str) -> str:
    return pointer.replace("%", "%25")
