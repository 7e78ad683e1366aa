"""Parameter Objects of one operation: merged, checked, converted.

In: the path item's and the operation's parameter lists. Out: `Argument`s (schema and how the value is sent), not yet
named. Called by operations. A parameter object that many operations refer to is read once.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Final, get_args
from urllib.parse import quote

from arion_tds.openapi.binding import Location
from arion_tds.openapi.convert import Walk
from arion_tds.openapi.refs import Document, Key, Unusable
from arion_tds.openapi.schemas import Converter
from arion_tds.openapi.text import clean
from arion_tds.openapi.value import Json

_LOCATIONS: Final[tuple[str, ...]] = get_args(Location)
_STYLES: Final[dict[str, tuple[str, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form", "cookie"),
}
_IGNORED_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
"""OpenAPI, Parameter Object: a header parameter of this name "SHALL be ignored"."""

_RESERVED_HEADERS: Final = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "cookie"),
        *("te", "trailer", "upgrade", "keep-alive", "expect"),
    }
)
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json\Z|[\w-]+/[\w.+-]+\+json\Z")


@dataclasses.dataclass(frozen=True, slots=True)
class Argument:
    """One parameter, converted. `schema` is shared between operations: never change it; `refs` are what it names."""

    name: str
    location: Location
    style: str
    explode: bool
    reserved: bool
    json: bool
    required: bool
    schema: Json
    refs: tuple[Key, ...]
    where: str

    @property
    def wire(self) -> str:
        """The name as it is sent: percent-encoded, except in headers, where it is a token."""
        return self.name if self.location == "header" else quote(self.name, safe="")


class Reader:
    """Reads the parameters of a document's operations. One per expansion."""

    def __init__(self, document: Document, converter: Converter) -> None:
        self._document = document
        self._converter = converter
        self._known: dict[str, Argument | None] = {}
        self._credentials = _credentials(document)

    def read(self, lists: list[tuple[Json, str]]) -> list[Argument]:
        """Arguments of the (parameter list, pointer) pairs; later lists override earlier ones by name and location."""
        found: dict[tuple[str, str], Argument] = {}
        for items, where in lists:
            if items is None:
                continue
            if not isinstance(items, list):
                raise Unusable(where, "parameters must be a list")
            for number, item in enumerate(items):
                argument = self._one(item, f"{where}/{number}")
                if argument is not None:
                    name = argument.name.lower() if argument.location == "header" else argument.name
                    found[argument.location, name] = argument
        return list(found.values())

    def _one(self, item: Json, where: str) -> Argument | None:
        """The argument, or None for a parameter that is none (the protocol's own headers, credentials)."""
        at, node = self._document.follow(item, where)
        if at == where:
            return self._read(node, where)
        if at not in self._known:
            self._known[at] = self._read(node, at)
        return self._known[at]

    def _read(self, node: Json, where: str) -> Argument | None:
        if not isinstance(node, dict):
            raise Unusable(where, "a parameter must be an object")
        name = node.get("name")
        if not isinstance(name, str) or not name:
            raise Unusable(where, "a parameter needs a name")
        location = _location(node.get("in"), name, where)
        if location == "header":
            if name.lower() in _IGNORED_HEADERS:
                return None
            if name.lower() in _RESERVED_HEADERS or name.lower().startswith("proxy-"):
                if node.get("required") is not True:
                    return None
                raise Unusable(where, f"header {name} belongs to the connection and cannot be an argument")
            if not _TOKEN.match(name):
                raise Unusable(where, f"{name!r} is not a header name")
        if (location, name.lower() if location == "header" else name) in self._credentials:
            return None
        return self._argument(node, name, location, where)

    def _argument(self, node: dict[str, Json], name: str, location: Location, where: str) -> Argument:
        raw, json, at = self._schema_of(node, name, where)
        style = node.get("style") or _STYLES[location][0]
        if style not in _STYLES[location]:
            raise Unusable(
                f"{where}/style", f"style {style!r} is not one of {', '.join(_STYLES[location])} ({location})"
            )
        explode = node.get("explode")
        walk = Walk(self._converter)
        schema = walk.schema(raw, at)
        text = clean(node.get("description"), self._converter.limits.max_description_chars)
        if isinstance(schema, dict) and text and "description" not in schema:
            schema["description"] = text
            schema.pop("title", None)
        if isinstance(schema, dict) and node.get("deprecated") is True:
            schema["deprecated"] = True
        return Argument(
            name=name,
            location=location,
            style=style,
            explode=explode if isinstance(explode, bool) else style in ("form", "cookie"),
            reserved=node.get("allowReserved") is True and location == "query",
            json=json,
            required=location == "path" or node.get("required") is True,
            schema=schema,
            refs=tuple(walk.refs),
            where=where,
        )

    def _schema_of(self, node: dict[str, Json], name: str, where: str) -> tuple[Json, bool, str]:
        """The raw schema, whether the value is sent as JSON, and where the schema stands."""
        content = node.get("content")
        if content is None:
            if "schema" not in node:
                raise Unusable(where, f"parameter {name!r} has neither schema nor content")
            return node["schema"], False, f"{where}/schema"
        if not isinstance(content, dict) or len(content) != 1:
            raise Unusable(f"{where}/content", f"parameter {name!r} needs exactly one media type in content")
        media, value = next(iter(content.items()))
        kind = media.split(";")[0].strip().lower()
        json = _JSON.match(kind) is not None
        if not json and not kind.startswith("text/"):
            raise Unusable(f"{where}/content", f"parameter {name!r} is {media}: only JSON and text can be sent")
        at, value = self._document.follow(value, f"{where}/content")
        schema = value.get("schema", True) if isinstance(value, dict) else True
        return schema, json, f"{at}/schema"


def _location(value: object, name: str, where: str) -> Location:
    match value:
        case "path" | "query" | "header" | "cookie":
            return value
        case "body" | "formData":
            raise Unusable(where, f"parameter {name!r} is in {value!r}, which is Swagger 2.0: use requestBody")
        case "querystring":
            raise Unusable(where, f"parameter {name!r} is the whole query string (in: querystring): not supported")
        case _:
            raise Unusable(where, f"parameter {name!r} is in {value!r}: must be one of {', '.join(_LOCATIONS)}")


def _credentials(document: Document) -> frozenset[tuple[str, str]]:
    """Parameters that carry credentials: they are the cluster's to add, never an argument."""
    found = set()
    for scheme in document.section("components", "securitySchemes").values():
        if isinstance(scheme, dict) and scheme.get("type") == "apiKey":
            name, location = scheme.get("name"), scheme.get("in")
            if isinstance(name, str) and isinstance(location, str):
                found.add((location, name.lower() if location == "header" else name))
    return frozenset(found)
