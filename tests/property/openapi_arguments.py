"""Arguments that an input schema accepts, made from the schema: a small generator for the OpenAPI properties."""

from __future__ import annotations

import random
from typing import Any

_TEXTS = {
    "date": "2024-05-06",
    "date-time": "2024-05-06T07:08:09Z",
    "email": "a@example.org",
    "uuid": "0b1f7a3e-52a4-4f3c-9d1b-2f3a4b5c6d7e",
    "uri": "https://example.org/x",
    "url": "https://example.org/x",
    "ipv4": "192.0.2.1",
    "time": "07:08:09Z",
}


class Generator:
    """Values for one self-contained JSON Schema. The same seed gives the same values."""

    def __init__(self, schema: dict[str, Any], seed: str, *, optional: float = 0.4) -> None:
        """`optional` is how likely an optional property is to be there."""
        self._defs = schema.get("$defs", {})
        self._random = random.Random(seed)
        self._optional = optional
        self._schema = schema

    def arguments(self) -> dict[str, Any]:
        """One attempt; whether the schema accepts it is for the caller to ask."""
        value = self._value(self._schema, 0)
        assert isinstance(value, dict)
        return value

    def _value(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, dict):
            return "x"
        if "$ref" in schema:
            target = self._defs[schema["$ref"].removeprefix("#/$defs/")]
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            return self._merged([target, rest], depth + 1) if "properties" in rest else self._value(target, depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice([value for value in schema["enum"] if value is not None] or [None])
        for word in ("oneOf", "anyOf"):
            if schema.get(word):
                branches = [branch for branch in schema[word] if branch != {"type": "null"}] or schema[word]
                branch = branches[0] if depth > 6 else self._random.choice(branches)
                rest = {key: value for key, value in schema.items() if key != word}
                return (
                    self._merged([rest, branch], depth + 1)
                    if rest.get("properties")
                    else self._value(branch, depth + 1)
                )
        if schema.get("allOf"):
            return self._merged([{**schema, "allOf": None}, *schema["allOf"]], depth + 1)
        return self._typed(schema, depth)

    def _merged(self, parts: list[Any], depth: int) -> Any:
        values = [self._value(part, depth) for part in parts if part]
        objects = [value for value in values if isinstance(value, dict)]
        if not objects:
            return next((value for value in values if value != "x"), "x")
        merged: dict[str, Any] = {}
        for value in objects:
            merged.update(value)
        return merged

    def _typed(self, schema: dict[str, Any], depth: int) -> Any:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        if kind == "object" or "properties" in schema:
            return self._object(schema, depth)
        if kind == "array":
            count = max(schema.get("minItems", 0), 1 if depth < 5 else 0)
            return [self._value(schema.get("items", True), depth + 1) for _ in range(count)]
        if kind in ("integer", "number"):
            low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
            step = schema.get("multipleOf", 1)
            return min(max(low, step), schema.get("maximum", max(low, step)))
        if kind == "boolean":
            return self._random.random() < 0.5
        if kind == "null":
            return None
        text = _TEXTS.get(schema.get("format", ""), self._random.choice(["x", "a b", "ü&=", "1"]))
        if schema.get("contentEncoding") == "base64":
            text = "AAEC"
        text = text.ljust(schema.get("minLength", 0), "y")
        return text[: schema["maxLength"]] if "maxLength" in schema else text

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        required = set(schema.get("required", ()))
        if not schema.get("properties") and schema.get("additionalProperties") is not False:
            return {"k": self._value(schema.get("additionalProperties", True), depth + 1)}
        return {
            name: self._value(sub, depth + 1)
            for name, sub in schema.get("properties", {}).items()
            if name in required or (depth < 4 and self._random.random() < self._optional)
        }
