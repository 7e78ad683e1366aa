"""References inside one document: JSON Pointers (RFC 6901), `$ref` chains, and the refusal of everything else.

In: the decoded root and reference strings. Out: what they point at, with a canonical pointer. Nothing is ever fetched:
a reference that does not start with `#` is refused by name. Used by every module of this package that reads documents.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import unquote

from arion_tds.model.problem import Problem
from arion_tds.openapi.value import Json

MAX_CHAIN: Final = 32
"""References that may lead to one another before content is reached."""


class Unusable(Exception):  # noqa: N818 - not an error of ours: it says what the document is
    """One operation (or response) cannot be served. Private to this package: expand turns it into a Problem."""

    def __init__(self, where: str, why: str) -> None:
        """`where` is a JSON Pointer, `why` the rest of the sentence."""
        super().__init__(f"{where}: {why}")
        self.problem = Problem(where, why)


class Key(NamedTuple):
    """A schema component by pointer. `base` is the variant of a parent without its children, for use inside them."""

    pointer: str
    base: bool = False


def escape(token: str) -> str:
    """One token of a JSON Pointer."""
    return token.replace("~", "~0").replace("/", "~1")


class Document:
    """The decoded document with its version: `3.0`, `3.1` or `3.2`."""

    __slots__ = ("_pointers", "root", "version")

    def __init__(self, root: dict[str, Json], version: str) -> None:
        self.root = root
        self.version = version
        self._pointers: dict[str, tuple[str, Json]] = {}

    @property
    def is_30(self) -> bool:
        """Whether Schema Objects are those of OpenAPI 3.0 (`nullable`, nothing beside `$ref`)."""
        return self.version == "3.0"

    def section(self, *names: str) -> dict[str, Json]:
        """The object at these keys, or an empty one."""
        value: Json = self.root
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def resolve(self, ref: object, where: str) -> tuple[str, Json]:
        """Canonical pointer and target of one reference; a target may be a reference again."""
        if not isinstance(ref, str):
            raise Unusable(where, "$ref must be text")
        known = self._pointers.get(ref)
        if known is not None:
            return known
        if not ref.startswith("#"):
            raise Unusable(
                where,
                f"reference to {_shown(ref)} is not followed: put what it names into the document, under components",
            )
        if ref != "#" and not ref.startswith("#/"):
            raise Unusable(where, f"reference to {_shown(ref)} names an anchor: only #/… pointers are supported")
        tokens = [token.replace("~1", "/").replace("~0", "~") for token in unquote(ref).split("/")[1:]]
        value: Json = self.root
        for token in tokens:
            value = _step(value, token)
            if value is _NOWHERE:
                raise Unusable(where, f"reference to {_shown(ref)}, which the document does not hold")
        found = ("".join("/" + escape(token) for token in tokens), value)
        self._pointers[ref] = found
        return found

    def follow(self, value: Json, where: str) -> tuple[str, Json]:
        """What a Reference Object finally points at (anything else points at itself), and where that stands."""
        at = where
        for _ in range(MAX_CHAIN):
            if not isinstance(value, dict) or "$ref" not in value:
                return at, value
            at, value = self.resolve(value["$ref"], where)
        raise Unusable(where, f"references go in a circle or are chained more than {MAX_CHAIN} times (last: #{at})")


_NOWHERE: Final = object()


def _step(value: Json, token: str) -> Json:
    if isinstance(value, dict):
        return value.get(token, _NOWHERE)
    if isinstance(value, list) and token.isascii() and token.isdigit() and len(token) < 9 and int(token) < len(value):
        return value[int(token)]
    return _NOWHERE


def _shown(ref: str) -> str:
    return repr(ref if len(ref) <= 200 else ref[:199] + "…")
