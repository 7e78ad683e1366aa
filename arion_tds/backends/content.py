"""A response body as MCP content: text where it is text, base64 blocks where it is not.

In: HttpResponse. Out: decoded text, or a content array as compact JSON. Called by transcode. Pure.
"""

from __future__ import annotations

import base64
import codecs
import re
from typing import Final

import msgspec

from arion_tds.model.http import HttpResponse
from arion_tds.model.result import text_block

_encode = msgspec.json.Encoder().encode

_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^\s;"]+)', re.IGNORECASE)
_TEXTUAL = re.compile(
    r"text/.*|.*\+(?:json|xml|yaml)|application/(?:json|x-?ndjson|jsonl|json-seq|xml|xml-dtd|javascript|ecmascript"
    r"|x-javascript|yaml|x-yaml|toml|graphql|sql|x-www-form-urlencoded|problem\+json)\Z"
)
_BINARY = re.compile(
    r"(?:video|font|model)/.*|application/(?:octet-stream|pdf|zip|gzip|x-gzip|x-tar|x-7z-compressed|wasm|protobuf"
    r"|x-protobuf|msgpack|cbor)\Z"
)
_BOM: Final = codecs.BOM_UTF8
_UTF8: Final = frozenset({"utf-8", "utf8", "us-ascii"})

RESOURCE_URI: Final = "urn:arion-tds:response"
"""The uri of an embedded resource block: the bytes are in the block, there is nothing to read."""


def media_type(response: HttpResponse) -> str:
    """The content type without parameters, lower case; empty when the response has none."""
    return (response.header("content-type") or "").partition(";")[0].strip().lower()


def utf8(response: HttpResponse) -> bytes:
    """The body in UTF-8 without byte order mark: untouched unless its charset is another one that is known."""
    found = _CHARSET.search(response.header("content-type") or "")
    name = found.group(1).lower() if found is not None else "utf-8"
    if name not in _UTF8:
        try:
            return response.body.decode(name, "replace").encode("utf-8", "replace").removeprefix(_BOM)
        except (LookupError, ValueError):  # unknown, or no text encoding at all: read as UTF-8
            pass
    return response.body.removeprefix(_BOM)


def text_of(response: HttpResponse) -> str:
    """The body decoded by its charset (UTF-8 when it names none, or none that is known), bad bytes replaced."""
    return utf8(response).decode("utf-8", "replace")


def is_text(response: HttpResponse) -> bool:
    """Whether the body is text by its type; where the type does not tell, whether it reads as UTF-8 without NUL."""
    kind = media_type(response)
    if _TEXTUAL.match(kind):
        return True
    if kind.startswith(("image/", "audio/")) or _BINARY.match(kind):
        return False
    try:
        response.body.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in response.body


def blocks(response: HttpResponse) -> bytes:
    """The body as a content array of one block: text, image, audio or an embedded resource."""
    if not response.body:
        return text_block("")
    if is_text(response):
        return text_block(text_of(response))
    kind = media_type(response)
    data = base64.b64encode(response.body).decode()
    if kind.startswith(("image/", "audio/")):
        block: dict[str, object] = {"type": kind.partition("/")[0], "data": data, "mimeType": kind}
    else:
        resource = {"uri": RESOURCE_URI, "mimeType": kind or "application/octet-stream", "blob": data}
        block = {"type": "resource", "resource": resource}
    return b"[" + _encode(block) + b"]"


def excerpt(response: HttpResponse, limit: int) -> str:
    """The start of the body for an error message, at most `limit` bytes of UTF-8; what it is, when it is not text."""
    if not response.body:
        return ""
    if not is_text(response):
        return f"({len(response.body)} bytes of {media_type(response) or 'binary data'})"
    text = text_of(response).strip()
    data = text.encode()
    if len(data) <= limit:
        return text
    return data[: limit - 3].decode("utf-8", "ignore") + "…"
