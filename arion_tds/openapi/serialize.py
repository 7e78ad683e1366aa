"""One value of one parameter as text on the wire: OpenAPI's styles, by hand.

In: JSON values and how they are to be written. Out: encoded text, or `Refused` with a sentence about the argument.
Called by request and forms. RFC 6570 where it applies: delimiters stay raw, the same characters inside values do not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import msgspec

from arion_tds.openapi.binding import Parameter
from arion_tds.openapi.value import Json

_encode = msgspec.json.Encoder().encode

_RESERVED: Final = ":/?@!$'()*,;="
"""What allowReserved leaves raw: RFC 3986's reserved characters without those that would end the value."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NOT_HEADER = re.compile(r"[^\x20-\x7e\t]")
_DELIMITERS: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}


class Refused(Exception):  # noqa: N818 - not an error of ours: it says what the argument is
    """An argument that cannot be sent. Private to this package: request turns it into a CallFailure."""


def scalar(value: Json) -> str:
    """Text of one JSON value: `true`, `1`, `1.5`, text as it is, nothing for null, objects and lists as JSON."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if value is None:
        return ""
    if kind is float:
        if not math.isfinite(value):
            raise Refused("is not a finite number")
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    return json_text(value)


def json_text(value: Json) -> str:
    """Compact JSON."""
    return json_bytes(value).decode()


def json_bytes(value: Json) -> bytes:
    """Compact JSON. Refuses what JSON cannot hold (lone surrogates, unbounded nesting)."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, RecursionError, TypeError, ValueError) as error:
        raise Refused(f"cannot be written as JSON: {error}") from error


def encoded(text: str, safe: str = "") -> str:
    """Percent-encoded UTF-8."""
    if text.isalnum() and text.isascii():
        return text
    try:
        return quote(text, safe=safe)
    except UnicodeEncodeError as error:
        raise Refused("holds half of a surrogate pair, which is no character") from error


# --- path


def path(parameter: Parameter, value: Json) -> str:
    """Text for one place of a path. It never adds a segment: values are encoded, none is empty or a dot segment."""
    if parameter.json:
        return _segment(json_text(value))
    style, explode = parameter.style, parameter.explode
    if type(value) is list or type(value) is dict:
        if not value:
            raise Refused("is empty, but stands in the path")
        parts = _path_pairs(value, explode=explode) if isinstance(value, dict) else _path_items(value)
        if style == "label":
            return "." + ("." if explode else ",").join(parts)
        if style == "matrix":
            name = f";{parameter.wire}="
            if not explode:
                return name + ",".join(parts)
            return "".join(f";{part}" for part in parts) if type(value) is dict else "".join(name + p for p in parts)
        return ",".join(parts)
    text = _segment(scalar(value))
    if style == "label":
        return "." + text
    return f";{parameter.wire}={text}" if style == "matrix" else text


def _segment(text: str) -> str:
    if text in ("", ".", ".."):
        raise Refused(f"is {text!r}, which cannot be a path segment")
    if _CONTROL.search(text):
        raise Refused("holds control characters, which a path must not")
    return encoded(text)


def _path_items(value: list[Json]) -> list[str]:
    return [_segment(scalar(item)) for item in value]


def _path_pairs(value: dict[str, Json], *, explode: bool) -> list[str]:
    joint = "=" if explode else ","
    return [_segment(key) + joint + _segment(scalar(item)) for key, item in value.items()]


# --- query and urlencoded forms


def query(parameter: Parameter, value: Json, out: list[str]) -> None:
    """Append the `name=value` pairs of one query parameter. Null, and an empty list or object, add nothing."""
    kind = type(value)
    name = parameter.wire
    if parameter.json:
        out.append(f"{name}={encoded(json_text(value))}")
    elif kind is str or kind is int:
        out.append(f"{name}={encoded(value if kind is str else str(value), _RESERVED if parameter.reserved else '')}")
    elif value is None:
        return
    elif kind is list or kind is dict:
        safe = _RESERVED if parameter.reserved else ""

        def write(item: Json) -> str:
            return encoded(scalar(item), safe)

        pairs(name, parameter.style, value, out, write, explode=parameter.explode)
    else:
        out.append(f"{name}={encoded(scalar(value))}")


def pairs(
    name: str,
    style: str,
    value: Json,
    out: list[str],
    write: Callable[[Json], str],
    *,
    explode: bool,
    indexed: bool = False,
) -> None:
    """Append the pairs of a list or object. `write` encodes one value (blanks differ between queries and forms)."""
    if style == "deepObject":
        _deep(name, value, out, write, indexed=indexed or type(value) is list)
    elif type(value) is list:
        if explode:
            out.extend([f"{name}={write(item)}" for item in value])
        elif value:
            out.append(f"{name}={_DELIMITERS.get(style, ',').join([write(item) for item in value])}")
    elif explode:
        for key, item in value.items():
            many = item if type(item) is list else [item]
            out.extend([f"{write(key)}={write(one)}" for one in many if one is not None])
    elif value:
        joint = _DELIMITERS.get(style, ",")
        out.append(f"{name}={joint.join([write(part) for pair in value.items() for part in pair])}")


def _deep(
    name: str, value: Json, out: list[str], write: Callable[[Json], str], *, indexed: bool, depth: int = 0
) -> None:
    """`p[k]=v`, `p[k][j]=v`; lists inside repeat `p[k]`, or count `p[k][0]` where `indexed`."""
    if depth > 32:
        raise Refused("nests too deeply for deepObject")
    if type(value) is dict:
        for key, item in value.items():
            _deep(f"{name}%5B{write(key)}%5D", item, out, write, indexed=indexed, depth=depth + 1)
    elif type(value) is list:
        for number, item in enumerate(value):
            counted = indexed or type(item) in (dict, list)
            _deep(f"{name}%5B{number}%5D" if counted else name, item, out, write, indexed=indexed, depth=depth + 1)
    elif value is not None:
        out.append(f"{name}={write(value)}")


# --- headers and cookies


def header(parameter: Parameter, value: Json) -> str:
    """A header value, style simple: not encoded, so only visible ASCII, blanks and tabs are possible."""
    if parameter.json:
        text = json_text(value)
    elif type(value) is list:
        text = ",".join([scalar(item) for item in value])
    elif type(value) is dict:
        joint = "=" if parameter.explode else ","
        text = ",".join([f"{key}{joint}{scalar(item)}" for key, item in value.items()])
    else:
        text = scalar(value)
    bad = _NOT_HEADER.search(text)
    if bad is not None:
        raise Refused(f"holds {bad.group()!r}: a header takes visible ASCII, blanks and tabs only")
    return text.strip(" \t")


def cookie(parameter: Parameter, value: Json) -> list[str]:
    """The `name=value` pairs of one cookie parameter; every character that could end a cookie is encoded."""
    if parameter.json:
        return [f"{parameter.wire}={encoded(json_text(value))}"]
    if type(value) is list or type(value) is dict:
        out: list[str] = []
        pairs(parameter.wire, "form", value, out, lambda item: encoded(scalar(item)), explode=parameter.explode)
        return out
    return [f"{parameter.wire}={encoded(scalar(value))}"]
