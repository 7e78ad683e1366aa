"""Families of schemas: a parent with a discriminator, and the children that the document names or that inherit from it.

In: a Document. Out: for each component whether it is such a parent and who its children are; the parent's schema with
its children in it; union branches whose tag is required. Called by convert and schemas.

A child inherits by allOf from its parent, and the parent lists its children: taken literally that is a circle. So a
parent has two variants: at the place of use it is any of its children, inside a child it is only its own properties.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from arion_tds.openapi.refs import Document, Key, Unusable, escape
from arion_tds.openapi.value import Json

if TYPE_CHECKING:
    from arion_tds.openapi.convert import At, Walk
    from arion_tds.openapi.schemas import Converter

_MAX_LOOK: Final = 8
_PREFIX: Final = "/components/schemas/"


@dataclasses.dataclass(frozen=True, slots=True)
class Child:
    """A child's pointer and the tag values that the mapping gives it (none: it is known by inheritance only)."""

    pointer: str
    tags: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Parent:
    """The tag's property name. `children` is empty where oneOf or anyOf lists them."""

    tag: str
    children: tuple[Child, ...]


class Family:
    """Which components of a document are parents. Answers are remembered."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: dict[str, Parent | None] = {}
        self._heirs: dict[str, list[str]] | None = None

    def of(self, pointer: str) -> Parent | None:
        """The component as a parent, or None where it is none."""
        if pointer not in self._known:
            self._known[pointer] = self._look(pointer)
        return self._known[pointer]

    def _look(self, pointer: str) -> Parent | None:
        node = self._node(pointer)
        rule = node.get("discriminator") if isinstance(node, dict) else None
        tag = rule.get("propertyName") if isinstance(rule, dict) else None
        if not isinstance(rule, dict) or not isinstance(tag, str):
            return None
        if "oneOf" in node or "anyOf" in node:
            return Parent(tag, ())
        tags: dict[str, list[str]] = {}
        for child, value in targets(self._document, rule):
            tags.setdefault(child, []).append(value)
        for heir in self._descendants(pointer):
            tags.setdefault(heir, [])
        if not tags:
            return None
        return Parent(tag, tuple(Child(child, tuple(values)) for child, values in tags.items()))

    def _node(self, pointer: str) -> Json:
        try:
            return self._document.resolve("#" + pointer.replace("%", "%25"), pointer)[1]
        except Unusable:
            return None

    def _descendants(self, pointer: str) -> list[str]:
        if self._heirs is None:
            self._heirs = self._all_heirs()
        found: dict[str, None] = {}
        todo = [pointer]
        while todo:
            for heir in self._heirs.get(todo.pop(), ()):
                if heir not in found and heir != pointer:
                    found[heir] = None
                    todo.append(heir)
        return list(found)

    def _all_heirs(self) -> dict[str, list[str]]:
        heirs: dict[str, list[str]] = {}
        for name, node in self._document.section("components", "schemas").items():
            members = node.get("allOf") if isinstance(node, dict) else None
            for member in members if isinstance(members, list) else ():
                if isinstance(member, dict) and "$ref" in member:
                    try:
                        parent, _ = self._document.resolve(member["$ref"], "")
                    except Unusable:
                        continue
                    heirs.setdefault(parent, []).append(_PREFIX + escape(name))
        return heirs


def targets(document: Document, rule: dict[str, Json]) -> list[tuple[str, str]]:
    """(pointer, tag value) of every mapping entry that leads somewhere: a pointer or a bare component name."""
    mapping = rule.get("mapping")
    found: list[tuple[str, str]] = []
    for value, ref in mapping.items() if isinstance(mapping, dict) else ():
        if not isinstance(ref, str):
            continue
        bare = ref in document.section("components", "schemas")
        try:
            at, _ = document.resolve("#" + (_PREFIX + escape(ref)).replace("%", "%25") if bare else ref, "")
        except Unusable:
            continue
        found.append((at, value))
    return found


def expanded(walk: Walk, key: Key, node: dict[str, Json], parent: Parent) -> dict[str, Json]:
    """The parent at a place of use: any of its children, each with its tag."""
    out: dict[str, Json] = {}
    if isinstance(node.get("description"), str):
        out = walk.schema({"description": node["description"]}, key.pointer)
    branches: list[dict[str, Json]] = []
    for child, tags in _branches(walk.converter.family, key, parent):
        branch = walk.refer(child, inplace=True)
        if not walk.converter.loose:
            if tags:
                branch["properties"] = {parent.tag: {"const": tags[0]} if len(tags) == 1 else {"enum": list(tags)}}
            branch["required"] = [parent.tag]
        branches.append(branch)
    if walk.converter.loose:
        branches.append(walk.refer(key._replace(base=True), inplace=True))
    if node.get("nullable") is True or walk.converter.loose:
        branches.append({"type": "null"})
    return {"anyOf": branches, **out}


def _branches(family: Family, key: Key, parent: Parent) -> list[tuple[Key, tuple[str, ...]]]:
    """Children that are parents by the same tag stand for themselves, followed by their own children."""
    found: dict[Key, tuple[str, ...]] = {}
    todo = list(parent.children)
    seen = {child.pointer for child in todo}
    for child in todo:
        own = family.of(child.pointer)
        same = child.pointer == key.pointer or (own is not None and own.tag == parent.tag and bool(own.children))
        found[key._replace(pointer=child.pointer, base=same)] = child.tags
        if same and own is not None:
            for grandchild in own.children:
                if grandchild.pointer not in seen:
                    seen.add(grandchild.pointer)
                    todo.append(grandchild)
    return list(found.items())


def tag_branches(converter: Converter, out: dict[str, Json], node: dict[str, Json], at: At) -> None:
    """Require the tag in each branch of a union, in place, and fix its value where the mapping gives one."""
    rule = node["discriminator"]
    tag = rule.get("propertyName") if isinstance(rule, dict) else None
    if not isinstance(rule, dict) or not isinstance(tag, str):
        return
    values: dict[str, list[str]] = {}
    for pointer, value in targets(converter.document, rule):
        values.setdefault(pointer, []).append(value)
    for word in ("oneOf", "anyOf"):
        raw = node.get(word)
        for branch, source in zip(out.get(word, ()), raw if isinstance(raw, list) else (), strict=False):
            if not isinstance(branch, dict) or not isinstance(source, dict) or set(branch) != {"$ref"}:
                continue
            if "$ref" not in source:  # a dynamic reference
                continue
            pointer = converter.target(source["$ref"], at)
            required, fixed = _tag_of(converter, converter.node(pointer), tag, 0)
            if not required:
                branch["required"] = [tag]
            mapped = values.get(pointer)
            if mapped and not fixed:
                branch["properties"] = {tag: {"const": mapped[0]} if len(mapped) == 1 else {"enum": mapped}}


def _tag_of(converter: Converter, node: Json, tag: str, depth: int) -> tuple[bool, bool]:
    """Whether a branch requires the tag itself, and whether it says itself which values it has."""
    if not isinstance(node, dict) or depth > _MAX_LOOK:
        return False, False
    names = node.get("required")
    required = isinstance(names, list) and tag in names
    properties = node.get("properties")
    own = properties.get(tag) if isinstance(properties, dict) else None
    # A tag described elsewhere (`$ref`), as an enum or a const speaks for itself.
    fixed = isinstance(own, dict) and any(word in own for word in ("const", "enum", "$ref", "allOf"))
    for word in ("$ref", "allOf"):
        inner = node.get(word)
        for member in inner if isinstance(inner, list) else [{"$ref": inner}] if inner is not None else []:
            target = member
            if isinstance(member, dict) and isinstance(member.get("$ref"), str):
                try:
                    target = converter.node(converter.target(member["$ref"], ""))
                except Unusable:
                    continue
            more = _tag_of(converter, target, tag, depth + 1)
            required, fixed = required or more[0], fixed or more[1]
    return required, fixed
