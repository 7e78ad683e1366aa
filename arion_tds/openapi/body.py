"""The request body of one operation: which media type, which arguments, and how they are written.

In: a requestBody object. Out: a `Plan` (properties for the input schema, and the Body for the binding, not yet named).
Called by operations.

A body that is a plain object is flattened: its properties are arguments. Anything else is one argument, `body`.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Final

from arion_tds.openapi.binding import Body, BodyKind, Field
from arion_tds.openapi.convert import At, Walk
from arion_tds.openapi.refs import Document, Key, Unusable
from arion_tds.openapi.schemas import Converter
from arion_tds.openapi.text import clean
from arion_tds.openapi.value import Json

_PATCHES: Final = ("merge-patch+json", "json-patch", "patch+json")
"""Patch types come last, and first of them the one whose body is any JSON object."""

_EXACT: Final[dict[str, tuple[int, BodyKind]]] = {
    "application/json": (0, "json"),
    "application/x-www-form-urlencoded": (2, "form"),
    "multipart/form-data": (3, "multipart"),
    "*/*": (4, "json"),
    "text/plain": (5, "text"),
    "application/octet-stream": (6, "binary"),
    "application/pdf": (7, "binary"),
    "application/zip": (7, "binary"),
    "application/gzip": (7, "binary"),
}
_BINARY_MAINS: Final = ("image", "audio", "video", "font")
_PLAIN: Final = frozenset({"type", "properties", "required", "additionalProperties", "title", "description", "default"})
_TYPED: Final = frozenset({"type", "properties", "items", "enum", "const", "$ref", "allOf", "anyOf", "oneOf"})
_MEDIA = re.compile(r"[\w.+-]+/[\w.+-]+(?:;[\x20-\x7e]*)?\Z", re.ASCII)
_FORM_STYLES: Final = ("form", "spaceDelimited", "pipeDelimited", "deepObject")


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """`properties` are arguments by property name (or the one argument `body`), `required` those that must be there."""

    body: Body
    properties: dict[str, Json]
    required: tuple[str, ...]
    refs: tuple[Key, ...]
    where: str


def plan(document: Document, converter: Converter, node: Json, where: str) -> Plan | None:
    """What to do with the requestBody, or None where it describes nothing that could be sent. Raises Unusable."""
    at, node = document.follow(node, where)
    if not isinstance(node, dict):
        raise Unusable(where, "a requestBody must be an object")
    content = node.get("content")
    if not isinstance(content, dict) or not content:
        raise Unusable(f"{at}/content", "a requestBody needs content with a media type")
    media, kind = _choose(content, f"{at}/content")
    media_at, value = document.follow(content[media], f"{at}/content/{media.replace('~', '~0').replace('/', '~1')}")
    media_type = value if isinstance(value, dict) else {}
    required = node.get("required") is True
    shape = _Shape(document, converter, kind, media_type, media_at, required=required)
    body = Body(
        kind=kind,
        content_type=_content_type(media, kind),
        argument=None if shape.flat else "body",
        fields=shape.fields(),
        required=required,
        max_bytes=converter.limits.max_body_bytes,
    )
    if shape.flat:
        properties, names = shape.properties, shape.required
        if not properties and not required:
            return None
    else:
        properties, names = {"body": shape.whole(node)}, ("body",) if required else ()
    return Plan(body, properties, tuple(names), tuple(shape.walk.refs), at)


def _choose(content: dict[str, Json], where: str) -> tuple[str, BodyKind]:
    """The media type to send: JSON before forms before text before bytes."""
    ranked: list[tuple[int, int, str, BodyKind]] = []
    for order, media in enumerate(content):
        rank = _rank(media.split(";")[0].strip().lower())
        if rank is not None:
            ranked.append((rank[0], order, media, rank[1]))
    if not ranked:
        raise Unusable(where, f"no supported request media type among {', '.join(content)[:200]}")
    _, _, media, kind = min(ranked)
    return media, kind


def _rank(media: str) -> tuple[int, BodyKind] | None:
    main, _, sub = media.partition("/")
    exact = _EXACT.get(media)
    if exact is not None:
        return exact
    if sub == "json" or sub.endswith("+json") or media == "application/*":
        return next((8 + n for n, word in enumerate(_PATCHES) if word in sub), 1), "json"
    if main in _BINARY_MAINS:
        return 7, "binary"
    if main == "text" and sub not in ("xml", "*"):
        return 12, "text"
    return None


def _content_type(media: str, kind: BodyKind) -> str:
    plain = media.partition(";")[0].strip().lower()
    if "*" in plain:
        return "application/json" if kind == "json" else "application/octet-stream"
    if kind == "text":
        return f"{plain}; charset=utf-8"
    return plain if kind == "multipart" or not media.isascii() or not media.isprintable() else media


class _Shape:
    """One media type's schema, looked at once: is it a plain object, and what are its properties."""

    def __init__(
        self,
        document: Document,
        converter: Converter,
        kind: BodyKind,
        media: dict[str, Json],
        where: str,
        *,
        required: bool,
    ) -> None:
        self.walk = Walk(converter)
        self.flat = False
        self.properties: dict[str, Json] = {}
        self.required: tuple[str, ...] = ()
        self._kind = kind
        self._converter = converter
        self._encoding = media.get("encoding") if isinstance(media.get("encoding"), dict) else {}
        self._where: At = (where, "schema")
        self._schema = media.get("schema", True)
        self._raw = self._target(self._schema, self._where)
        self._document = document
        self._must = required
        if kind not in ("text", "binary"):
            self._look()

    def _target(self, node: Json, at: At) -> Json:
        """The raw schema with content that a schema means."""
        if isinstance(node, dict) and "$ref" in node and (self._converter.document.is_30 or len(node) == 1):
            return self._converter.node(self._converter.target(node["$ref"], at))
        return node

    def _look(self) -> None:
        raw = self._raw
        if not isinstance(raw, dict) or "discriminator" in raw or not isinstance(raw.get("properties"), dict):
            return
        walk = Walk(self._converter)
        if raw is self._schema:
            schema = walk.schema(raw, self._where)
        else:
            key = Key(self._converter.target(self._schema["$ref"], self._where))
            component = self._converter.component(key)
            schema = component.schema
            walk.refs = dict.fromkeys(component.refs)
        if not _is_plain(schema):
            return
        required = tuple(schema.get("required", ()))
        closed = schema.get("additionalProperties") is False
        if (required and not self._must) or not (schema["properties"] or closed or raw["properties"]):
            return
        if any(name not in schema["properties"] for name in required):
            return
        self.flat = True
        self.walk = walk
        self.required = required
        self.properties = schema["properties"]
        if self._kind in ("form", "multipart"):
            self.properties = {name: self._form_schema(name, value) for name, value in self.properties.items()}

    def _form_schema(self, name: str, converted: Json) -> Json:
        """A file part of OpenAPI 3.1 (`contentMediaType` alone) is base64 text too."""
        raw = self._target(self._raw["properties"].get(name), (self._where, name))
        binary = self._kind == "multipart" and _is_binary(raw, self._part_type(name))
        if binary and isinstance(converted, dict) and "$ref" not in converted:
            return {"type": "string", **converted, "contentEncoding": "base64"}
        return converted

    def whole(self, request_body: dict[str, Json]) -> Json:
        """The schema of the one argument `body`."""
        limit = self._converter.limits.max_description_chars
        if self._kind == "binary":
            return {
                "type": "string",
                "contentEncoding": "base64",
                "description": clean(request_body.get("description"), limit) or "The bytes to send, as base64 text.",
            }
        schema = self.walk.schema(self._schema, self._where)
        if self._kind == "text" and schema in (True, {}):
            schema = {"type": "string"}
        text = clean(request_body.get("description"), limit)
        if isinstance(schema, dict) and text and "description" not in schema:
            schema["description"] = text
        return schema

    def fields(self) -> tuple[Field, ...]:
        """How each known property is written; argument names are the property names for now."""
        if self._kind in ("text", "binary"):
            return ()
        if self._kind == "json":
            return tuple(Field(name, name) for name in self.properties) if self.flat else ()
        names = dict.fromkeys(self.properties)
        raw = _raw_properties(self, self._raw, 0)
        names.update(dict.fromkeys(raw))
        return tuple(self._field(name, raw.get(name)) for name in names)

    def _field(self, name: str, raw: Json) -> Field:
        rule = self._rule(name)
        content_type = self._part_type(name)
        target = self._target(raw, (self._where, name))
        items = self._target(target.get("items"), (self._where, name)) if isinstance(target, dict) else None
        style = rule.get("style")
        style = style if style in _FORM_STYLES and not content_type else ""
        explode = rule.get("explode")
        return Field(
            argument=name,
            name=name,
            style=style,
            explode=explode if isinstance(explode, bool) else style in ("form", ""),
            content_type=content_type if self._kind == "multipart" else "",
            json="json" in content_type,
            binary=self._kind == "multipart" and (_is_binary(target, content_type) or _is_binary(items, content_type)),
        )

    def _rule(self, name: str) -> dict[str, Json]:
        """The Encoding Object of a property."""
        encoding = self._encoding.get(name) if isinstance(self._encoding, dict) else None
        return encoding if isinstance(encoding, dict) else {}

    def _part_type(self, name: str) -> str:
        """The media type that the encoding gives a property, or nothing where it leaves a choice."""
        media = str(self._rule(name).get("contentType") or "").partition(",")[0].strip()
        return media if _MEDIA.match(media) else ""

    def target(self, node: Json) -> Json:
        """Public face of `_target` for the walk over composed forms."""
        return self._target(node, self._where)


def _is_plain(schema: Json) -> bool:
    return (
        isinstance(schema, dict)
        and set(schema) <= _PLAIN
        and schema.get("type", "object") == "object"
        and isinstance(schema.get("properties"), dict)
        and schema.get("additionalProperties", False) is False
    )


def _is_binary(raw: Json, part_type: str) -> bool:
    """Whether a part is bytes: 3.0's `format: binary`, 3.1's contentMediaType, or no type and a binary media type."""
    if not isinstance(raw, dict):
        return False
    if raw.get("format") == "binary":
        return True
    if "contentMediaType" in raw:
        return "contentEncoding" not in raw and raw.get("type", "string") == "string"
    kind = _rank(part_type.lower()) if part_type else None
    return kind is not None and kind[1] == "binary" and not (set(raw) & _TYPED)


def _raw_properties(shape: _Shape, raw: Json, depth: int) -> dict[str, Json]:
    """Raw properties of a form's schema, through allOf, anyOf and oneOf."""
    if not isinstance(raw, dict) or depth > 8:
        return {}
    found: dict[str, Json] = {}
    properties = raw.get("properties")
    if isinstance(properties, dict):
        found.update(properties)
    for word in ("allOf", "anyOf", "oneOf"):
        members = raw.get(word)
        for member in members if isinstance(members, list) else ():
            for name, value in _raw_properties(shape, shape.target(member), depth + 1).items():
                found.setdefault(name, value)
    return found
