"""Bytes of an OpenAPI document to plain JSON values.

In: JSON or YAML bytes in any Unicode encoding, and the limits. Out: `Decoded` (a dict and warnings) or a `Problem`.
Called by expand. YAML is read as YAML 1.2's core schema (no dates, no octal `010`, `no` is a word), from libyaml's
events with an explicit stack: nesting costs no recursion, aliases share one object and are counted as often as they
are used, so that neither an alias bomb nor a cycle gets any further than this file.
"""

from __future__ import annotations

import codecs
import dataclasses
import math
import re
from typing import Final

import msgspec
import yaml
from yaml._yaml import CParser  # the C parser alone: PyYAML's composer and resolvers cost twice as much as all of this

from arion_tds.errors import one_line
from arion_tds.model.problem import Problem
from arion_tds.openapi.limits import Limits
from arion_tds.openapi.value import Json

_decode_json = msgspec.json.Decoder().decode

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_VERSION_KEYS: Final = ("openapi", "swagger")
_INT = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"0(o[0-7]+|x[0-9a-fA-F]+)\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_MAYBE_NUMBER: Final = frozenset("+-.0123456789")
_WORDS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_STR_TAG: Final = "tag:yaml.org,2002:str"
_PLAIN_TAGS: Final = frozenset(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null", "map", "seq"))
_MAX_INT_DIGITS: Final = 400


@dataclasses.dataclass(frozen=True, slots=True)
class Decoded:
    """The document's root object. Values may be shared (YAML aliases): never change them."""

    root: dict[str, Json]
    warnings: tuple[Problem, ...] = ()


class _Unreadable(Exception):  # noqa: N818 - not an error of ours: it says what the bytes are
    """Internal to this file: why the bytes are no document."""


def decode(data: bytes, limits: Limits) -> Decoded | Problem:
    """The document, or why it cannot be read. JSON is recognised by its first character."""
    if len(data) > limits.max_json_bytes:
        return Problem("", f"document of {len(data)} bytes is too large {limits.named('max_json_bytes')}")
    try:
        text = _text(data)
        if not text.strip():
            raise _Unreadable("document is empty")
        root, warnings = _parse(text, limits)
    except _Unreadable as error:
        return Problem("", str(error))
    if not isinstance(root, dict):
        return Problem("", f"document is {_kind(root)}, but an OpenAPI document is an object")
    for key in _VERSION_KEYS:
        if isinstance(root.get(key), float):
            root = {**root, key: str(root[key])}
    return Decoded(root, tuple(Problem("", warning) for warning in warnings))


def _text(data: bytes) -> str:
    encoding = "utf-8"
    for bom, name in _BOMS:
        if data.startswith(bom):
            encoding = name
            data = data[len(bom) :]
            break
    else:
        if data[:2].find(b"\0") == 1:
            encoding = "utf-16-le"
        elif data[:1] == b"\0":
            encoding = "utf-16-be"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _Unreadable(f"document is not valid {encoding} (byte {error.start}): {error.reason}") from error


def _parse(text: str, limits: Limits) -> tuple[Json, list[str]]:
    looks_like_json = text.lstrip()[:1] in ("{", "[")
    json_error = ""
    if looks_like_json:
        try:
            root = _decode_json(text)
        except RecursionError as error:
            raise _Unreadable(f"document nests too deeply {limits.named('max_depth')}") from error
        except (msgspec.DecodeError, UnicodeError) as error:
            json_error = str(error)
        else:
            _measure(root, limits)
            return root, []
    if len(text) > limits.max_yaml_bytes:
        if looks_like_json:
            raise _Unreadable(f"document is not valid JSON: {json_error}")
        raise _Unreadable(f"YAML document of {len(text)} characters is too large {limits.named('max_yaml_bytes')}")
    builder = _Builder(limits)
    try:
        return builder.build(text.encode()), builder.warnings
    except yaml.YAMLError as error:
        if looks_like_json:
            raise _Unreadable(f"document is not valid JSON: {json_error}") from error
        raise _Unreadable(f"document is not valid YAML: {_shortened(error)}") from error


def _measure(root: Json, limits: Limits) -> None:
    level = [root]
    depth = 0
    nodes = 0
    while level:
        depth += 1
        if depth > limits.max_depth:
            raise _Unreadable(f"document nests too deeply {limits.named('max_depth')}")
        nodes += sum(map(len, level))
        if nodes > limits.max_nodes:
            raise _Unreadable(f"document has too many values {limits.named('max_nodes')}")
        level = [
            value
            for node in level
            for value in (node.values() if type(node) is dict else node)
            if type(value) is dict or type(value) is list
        ]


class _Frame:
    """One open mapping or sequence: where values go, and what they weigh with every alias counted."""

    __slots__ = ("anchor", "height", "key", "merges", "nodes", "value")

    def __init__(self, value: dict[str, Json] | list[Json], anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: str | None = None
        self.merges: list[Json] | None = None
        self.nodes = 1
        self.height = 1


class _Builder:
    """libyaml events to values. One use."""

    def __init__(self, limits: Limits) -> None:
        self.warnings: list[str] = []
        self._limits = limits
        self._anchors: dict[str, tuple[Json, int, int]] = {}
        self._open: set[str] = set()
        self._stack: list[_Frame] = []
        self._root: Json = None

    def build(self, data: bytes) -> Json:
        """The first document's value. Raises YAMLError or _Unreadable."""
        parser = CParser(data)
        documents = 0
        total = 0
        try:
            while True:
                event = parser.get_event()
                kind = type(event)
                if kind is yaml.ScalarEvent:
                    self._scalar(event)
                elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                    self._start(event, {} if kind is yaml.MappingStartEvent else [])
                elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                    self._end()
                elif kind is yaml.AliasEvent:
                    self._alias(event)
                elif kind is yaml.DocumentStartEvent:
                    documents += 1
                    if documents > 1:
                        raise _Unreadable(f"holds a second YAML document {_line(event)}: send one document")
                elif event is None or kind is yaml.StreamEndEvent:
                    return self._root
                total += 1
                if total > self._limits.max_nodes:
                    raise self._too_many()
        finally:
            parser.dispose()

    def _too_many(self) -> _Unreadable:
        return _Unreadable(f"document has too many values, aliases included {self._limits.named('max_nodes')}")

    def _start(self, event: Json, value: dict[str, Json] | list[Json]) -> None:
        if event.tag is not None and event.tag not in _PLAIN_TAGS and event.tag != "!":
            raise _Unreadable(f"YAML tag {event.tag} {_line(event)} is not supported: use plain values")
        if len(self._stack) >= self._limits.max_depth:
            raise _Unreadable(f"document nests too deeply {_line(event)} {self._limits.named('max_depth')}")
        parent = self._stack[-1] if self._stack else None
        if parent is not None and type(parent.value) is dict and parent.key is None:
            raise _Unreadable(f"a key {_line(event)} is not a scalar: keys must be text")
        if event.anchor is not None:
            self._open.add(event.anchor)
            self._anchors.pop(event.anchor, None)
        self._stack.append(_Frame(value, event.anchor))

    def _end(self) -> None:
        frame = self._stack.pop()
        value = frame.value
        if frame.merges is not None and type(value) is dict:
            value = _merge(value, frame.merges)
        if frame.anchor is not None:
            self._open.discard(frame.anchor)
            self._anchors[frame.anchor] = (value, frame.nodes, frame.height)
        self._put(value, frame.nodes, frame.height)

    def _alias(self, event: Json) -> None:
        found = self._anchors.get(event.anchor)
        if found is None:
            why = "refers to what it stands in" if event.anchor in self._open else "refers to no anchor"
            raise _Unreadable(f"alias *{event.anchor} {_line(event)} {why}")
        value, nodes, height = found
        if len(self._stack) + height > self._limits.max_depth:
            raise _Unreadable(f"document nests too deeply {_line(event)} {self._limits.named('max_depth')}")
        frame = self._stack[-1] if self._stack else None
        if frame is not None and type(frame.value) is dict and frame.key is None:
            if type(value) in (dict, list):
                raise _Unreadable(f"a key {_line(event)} is not a scalar: keys must be text")
            self._key(frame, str(value), event)
            return
        self._put(value, nodes, height)

    def _scalar(self, event: Json) -> None:
        text: str = event.value
        tag: str | None = event.tag
        if tag is not None and tag not in _PLAIN_TAGS and tag not in (_STR_TAG, "!"):
            raise _Unreadable(f"YAML tag {tag} {_line(event)} is not supported: use plain values")
        frame = self._stack[-1] if self._stack else None
        if frame is not None and frame.key is None and type(frame.value) is dict:
            plain = event.implicit[0]
            self._key(frame, "\0<<" if text == "<<" and plain else text, event)
            if event.anchor is not None:
                self._anchors[event.anchor] = (text, 1, 0)
            return
        quoted = tag in (_STR_TAG, "!") or (tag is None and not event.implicit[0])
        value = text if quoted else _plain(text)
        if len(self._stack) == 1 and frame is not None and frame.key in _VERSION_KEYS:
            value = text
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1, 0)
        self._put(value, 1, 0)

    def _key(self, frame: _Frame, key: str, event: Json) -> None:
        if key in frame.value and len(self.warnings) < 20:
            self.warnings.append(f"key {key!r} {_line(event)} stands twice in one mapping: the last one counts")
        frame.key = key

    def _put(self, value: Json, nodes: int, height: int) -> None:
        if not self._stack:
            self._root = value
            return
        frame = self._stack[-1]
        frame.nodes += nodes
        if height >= frame.height:
            frame.height = height + 1
        if frame.nodes > self._limits.max_nodes:
            raise self._too_many()
        if type(frame.value) is list:
            frame.value.append(value)
        elif type(frame.value) is dict and frame.key is not None:
            if frame.key == "\0<<":
                frame.merges = [*(frame.merges or ()), value]
            else:
                frame.value[frame.key] = value
            frame.key = None


def _merge(value: dict[str, Json], merges: list[Json]) -> dict[str, Json]:
    """YAML's `<<`: what the mapping says itself wins, then the earlier of the merged ones."""
    merged: dict[str, Json] = {}
    for source in merges:
        for one in source if isinstance(source, list) else [source]:
            if not isinstance(one, dict):
                raise _Unreadable("a merge key (<<) needs a mapping or a list of mappings")
            for key, inner in one.items():
                merged.setdefault(key, inner)
    return {**merged, **value}


def _plain(text: str) -> Json:
    if text[:1] in _MAYBE_NUMBER:
        return _number(text)
    return _WORDS.get(text, text)


def _number(text: str) -> Json:
    if len(text) > _MAX_INT_DIGITS:
        return text
    if _INT.match(text):
        return int(text)
    if _BASED.match(text):
        return int(text, 0)
    if _FLOAT.match(text):
        value = float(text)
        return value if math.isfinite(value) else text
    return text


def _line(event: Json) -> str:
    return f"at line {event.start_mark.line + 1}"


def _shortened(error: Exception) -> str:
    text = one_line(error)
    return text if len(text) <= 300 else text[:299] + "…"


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return "text"
    return "a number or boolean"
