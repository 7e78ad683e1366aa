"""The request target of a REST tool: its path template and query parameters filled with a call's arguments.

In: RestBackend and the arguments (JSON values). Out: path and query as they go on the wire, or the failure that names
the argument. Called by transcode. Pure.

Three rules keep an argument inside its segment: everything outside RFC 3986's unreserved characters is
percent-encoded (also `/ % ; ? #`), a value that is empty or a dot segment is refused (also one that becomes a dot
segment by percent-decoding any number of times, or together with its neighbours), and the path that comes out has
exactly the slashes of the template.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Final
from urllib.parse import quote

import msgspec

from arion_tds.model.backend import QueryParam, RestBackend
from arion_tds.model.result import CallFailure, ErrorCode
from arion_tds.model.template import MISSING, Template, Variable, lookup

_encode = msgspec.json.Encoder().encode

_PLAIN = re.compile(r"[A-Za-z0-9_.~\-]*\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DOTS = re.compile(r"(?:\.|%(?:25)*2e){1,2}\Z", re.IGNORECASE)
_DOT_SEGMENT = re.compile(r"/(?:\.|%(?:25)*2e){1,2}(?:/|\Z)", re.IGNORECASE)
_LITERAL = re.compile(r"[!$-;=?-\[\]_a-z~]*\Z")
_LITERAL_SAFE: Final = "/?:@!$&'()*+,;=-._~%[]"


def target(backend: RestBackend, arguments: dict[str, object]) -> str | CallFailure:
    """Path and query, percent-encoded, starting with `/`. A failure is always `invalid_arguments`."""
    parts = backend.path.parts
    constant = parts[0] if len(parts) == 1 else None
    filled = _constant(constant) if isinstance(constant, str) else _fill(backend.path, arguments)
    if isinstance(filled, CallFailure) or not backend.query:
        return filled
    pairs: list[str] = []
    for param in backend.query:
        refused = _query(param, lookup(arguments, param.source), pairs)
        if refused is not None:
            return refused
    if not pairs:
        return filled
    if "?" not in filled:
        return f"{filled}?{'&'.join(pairs)}"
    joint = "" if filled.endswith(("?", "&")) else "&"
    return f"{filled}{joint}{'&'.join(pairs)}"


def scalar(value: object) -> str | None:
    """A JSON scalar as the text of a URL or header; None for null, lists, objects and numbers that JSON lacks.

    Integral floats are written as integers: JSON does not tell 3.0 from 3.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _encode(value).decode()
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
    return None


def refusal(what: str) -> CallFailure:
    """An `invalid_arguments` failure: the sentence says which argument and what to give instead."""
    return CallFailure(ErrorCode.INVALID_ARGUMENTS, what)


def kind(value: object) -> str:
    """What JSON calls the value, for sentences."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, dict) else "not a finite number"


@functools.lru_cache(maxsize=4096)
def _constant(path: str) -> str | CallFailure:
    """A path without variables: the same for every call."""
    return _fill(Template((path,)), {})


def _fill(template: Template, arguments: dict[str, object]) -> str | CallFailure:
    done: list[str] = []
    slashes = 0
    in_query = False
    for part in template.parts:
        if isinstance(part, str):
            literal = part if _LITERAL.match(part) else quote(part, safe=_LITERAL_SAFE)
            if not in_query:
                path, mark, _ = literal.partition("?")
                slashes += path.count("/")
                in_query = bool(mark)
            done.append(literal)
            continue
        text = _text(part, arguments)
        if isinstance(text, CallFailure):
            return text
        if not in_query:
            refused = _segment(part, text)
            if refused is not None:
                return refused
        done.append(text if _PLAIN.match(text) else quote(text, safe=""))
    filled = "".join(done)
    if not filled.startswith("/"):
        filled = "/" + filled
        slashes += 1
    return _checked(filled, slashes, template)


def _text(variable: Variable, arguments: dict[str, object]) -> str | CallFailure:
    value = lookup(arguments, variable.path)
    if value is MISSING:
        return refusal(f'argument "{variable.name}" is missing: the request path needs it')
    text = scalar(value)
    if text is None:
        return refusal(
            f'argument "{variable.name}" is {kind(value)}: the request path takes a string, number or boolean'
        )
    return text


def _segment(variable: Variable, text: str) -> CallFailure | None:
    if not text:
        return refusal(f'argument "{variable.name}" is empty: a path segment must hold something')
    if _CONTROL.search(text):
        return refusal(f'argument "{variable.name}" holds a control character: a path segment must not')
    if _DOTS.match(text):
        return refusal(f'argument "{variable.name}" is a dot segment: it would leave its place in the path')
    return None


def _checked(filled: str, slashes: int, template: Template) -> str | CallFailure:
    path = filled.partition("?")[0]
    if path.count("/") != slashes:  # cannot be: quote leaves no slash; a second lock on the same door
        return refusal("the arguments would change the number of segments of the request path")
    if _DOT_SEGMENT.search(path):
        around = "".join([part if isinstance(part, str) else "x" for part in template.parts])
        if not _DOT_SEGMENT.search("/" + around.partition("?")[0]):
            names = ", ".join([variable.name for variable in template.variables()])
            return refusal(f"the arguments {names} together make a dot segment: it would leave its place in the path")
    return filled


def _query(param: QueryParam, value: object, pairs: list[str]) -> CallFailure | None:
    if value is MISSING or value is None:
        return None
    name = param.name if _PLAIN.match(param.name) else quote(param.name, safe="")
    for item in value if isinstance(value, list) else (value,):
        text = _encode(item).decode() if isinstance(item, dict | list) else scalar(item)
        if text is None:
            if item is None:
                continue
            return refusal(f'argument "{".".join(param.source)}" holds {kind(item)}: give finite numbers')
        pairs.append(f"{name}={text if _PLAIN.match(text) else quote(text, safe='')}")
    return None
