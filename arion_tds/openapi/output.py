"""What an operation's answers look like: its outputSchema, if one can be promised, and the Accept header.

In: a responses object. Out: a Schema or None, media types, warnings on the converter. Called by operations.
Trouble in a response never costs the tool, only its outputSchema: a tool that declares one must always keep it.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from arion_tds import schema as json_schema
from arion_tds.model.problem import Problem
from arion_tds.openapi.convert import Walk
from arion_tds.openapi.refs import Document, Key, Unusable, escape
from arion_tds.openapi.schemas import Converter, TooLarge
from arion_tds.openapi.value import Json
from arion_tds.schema import Schema

_encode = msgspec.json.Encoder().encode
_SUCCESS = re.compile(r"2(?:[0-9][0-9]|XX|xx)\Z")
_JSON = re.compile(r"application/json\Z|[\w.+-]+/(?:json|[\w.+-]+\+json)\Z")
_MEDIA = re.compile(r"[\w.+*-]+/[\w.+*-]+\Z")
_MAX_ACCEPT: Final = 4


def read(
    document: Document, converters: tuple[Converter, ...], operation: dict[str, Json], where: str
) -> tuple[Schema | None, str]:
    """The outputSchema (None: no promise) and the Accept header.

    `converters` are tried in order until the schema is small enough; none: schemas are not wanted.
    """
    responses = operation.get("responses")
    media: dict[str, None] = {}
    schemas: list[tuple[Json, str]] = []
    promised = True
    for status, node in responses.items() if isinstance(responses, dict) else ():
        if not _SUCCESS.match(status):
            continue
        try:
            found = _json_schema(document, node, f"{where}/responses/{status}", media)
        except Unusable as error:
            promised = False
            if converters:
                converters[0].warnings[error.problem] = None
            continue
        if found is None:
            promised = False
        else:
            schemas.append(found)
    accept = _accept(list(media))
    if not converters or not promised or not schemas or any(schema != schemas[0][0] for schema, _ in schemas[1:]):
        return None, accept
    return _convert(converters, *schemas[0]), accept


def _json_schema(document: Document, node: Json, where: str, media: dict[str, None]) -> tuple[Json, str] | None:
    """The raw JSON schema of one response and where it stands, or None if it may be without JSON."""
    at, node = document.follow(node, where)
    content = node.get("content") if isinstance(node, dict) else None
    if not isinstance(content, dict) or not content:
        return None
    found: tuple[Json, str] | None = None
    for name, value in content.items():
        kind = name.split(";")[0].strip().lower()
        if _MEDIA.match(kind):
            media[kind] = None
        if found is None and _JSON.match(kind):
            media_at, media_type = document.follow(value, f"{at}/content/{escape(name)}")
            if isinstance(media_type, dict) and "schema" in media_type:
                found = (media_type["schema"], f"{media_at}/schema")
    return found


def _accept(media: list[str]) -> str:
    """JSON where the document has it (and then only that: it is what the outputSchema promises)."""
    json = [kind for kind in media if _JSON.match(kind)]
    if json:
        return ", ".join(json[:_MAX_ACCEPT])
    return ", ".join([*media[:_MAX_ACCEPT], "*/*;q=0.5"]) if media else "application/json, */*;q=0.5"


def _convert(converters: tuple[Converter, ...], raw: Json, where: str) -> Schema | None:
    """The first that is small enough: as it is, or without descriptions."""
    found: Schema | Problem | None = None
    for converter in converters:
        try:
            found = _one(converter, raw, where)
        except TooLarge as error:
            found = error.problem
            continue
        except Unusable as error:
            found = error.problem
        break
    if isinstance(found, Problem):
        converters[0].warnings[found] = None
        return None
    return found


def _one(converter: Converter, raw: Json, where: str) -> Schema | None:
    walk = Walk(converter)
    schema = walk.schema(raw, where)
    refs = tuple(walk.refs)
    if isinstance(schema, dict) and set(schema) <= {"$ref", "description"} and refs:
        component = converter.component(refs[0])
        schema, refs = component.schema, component.refs
    if not isinstance(schema, dict) or not schema:
        return None
    defs = converter.closure(refs, where, "max_output_schema_bytes")
    root = _rooted(converter, schema, refs)
    if defs:
        root["$defs"] = defs
    text = _encode(root)
    if len(text) > converter.limits.max_output_schema_bytes:
        named = converter.limits.named("max_output_schema_bytes")
        raise TooLarge(where, f"output schema of {len(text)} bytes is left out {named}")
    problem = None if converter.loose else json_schema.check(root)
    if problem is not None:
        raise Unusable(where, f"output schema is left out: {problem}")
    return Schema(text)


def _rooted(converter: Converter, schema: dict[str, Json], refs: tuple[Key, ...]) -> dict[str, Json]:
    """A copy with `type: object` first where only objects are meant: older protocol revisions demand that word."""
    kind = schema.get("type")
    rest = {word: value for word, value in schema.items() if word != "type"}
    objects = kind in ("object", ["object", "null"]) or (kind is None and _means_object(converter, schema, refs, 0))
    if objects:
        return {"type": "object", **rest}
    return {"type": kind, **rest} if kind is not None else rest


def _means_object(converter: Converter, schema: Json, refs: tuple[Key, ...], depth: int) -> bool:
    if not isinstance(schema, dict) or depth > 8:
        return False
    if "type" in schema:
        return schema["type"] in ("object", ["object", "null"])
    if "$ref" in schema:
        for key in refs:
            component = converter.component(key)
            if schema["$ref"] == f"#/$defs/{component.name}":
                return _means_object(converter, component.schema, component.refs, depth + 1)
    if "properties" in schema:
        return True
    members = schema.get("allOf")
    if isinstance(members, list) and any(_means_object(converter, sub, refs, depth + 1) for sub in members):
        return True
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        if isinstance(branches, list):
            real = [sub for sub in branches if sub != {"type": "null"}]
            return bool(real) and all(_means_object(converter, sub, refs, depth + 1) for sub in real)
    return False
