"""An upstream's HTTP answer to the MCP result of an OpenAPI tool.

In: the Binding, the tool's outputSchema (or None), the answer. Out: a CallResult. Called by calls.

2xx JSON becomes structured content and a text block of the same. Other text is a text block, other bytes an image,
audio or embedded resource block. Where an answer does not match the outputSchema, a safe method's call fails (it can
be made again) and shows the body; any other call has happened upstream: it is no error, and only its text is returned.
"""

from __future__ import annotations

import base64
from typing import Final

import msgspec

from arion_tds.model.http import HttpResponse
from arion_tds.model.result import CallFailure, CallResult, ErrorCode, failed, text_block
from arion_tds.openapi.binding import Binding
from arion_tds.schema import Schema

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_RETRYABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_RETRYABLE_ALWAYS: Final = frozenset({429, 503})
"""Statuses that say that the request was not carried out, whatever its method."""

_MAX_EXCERPT: Final = 2_048
_TEXT_TYPES: Final = frozenset(
    {
        *("application/xml", "application/javascript", "application/x-www-form-urlencoded", "application/yaml"),
        *("application/x-yaml", "application/graphql", "application/x-ndjson", "application/jsonl"),
        *("application/toml", "application/sql", "image/svg+xml"),
    }
)


def respond(binding: Binding, output_schema: Schema | None, response: HttpResponse) -> CallResult:
    """The result of one call. Never raises: an answer that cannot be read is a failed result."""
    kind, charset = _content_type(response)
    if not 200 <= response.status < 300:
        return _refused(binding, response, kind, charset)
    if not response.body or binding.method == "HEAD":
        return _empty(binding, output_schema, response)
    if _is_json(kind) or (not kind and response.body[:1] in (b"{", b"[")):
        return _json(binding, output_schema, response, charset)
    if output_schema is not None:
        return _mismatch(binding, response, charset, f"answer is {kind or 'untyped'}, not JSON")
    if _is_text(kind) or (not kind and _is_utf8(response.body)):
        return CallResult(content=text_block(_text(response.body, charset)))
    return CallResult(content=_bytes_block(kind or "application/octet-stream", response.body))


def _content_type(response: HttpResponse) -> tuple[str, str]:
    kind, _, parameters = (response.header("content-type") or "").partition(";")
    charset = "utf-8"
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value:
            charset = value.strip().strip('"').lower()
    return kind.strip().lower(), charset


def _is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith(("+json", "/json"))


def _is_text(kind: str) -> bool:
    return kind.startswith("text/") or kind.endswith(("+xml", "+yaml")) or kind in _TEXT_TYPES


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in body


def _text(body: bytes, charset: str) -> str:
    try:
        return body.decode(charset, "replace").removeprefix("\ufeff")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


def _json(binding: Binding, output_schema: Schema | None, response: HttpResponse, charset: str) -> CallResult:
    body = response.body
    if charset not in ("utf-8", "utf8", "us-ascii") or body.startswith(b"\xef\xbb\xbf"):
        body = _text(body, charset).encode("utf-8", "replace")
    try:
        value = _decode(body)
        compact = body if b"\n" not in body and b"\r" not in body else msgspec.json.format(body, indent=-1)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        if output_schema is None:
            return CallResult(content=text_block(_text(body, "utf-8")))
        return _mismatch(binding, response, charset, f"answer is not JSON: {error}")
    if output_schema is not None:
        problem = _check(output_schema, value)
        if problem is not None:
            return _mismatch(binding, response, charset, f"answer does not match the tool's outputSchema: {problem}")
    return CallResult(content=text_block(compact.decode()), structured=compact)


def _check(output_schema: Schema, value: object) -> str | None:
    try:
        return output_schema.mismatch(value)
    except (ValueError, RecursionError, OverflowError) as error:  # a schema or value the validator cannot hold
        return str(error)[:300]


def _empty(binding: Binding, output_schema: Schema | None, response: HttpResponse) -> CallResult:
    if output_schema is not None and binding.method != "HEAD":
        return _mismatch(binding, response, "utf-8", f"answer {response.status} is empty")
    return CallResult(content=text_block(f"HTTP {response.status}"))


def _mismatch(binding: Binding, response: HttpResponse, charset: str, why: str) -> CallResult:
    text = _text(response.body, charset)
    if not binding.safe:
        return CallResult(content=text_block(text or f"HTTP {response.status}"))
    result = failed(CallFailure(ErrorCode.INVALID_OUTPUT, why, status=response.status))
    if not text:
        return result
    content = result.content[:-1] + b',{"type":"text","text":' + _encode(text) + b"}]"
    return CallResult(content=content, structured=result.structured, is_error=True, failure=result.failure)


def _refused(binding: Binding, response: HttpResponse, kind: str, charset: str) -> CallResult:
    status = response.status
    message = f"upstream answered {status}"
    location = response.header("location")
    if 300 <= status < 400 and location:
        message += " with a redirect, which is not followed"
    if response.body and (not kind or _is_json(kind) or _is_text(kind)):
        excerpt = _text(response.body[: _MAX_EXCERPT * 4], charset).strip()
        if len(excerpt) > _MAX_EXCERPT:
            excerpt = excerpt[: _MAX_EXCERPT - 1] + "…"
        message += f": {excerpt}" if excerpt else ""
    retryable = status in (_RETRYABLE if binding.idempotent else _RETRYABLE_ALWAYS)
    return failed(CallFailure(ErrorCode.UPSTREAM_ERROR, message, retryable=retryable, status=status))


def _bytes_block(kind: str, body: bytes) -> bytes:
    """A content array of one image, audio or embedded resource block."""
    data = base64.b64encode(body)
    name = _encode(kind)
    main = kind.partition("/")[0]
    if main in ("image", "audio"):
        return b'[{"type":"' + main.encode() + b'","data":"' + data + b'","mimeType":' + name + b"}]"
    head = b'[{"type":"resource","resource":{"uri":"response://body","mimeType":'
    return head + name + b',"blob":"' + data + b'"}}]'
