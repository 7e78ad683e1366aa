"""How one operation's arguments become its HTTP request: made once by operations, read at every call by request.

Values only, compact when pickled: the same parameter of many operations is the same object. What can be computed before
the call (encoded names, literal path parts, the Accept header) already is.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

Location = Literal["path", "query", "header", "cookie"]
BodyKind = Literal["json", "form", "multipart", "text", "binary"]


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """One argument outside the body. `wire` is the name as it goes out, already percent-encoded where that applies.

    `style` and `explode` are OpenAPI's, with defaults applied. `reserved` is allowReserved. `json` tells that the
    parameter has JSON `content`: its value goes out as JSON text.
    """

    argument: str
    wire: str
    location: Location
    style: str
    explode: bool
    reserved: bool = False
    json: bool = False
    required: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """One property of the body: its argument and name, and for forms how its value is written.

    `style` "" is the media type's own way (arrays repeat, objects are JSON). `content_type` is what a multipart part
    says; `json` writes any value as JSON; `binary` means that the value is base64 text of the bytes to send.
    """

    argument: str
    name: str
    style: str = ""
    explode: bool = True
    content_type: str = ""
    json: bool = False
    binary: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Body:
    """The request body. `argument` carries the whole of it, or is None: then the fields' arguments make it up."""

    kind: BodyKind
    content_type: str
    argument: str | None
    fields: tuple[Field, ...] = ()
    required: bool = False
    max_bytes: int = 10 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class Binding:
    """One operation. `path` alternates literals and parameters; `query` is the literal query of its path, if any.

    `defaults` are filled in for required arguments that are absent. `safe` and `idempotent` are HTTP's words for the
    method.
    """

    method: str
    path: tuple[str | Parameter, ...]
    accept: str
    query: str = ""
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    defaults: tuple[tuple[str, object], ...] = ()

    @property
    def safe(self) -> bool:
        """A call changes nothing upstream."""
        return self.method in _SAFE

    @property
    def idempotent(self) -> bool:
        """A call made twice does what one call does."""
        return self.method in _IDEMPOTENT


_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "QUERY"})
_IDEMPOTENT = _SAFE | {"PUT", "DELETE"}
