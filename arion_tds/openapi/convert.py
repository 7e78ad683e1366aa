"""One Schema Object of OpenAPI 3.0, 3.1 or 3.2 (or a sloppy mixture of them) to JSON Schema 2020-12.

In: a raw schema and where it stands. Out: a fresh converted schema; the Walk keeps which components it refers to.
Called by schemas (components) and operations (inline schemas). Only known keywords pass, and only at schema positions:
a property may well be called `nullable` or `$id`.

Loosened (for responses, so that what servers really answer passes): no `required`, no bounds, no closed objects, null
everywhere, `oneOf` becomes `anyOf`, `enum` becomes `examples`. Names, types and descriptions stay.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, NamedTuple

from arion_tds.openapi import discriminator
from arion_tds.openapi.refs import Key, Unusable, escape
from arion_tds.openapi.text import clean
from arion_tds.openapi.value import Json

if TYPE_CHECKING:
    from arion_tds.openapi.schemas import Converter

At = str | tuple[Json, str]
"""Where a value stands: a JSON Pointer, or (where its parent stands, its own token). Joined only for messages."""

TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


class _Use(enum.Enum):
    """What becomes of a keyword."""

    COPY = enum.auto()
    TEXT = enum.auto()
    SCHEMA = enum.auto()
    INPLACE = enum.auto()
    LIST = enum.auto()
    INPLACE_LIST = enum.auto()
    MAP = enum.auto()
    INPLACE_MAP = enum.auto()
    OWN = enum.auto()


_COPIED = (
    "type const format contentEncoding contentMediaType multipleOf maximum minimum exclusiveMaximum exclusiveMinimum "
    "maxLength minLength maxItems minItems uniqueItems maxContains minContains maxProperties minProperties default "
    "dependentRequired"
)
_USES: Final[dict[str, _Use]] = {
    **dict.fromkeys(_COPIED.split(), _Use.COPY),
    **dict.fromkeys(("title", "description"), _Use.TEXT),
    **dict.fromkeys(
        ("contains", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames"), _Use.SCHEMA
    ),
    **dict.fromkeys(("not", "if", "then", "else"), _Use.INPLACE),
    "prefixItems": _Use.LIST,
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _Use.INPLACE_LIST),
    "dependentSchemas": _Use.INPLACE_MAP,
    **dict.fromkeys(
        ("properties", "patternProperties", "items", "enum", "pattern", "deprecated", "$dynamicRef", "$recursiveRef"),
        _Use.OWN,
    ),
}
_LOOSE_USES: Final[dict[str, _Use]] = {
    key: use
    for key, use in _USES.items()
    if key
    in {
        *("type", "title", "description", "format", "contentEncoding", "contentMediaType", "allOf", "anyOf", "oneOf"),
        *(
            "properties",
            "items",
            "prefixItems",
            "additionalProperties",
            "enum",
            "const",
            "$dynamicRef",
            "$recursiveRef",
        ),
    }
}
_COMPOSED: Final = ("allOf", "anyOf", "oneOf", "not", "if", "$ref")
_OUTSIDE: Final = ("title", "description", "default")


def pointer(at: At) -> str:
    """The JSON Pointer of a place."""
    tokens: list[str] = []
    while not isinstance(at, str):
        tokens.append("/" + escape(at[1]))
        at = at[0]
    tokens.append(at)
    return "".join(reversed(tokens))


def is_null_too(node: dict[str, Json]) -> bool:
    """Whether the schema says OpenAPI 3.0's `nullable: true`."""
    return node.get("nullable") is True


class _Spot(NamedTuple):
    """How deep a nested schema stands, and whether it applies to the component's own value, or is the component."""

    depth: int
    inplace: bool
    root: bool


class Walk:
    """Converts one component or inline schema. `refs` and `inplace` collect what it names (ordered sets)."""

    __slots__ = ("_key", "_loose", "_uses", "converter", "inplace", "refs")

    def __init__(self, converter: Converter, key: Key | None = None) -> None:
        """`key` is the component that is being converted; None for a schema inline in an operation."""
        self.converter = converter
        self._key = key
        self._loose = converter.loose
        self._uses = _LOOSE_USES if converter.loose else _USES
        self.refs: dict[Key, None] = {}
        self.inplace: dict[Key, None] = {}

    def component(self, node: Json) -> Json:
        """The component's own schema: a parent of a discriminated family lists its children, its base does not."""
        key = self._key
        if key is None or not isinstance(node, dict):
            return self.schema(node, key.pointer if key else "", 0, inplace=True)
        family = self.converter.family.of(key.pointer)
        if family is not None:
            if key.base:
                node = {name: value for name, value in node.items() if name not in ("oneOf", "anyOf", "discriminator")}
            elif family.children:
                return discriminator.expanded(self, key, node, family)
        return self.schema(node, key.pointer, 0, inplace=True, root=True)

    def schema(self, node: Json, at: At, depth: int = 0, *, inplace: bool = False, root: bool = False) -> Json:
        """The converted schema. `inplace`: it applies to the component's own value; `root`: it is the component."""
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            raise Unusable(pointer(at), "a schema must be an object")
        if depth > self.converter.limits.max_schema_depth:
            raise Unusable(pointer(at), f"schema nests too deeply {self.converter.limits.named('max_schema_depth')}")
        if "$ref" in node:
            return self._reference(node, at, depth, inplace=inplace)
        out: dict[str, Json] = {}
        uses = self._uses
        for key, value in node.items():
            use = uses.get(key)
            if use is None:
                continue
            if use is _Use.COPY:
                out[key] = value
            elif use is _Use.TEXT:
                text = "" if self.converter.bare else clean(value, self.converter.limits.max_description_chars)
                if text:
                    out[key] = text
            elif use is _Use.OWN:
                self._own(out, key, value, at, depth + 1)
            else:
                spot = _Spot(depth + 1, inplace, root)
                converted = self._nested(key, use, value, (at, key), spot)
                if converted is not None:
                    out[key] = converted
        self._finish(out, node, at)
        return out

    def refer(self, key: Key, *, inplace: bool) -> dict[str, Json]:
        """A `$ref` to a component, remembered."""
        self.refs[key] = None
        if inplace:
            self.inplace[key] = None
        return {"$ref": "#/$defs/" + self.converter.name(key)}

    def _reference(self, node: dict[str, Json], at: At, depth: int, *, inplace: bool) -> Json:
        key = self._key_of(node["$ref"], at)
        out = self.refer(key, inplace=inplace)
        if len(node) == 1:
            return out
        if self.converter.document.is_30:
            text = clean(node.get("description"), self.converter.limits.max_description_chars)
            if text:
                out["description"] = text
        else:
            rest = {name: value for name, value in node.items() if name not in ("$ref", "nullable")}
            out |= self.schema(rest, at, depth, inplace=inplace)
        return _or_null(out) if is_null_too(node) else out

    def _key_of(self, ref: Json, at: At) -> Key:
        return Key(self.converter.target(ref, at))

    def _nested(self, key: str, use: _Use, value: Json, here: At, spot: _Spot) -> Json:
        """The converted value of a keyword that holds schemas, or None to leave it out."""
        if use is _Use.SCHEMA:
            return self.schema(value, here, spot.depth)
        if use is _Use.INPLACE:
            return self.schema(value, here, spot.depth, inplace=spot.inplace)
        if use is _Use.MAP or use is _Use.INPLACE_MAP:
            if not isinstance(value, dict):
                return None
            below = spot.inplace and use is _Use.INPLACE_MAP
            return {name: self.schema(sub, (here, name), spot.depth, inplace=below) for name, sub in value.items()}
        if not isinstance(value, list) or not value:
            return None
        if key == "allOf" and spot.root:
            return [self._parent(sub, (here, str(n)), spot.depth) for n, sub in enumerate(value)]
        below = spot.inplace and use is _Use.INPLACE_LIST
        return [self.schema(sub, (here, str(n)), spot.depth, inplace=below) for n, sub in enumerate(value)]

    def _own(self, out: dict[str, Json], key: str, value: Json, at: At, depth: int) -> None:
        """Keywords with a rule of their own."""
        here = (at, key)
        if key in ("properties", "patternProperties"):
            if isinstance(value, dict):
                out[key] = self._properties(key, value, here, depth)
        elif key == "items":
            if isinstance(value, list):  # draft-04 tuple
                out["prefixItems"] = [self.schema(sub, (here, str(n)), depth) for n, sub in enumerate(value)]
            else:
                out[key] = self.schema(value, here, depth)
        elif key == "enum":
            self._enum(out, value, here)
        elif key == "pattern":
            if self.converter.pattern(value, here):
                out[key] = value
        elif key == "deprecated":
            if value is True:
                out[key] = True
        else:
            self._dynamic(out, value, at)

    def _parent(self, node: Json, at: At, depth: int) -> Json:
        """A member of a component's own allOf: inheritance, so a discriminated parent is meant without its children."""
        if isinstance(node, dict) and "$ref" in node:
            key = self._key_of(node["$ref"], at)
            if self.converter.family.of(key.pointer) is not None:
                return self.refer(key._replace(base=True), inplace=True)
        return self.schema(node, at, depth, inplace=True)

    def hidden(self, node: Json) -> bool:
        """Whether a property is not for this direction: readOnly in requests, writeOnly in responses."""
        if not isinstance(node, dict):
            return False
        word = "writeOnly" if self.converter.response else "readOnly"
        if node.get(word) is True:
            return True
        if "$ref" in node:
            try:
                target = self.converter.node(self.converter.target(node["$ref"], ""))
            except Unusable:
                return False
            return isinstance(target, dict) and target.get(word) is True
        members = node.get("allOf")
        return isinstance(members, list) and any(isinstance(sub, dict) and sub.get(word) is True for sub in members)

    def _properties(self, key: str, value: dict[str, Json], here: At, depth: int) -> dict[str, Json]:
        schema, hidden = self.schema, self.hidden
        if key == "properties":
            return {name: schema(sub, (here, name), depth) for name, sub in value.items() if not hidden(sub)}
        usable = {name: sub for name, sub in value.items() if self.converter.pattern(name, here)}
        return {name: schema(sub, (here, name), depth) for name, sub in usable.items()}

    def _enum(self, out: dict[str, Json], value: Json, here: At) -> None:
        if not isinstance(value, list) or not value:
            return
        limits = self.converter.limits
        if len(value) > limits.max_enum_values:
            self.converter.warn(here, f"enum of {len(value)} values is left out {limits.named('max_enum_values')}")
            return
        out["examples" if self._loose else "enum"] = _distinct(value)

    def _dynamic(self, out: dict[str, Json], value: Json, at: At) -> None:
        """`$recursiveRef: "#"` (2019-09) and `$dynamicRef: "#"`: the component that it stands in."""
        if self._key is None or value != "#":
            raise Unusable(pointer(at), f"dynamic reference {str(value)[:80]!r} is not supported: use $ref")
        out |= self.refer(self._key, inplace=False)

    def _finish(self, out: dict[str, Json], node: dict[str, Json], at: At) -> None:
        """What depends on more than one keyword."""
        if "title" in out and "description" in out:
            del out["title"]
        if out.get("format") in ("binary", "byte"):  # in JSON, bytes can only be base64 text
            del out["format"]
            out.setdefault("contentEncoding", "base64")
        if self._loose:
            _loosen(out)
            return
        required = _required(self, node)
        if required:
            out["required"] = required
        for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(out.get(word), bool):
                exclusive = out.pop(word)
                if exclusive and bound in out:
                    out[word] = out.pop(bound)
        if out.get("type") == "array" and "items" not in out and "prefixItems" not in out:
            out["items"] = {}
        if "discriminator" in node:
            discriminator.tag_branches(self.converter, out, node, at)
        if is_null_too(node):
            _nullable(out)


def _required(walk: Walk, node: dict[str, Json]) -> list[str]:
    """Each required name once, without those of properties that are hidden in this direction, here or in its allOf."""
    names = node.get("required")
    if not isinstance(names, list):
        return []
    required = list(dict.fromkeys(name for name in names if isinstance(name, str)))
    hidden: set[str] = set()
    members = node.get("allOf")
    for part in [node, *(members if isinstance(members, list) else [])]:
        properties = part.get("properties") if isinstance(part, dict) else None
        if isinstance(properties, dict):
            hidden.update(name for name in required if name in properties and walk.hidden(properties[name]))
    return [name for name in required if name not in hidden] if hidden else required


def _nullable(out: dict[str, Json]) -> None:
    """OpenAPI 3.0's `nullable: true`, in place."""
    if any(word in out for word in _COMPOSED):
        replaced = _or_null(dict(out))
        out.clear()
        out.update(replaced)
        return
    if "const" in out:
        out["enum"] = [out.pop("const")]
    if "enum" in out and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    kind = out.get("type")
    if isinstance(kind, str) and kind != "null":
        out["type"] = [kind, "null"]
    elif isinstance(kind, list) and "null" not in kind:
        out["type"] = [*kind, "null"]


def _or_null(schema: dict[str, Json]) -> dict[str, Json]:
    outside: dict[str, Json] = {word: schema.pop(word) for word in _OUTSIDE if word in schema}
    return {"anyOf": [schema, {"type": "null"}], **outside}


def _loosen(out: dict[str, Json]) -> None:
    """Valid by construction: what is left can be served without compiling it first."""
    if "const" in out:
        out.setdefault("examples", [out.pop("const")])
        out.pop("const", None)
    if out.get("additionalProperties") is False:
        del out["additionalProperties"]
    if out.get("items") is False:
        del out["items"]
    branches = out.pop("oneOf", None)
    if branches is not None:
        out["anyOf"] = [*out.get("anyOf", []), *branches]
    for word in ("format", "contentEncoding", "contentMediaType"):
        if word in out and not isinstance(out[word], str):
            del out[word]
    kinds = out.pop("type", None)
    known = [
        kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str) and kind in TYPES
    ]
    if known:
        known = list(dict.fromkeys([*known, "null"]))
        rest = dict(out)
        out.clear()
        out["type"] = known if len(known) > 1 else known[0]
        out.update(rest)
    elif "anyOf" in out and {} not in out["anyOf"]:
        out["anyOf"] = [*out["anyOf"], {"type": "null"}]


def _distinct(values: list[Json]) -> list[Json]:
    seen: set[tuple[str, str]] = set()
    kept = []
    for value in values:
        mark = (type(value).__name__, repr(value))
        if mark not in seen:
            seen.add(mark)
            kept.append(value)
    return kept
