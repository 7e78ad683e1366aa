"""JSON Schema 2020-12: judge a pushed schema once, validate arguments and results many times.

In: schema text from a resource, an OpenAPI expansion or an upstream's tool list. Out: `Schema` (compact text plus a
validator that is compiled on first use and kept in a bounded cache) or a sentence that says what is wrong.
Called by decode, openapi, backends and calls. The only module that imports jsonschema_rs.

References are never fetched: a `$ref`, `$schema` or `$id` that points elsewhere is an error (MCP 2026-07-28,
basic/index: "MUST NOT automatically dereference").
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, ClassVar, Final

import jsonschema_rs
import msgspec

MAX_COMPILED: Final = 4096
"""Validators kept compiled, over all scopes; the least recently used goes first."""

_SHORT: Final = 64
"""Bytes of a text that is not worth reading out of another: constants, which many tools share, among them."""

_SHALLOW: Final = 128  # fewer objects and lists than this cannot nest to the library's limit of 255

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def _refuse(uri: str) -> Any:  # noqa: ANN401 - the library's protocol
    msg = f"reference to {uri} is not followed: only references inside the schema are"
    raise ValueError(msg)


class Schema:
    """One JSON Schema: its compact text, and a validator that compiles itself when first needed.

    Equal when the texts are equal. Pickles as its text, so it crosses process borders cheaply.

    Most of a catalog is the texts of its schemas, and each is in the definition that clients are shown, too: once there
    is one (`read_from`), the text is read out of it.
    """

    __slots__ = ("_after", "_before", "_hash", "_whole")
    _compiled: ClassVar[OrderedDict[Schema, jsonschema_rs.Validator]] = OrderedDict()

    def __init__(self, text: bytes) -> None:
        """`text`: compact JSON of a schema that `problem` found nothing wrong with."""
        self._whole = text
        self._before = self._after = 0  # bytes of `_whole` that are not the text
        self._hash: int | None = None

    @property
    def text(self) -> bytes:
        """Compact JSON."""
        return self._whole[self._before : len(self._whole) - self._after]

    def read_from(self, whole: bytes, start: int) -> None:
        """Keep `whole`, which holds the text at `start`, instead of a copy of the text. In the loop's thread only."""
        size = len(self._whole) - self._before - self._after
        if size >= _SHORT:
            self._whole, self._before, self._after = whole, start, len(whole) - start - size

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Schema) and other.text == self.text)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.text)
        return self._hash

    def __reduce__(self) -> tuple[type[Schema], tuple[bytes]]:
        return Schema, (self.text,)

    def value(self) -> Any:  # noqa: ANN401 - JSON is of any type
        """The schema as JSON values (decoded anew each time: schemas are kept as text to save memory)."""
        return _decode(self.text)

    def mismatch(self, instance: object) -> str | None:
        """Why `instance` does not match, as one line with the place in it, or None when it matches."""
        validator = self._validator()
        if validator.is_valid(instance):
            return None
        for error in validator.iter_errors(instance):
            where = "".join(f"/{part}" for part in error.instance_path) or "(root)"
            return f"{where}: {_shorten(error.message)}"
        return None

    def matches(self, instance: object) -> bool:
        """Whether `instance` is valid; the cheap form of `mismatch`."""
        return self._validator().is_valid(instance)

    def _validator(self) -> jsonschema_rs.Validator:
        cache = Schema._compiled
        found = cache.get(self)
        if found is not None:
            cache.move_to_end(self)
            return found
        made = _compile(self.value())
        cache[self] = made
        if len(cache) > MAX_COMPILED:
            cache.popitem(last=False)
        return made


EMPTY_OBJECT: Final = Schema(b'{"type":"object","additionalProperties":false}')
"""The input schema of a tool without parameters, as MCP recommends it."""


def parse(text: bytes | str) -> Schema | str:
    """A Schema, or why `text` is not one: not JSON, not an object, not JSON Schema, a reference that leaves it."""
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"not valid JSON: {error}"
    return of(value)


def of(value: object) -> Schema | str:
    """Like `parse`, for a schema that is JSON values already."""
    if not isinstance(value, dict):
        return "a schema must be a JSON object"
    try:
        text = _encode(value)
    except (RecursionError, OverflowError, TypeError) as error:
        return f"not usable as JSON Schema: {_shorten(str(error))}"
    if not (_plain(text) and jsonschema_rs.meta.is_valid(value)):
        problem = check(value)
        if problem is not None:
            return problem
    return Schema(text)


def check(value: dict[str, object]) -> str | None:
    """Why the schema cannot be used, or None. Compiles it once and throws the result away."""
    try:
        _compile(value)
    except jsonschema_rs.ValidationError as error:
        where = "".join(f"/{part}" for part in error.instance_path) or "(root)"
        return f"not valid JSON Schema at {where}: {_shorten(error.message)}"
    except (ValueError, RecursionError, OverflowError) as error:
        return f"not usable as JSON Schema: {_shorten(str(error))}"
    return None


def _plain(text: bytes) -> bool:
    """Whether the meta-schema alone decides: a third of a compilation's cost, which then waits for the first call.

    Compilation finds more only in references and identifiers (`$…`), patterns, and in nesting beyond its limit.
    """
    return (
        (b"$" not in text or b'"$' not in text)
        and b'"pattern' not in text
        and text.count(b"{") + text.count(b"[") < _SHALLOW
    )


def _compile(value: dict[str, Any]) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(value, retriever=_refuse)


def _shorten(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
