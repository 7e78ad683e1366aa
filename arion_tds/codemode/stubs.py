"""TypeScript signatures of tools, from their JSON Schemas. Pure.

In: a tool. Out: `weather.get(args: { city: string; days?: number }): Promise<…>` with what the schema says in comments,
and how the tool is written in a program. Called by bridge. Types are for the model to read, nobody checks them: what
does not fit (a `not`, a condition, a recursion) is widened to `unknown` with a comment.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from arion_tds.model.tool import Tool

MAX_CHARACTERS: Final = 6000
"""Of one schema's type; beyond it the rest is `unknown`."""

_MAX_DEPTH: Final = 12
_MAX_ENUM: Final = 40
_MAX_COMMENT: Final = 240
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_NOT_IDENTIFIER: Final = re.compile(r"[^A-Za-z0-9_$]")
_WIDE: Final = "unknown"
_SIMPLE: Final = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}
_BOUNDS: Final = (
    *(("format", "{}"), ("pattern", "matches {}"), ("minimum", "≥ {}"), ("exclusiveMinimum", "> {}")),
    *(("maximum", "≤ {}"), ("exclusiveMaximum", "< {}"), ("multipleOf", "multiple of {}")),
    *(
        ("minLength", "length ≥ {}"),
        ("maxLength", "length ≤ {}"),
        ("minItems", "items ≥ {}"),
        ("maxItems", "items ≤ {}"),
    ),
)


def identifier(name: str) -> str:
    """The name with everything that an identifier cannot hold replaced by `_`."""
    found = _NOT_IDENTIFIER.sub("_", name)
    return f"_{found}" if found[:1].isdigit() else found


def access(tool: Tool) -> str:
    """How a program writes the tool: `tools.a.b`, or with brackets where a name is no identifier."""
    return f"tools{_member(tool.namespace)}{_member(tool.name)}"


def signature(tool: Tool) -> str:
    """The call and what it gives, over several lines where the schema has something to say."""
    schema = tool.input_schema.value()
    inputs = _Writer(schema)
    empty = schema.get("properties") in (None, {}) and not inputs.open
    args = "" if empty else f"args{'' if inputs.required else '?'}: {inputs.type()}"
    gives = _WIDE if tool.output_schema is None else _Writer(tool.output_schema.value()).type()
    return f"{access(tool)}({args}): Promise<{gives}>"


def of(schema: object) -> str:
    """The TypeScript type of a JSON Schema (JSON values)."""
    return _Writer(schema).type()


class _Writer:
    """Writes one schema. Stops widening nothing and starts writing `unknown` when it has written enough."""

    def __init__(self, schema: object) -> None:
        self._root = schema
        self._left = MAX_CHARACTERS
        self._path: list[str] = []  # references that are being followed

    @property
    def open(self) -> bool:
        """Whether an object schema without properties says that it takes some all the same."""
        root = self._root
        return isinstance(root, dict) and (
            bool(root.get("additionalProperties"))
            or any(word in root for word in ("$ref", "allOf", "anyOf", "oneOf", "patternProperties"))
        )

    @property
    def required(self) -> bool:
        """Whether some property must be given."""
        root = self._root
        return isinstance(root, dict) and (bool(root.get("required")) or any(w in root for w in ("$ref", "allOf")))

    def type(self) -> str:
        """The whole type."""
        return self._type(self._root, 0)

    def _type(self, schema: object, depth: int) -> str:
        if schema is False:
            return "never"
        if not isinstance(schema, dict) or depth > _MAX_DEPTH or self._left <= 0:
            return _WIDE
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._follow(reference, depth)
        if "const" in schema:
            return _literal(schema["const"])
        listed = schema.get("enum")
        if isinstance(listed, list) and listed:
            more = [f"/* {len(listed) - _MAX_ENUM} more */ {_WIDE}"] if len(listed) > _MAX_ENUM else []
            return self._count(" | ".join([*map(_literal, listed[:_MAX_ENUM]), *more]))
        parts = [part for part in (self._own(schema, depth), *self._combined(schema, depth)) if part != _WIDE]
        return " & ".join(dict.fromkeys(parts)) or _WIDE

    def _combined(self, schema: dict[str, Any], depth: int) -> list[str]:
        found: list[str] = []
        for word in ("anyOf", "oneOf"):
            choices = schema.get(word)
            if isinstance(choices, list) and choices:
                found.append(_union([self._type(one, depth + 1) for one in choices]))
        every = schema.get("allOf")
        if isinstance(every, list):
            found += [self._type(one, depth + 1) for one in every]
        return found

    def _own(self, schema: dict[str, Any], depth: int) -> str:
        """What `type`, `properties` and `items` say."""
        kinds = schema.get("type")
        if kinds is None:
            kinds = "object" if "properties" in schema else "array" if "items" in schema else []
        listed = kinds if isinstance(kinds, list) else [kinds]
        names = [kind for kind in listed if isinstance(kind, str)]
        return _union([self._kind(name, schema, depth) for name in names]) if names else _WIDE

    def _kind(self, name: str, schema: dict[str, Any], depth: int) -> str:
        if name == "object":
            return self._object(schema, depth)
        if name == "array":
            return self._array(schema, depth)
        return self._count(_SIMPLE.get(name, _WIDE))

    def _array(self, schema: dict[str, Any], depth: int) -> str:
        first = schema.get("prefixItems")
        if isinstance(first, list) and first:
            rest = "" if schema.get("items") is False else f", ...{_WIDE}[]"
            return f"[{', '.join(self._type(one, depth + 1) for one in first)}{rest}]"
        item = self._type(schema.get("items", True), depth + 1)
        return f"({item})[]" if " | " in item or " & " in item else f"{item}[]"

    def _object(self, schema: dict[str, Any], depth: int) -> str:
        properties = schema.get("properties")
        members = properties if isinstance(properties, dict) else {}
        listed = schema.get("required")
        required = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        indent = "  " * (depth + 1)
        lines: list[str] = []
        for name, member in members.items():
            if self._left <= 0:
                lines.append(f"{indent}// … more: see the schema")
                break
            mark = "" if name in required else "?"
            key = name if _IDENTIFIER.match(name) else json.dumps(name)
            comment = _comment(member)
            lines.append(self._count(f"{indent}{key}{mark}: {self._type(member, depth + 1)};{comment}"))
        rest = schema.get("additionalProperties")
        if isinstance(rest, dict) and rest:
            lines.append(f"{indent}[key: string]: {self._type(rest, depth + 1) if not members else _WIDE};")
        elif not members and rest is not False:
            return f"Record<string, {_WIDE}>"
        if not lines:
            return "{}"
        return "{\n" + "\n".join(lines) + "\n" + "  " * depth + "}"

    def _follow(self, reference: str, depth: int) -> str:
        name = reference.rpartition("/")[2]
        if reference in self._path:
            return f"{_WIDE} /* {_plain(name)} again */"
        target = _resolve(self._root, reference)
        self._path.append(reference)
        try:
            return self._type(target, depth)
        finally:
            self._path.pop()

    def _count(self, text: str) -> str:
        self._left -= len(text)
        return text


def _resolve(root: object, reference: str) -> object:
    """The part of the schema that a JSON Pointer leads to; True (anything) where it leads nowhere."""
    if not reference.startswith("#"):
        return True
    found = root
    for part in reference[1:].split("/")[1:]:
        step = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return True
    return found


def _union(types: list[str]) -> str:
    if _WIDE in types:
        return _WIDE
    return " | ".join(dict.fromkeys(types))


def _literal(value: object) -> str:
    if value is None or isinstance(value, str | bool | int | float):
        return json.dumps(value, ensure_ascii=False)
    return _WIDE


def _comment(member: object) -> str:
    """What a member's type cannot say: description, bounds, default."""
    if not isinstance(member, dict):
        return ""
    said: list[str] = []
    description = member.get("description")
    if isinstance(description, str) and description.strip():
        said.append(description)
    said += [form.format(member[word]) for word, form in _BOUNDS if isinstance(member.get(word), str | int | float)]
    if "default" in member:
        said.append(f"default {json.dumps(member['default'], ensure_ascii=False, default=str)}")
    return f" // {_plain('; '.join(said))}" if said else ""


def _plain(text: str) -> str:
    """One short line that no comment can end in."""
    text = " ".join(text.split()).replace("*/", "* /")
    return text if len(text) <= _MAX_COMMENT else text[: _MAX_COMMENT - 1] + "…"


def _member(name: str) -> str:
    return f".{name}" if _IDENTIFIER.match(name) else f"[{json.dumps(name, ensure_ascii=False)}]"
