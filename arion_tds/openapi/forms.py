"""Request bodies that are not JSON: urlencoded and multipart forms, text, raw bytes.

In: the body's value and its Body. Out: bytes and the Content-Type, or Refused. Called by request.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from urllib.parse import quote_plus, unquote_plus

from arion_tds.openapi import serialize
from arion_tds.openapi.binding import Body, Field
from arion_tds.openapi.serialize import Refused, json_bytes, scalar
from arion_tds.openapi.value import Json


def write(body: Body, value: Json, fields: dict[str, Field]) -> tuple[bytes, str]:
    """The body and its Content-Type. `fields` are those of the value's properties that have a way of their own."""
    if body.kind == "json":
        return json_bytes(value), body.content_type
    if body.kind == "form":
        return urlencoded(value, fields), body.content_type
    if body.kind == "multipart":
        return multipart(value, fields, body.content_type)
    if body.kind == "binary":
        return from_base64(value), body.content_type
    return _text_bytes(value), body.content_type


def _text_bytes(value: Json) -> bytes:
    try:
        return scalar(value).encode()
    except UnicodeEncodeError as error:
        raise Refused("holds half of a surrogate pair, which is no character") from error


def from_base64(value: Json) -> bytes:
    """The bytes of base64 text, in the standard or the URL alphabet, padded or not."""
    if not isinstance(value, str):
        raise Refused("must be base64 text")
    text = value.strip().replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused(f"is not base64 text: {error}") from error


def _plus(value: Json) -> str:
    try:
        return quote_plus(scalar(value))
    except UnicodeEncodeError as error:
        raise Refused("holds half of a surrogate pair, which is no character") from error


def urlencoded(value: Json, fields: dict[str, Field]) -> bytes:
    """`application/x-www-form-urlencoded`: arrays repeat, objects are JSON, unless the encoding says else."""
    if not isinstance(value, dict):
        raise Refused("must be an object: it is sent as a form")
    out: list[str] = []
    for name, item in value.items():
        field = fields.get(name)
        key = _plus(name)
        if item is None:
            continue
        if field is not None and field.json:
            out.append(f"{key}={_plus(serialize.json_text(item))}")
        elif field is not None and field.style and type(item) in (dict, list):
            serialize.pairs(key, field.style, item, out, _plus, explode=field.explode, indexed=True)
        elif type(item) is list:
            out.extend([f"{key}={_plus(one)}" for one in item])
        else:
            out.append(f"{key}={_plus(item)}")
    return "&".join(out).encode()


def multipart(value: Json, fields: dict[str, Field], content_type: str) -> tuple[bytes, str]:
    """`multipart/form-data`. The boundary is a digest of the parts, so it stands in none of them."""
    if not isinstance(value, dict):
        raise Refused("must be an object: it is sent as a form")
    parts: list[bytes] = []
    for name, item in value.items():
        field = fields.get(name) or Field(name, name)
        if item is None:
            continue
        if field.style and type(item) in (dict, list):
            parts.extend(_styled(field, item))
        else:
            many = item if type(item) is list and not field.json else [item]
            parts.extend([_part(field, one) for one in many])
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    boundary = f"part-{digest.hexdigest()[:32]}"
    edge = b"--" + boundary.encode()
    body = b"".join([edge + b"\r\n" + part + b"\r\n" for part in parts]) + edge + b"--\r\n"
    return body, f"{content_type}; boundary={boundary}"


def _styled(field: Field, value: Json) -> list[bytes]:
    """Parts of a list or object whose encoding names a style: the pairs that a query would have, not encoded."""
    out: list[str] = []
    serialize.pairs(_plus(field.name), field.style, value, out, _plus, explode=field.explode, indexed=True)
    pairs = [pair.partition("=")[::2] for pair in out]
    return [_part(Field("", unquote_plus(name)), unquote_plus(text)) for name, text in pairs]


def _part(field: Field, value: Json) -> bytes:
    content_type = field.content_type
    name = field.name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    head = f'Content-Disposition: form-data; name="{name}"'
    if field.binary:
        content = from_base64(value)
        content_type = content_type or "application/octet-stream"
        head += f'; filename="{name}{_extension(content_type)}"'
    elif field.json or type(value) in (dict, list):
        content = json_bytes(value)
        content_type = content_type or "application/json"
    else:
        content = _text_bytes(value)
    if content_type:
        head += f"\r\nContent-Type: {content_type}"
    try:
        return head.encode() + b"\r\n\r\n" + content
    except UnicodeEncodeError as error:
        raise Refused("holds half of a surrogate pair, which is no character") from error


def _extension(content_type: str) -> str:
    main, _, sub = content_type.partition("/")
    if sub.isalnum() and (main in ("image", "audio", "video") or sub in ("pdf", "zip", "json", "csv")):
        return "." + sub
    return ""
