"""JSON-RPC on the wire: bytes to one message, and answers as bytes. Pure.

In: a POST body. Out: `Request`, `Notification`, `Response` (posted by a client) or `Fault`. Ids and params stay the
caller's own bytes. Called by front; answers are joined here and nowhere else.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

NULL: Final = b"null"
_INTEGER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)\Z")

Params = dict[str, Raw]


class _Strict(msgspec.Struct):
    jsonrpc: str | UnsetType = UNSET
    id: Raw = Raw(b"")
    method: str | UnsetType = UNSET
    params: Params | UnsetType = UNSET
    result: Raw = Raw(b"")
    error: Raw = Raw(b"")


class _Lenient(msgspec.Struct):
    id: Raw = Raw(b"")
    method: Raw = Raw(b"")
    params: Raw = Raw(b"")


_decode_strict = msgspec.json.Decoder(_Strict).decode
_decode_lenient = msgspec.json.Decoder(_Lenient).decode
_decode_any = msgspec.json.Decoder().decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_decode_params = msgspec.json.Decoder(Params).decode
_decode_text = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode

Malformed: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not the JSON that was asked for."""


@dataclasses.dataclass(slots=True)
class Request:
    """A call that is owed an answer. `id` and the params' values are the sender's bytes."""

    id: bytes
    method: str
    params: Params


@dataclasses.dataclass(slots=True)
class Notification:
    """A message without an id."""

    method: str
    params: Params


@dataclasses.dataclass(slots=True)
class Response:
    """An answer that a client posted (we never ask, so it is dropped)."""


@dataclasses.dataclass(slots=True)
class Fault:
    """Not a message that can be served: the error to answer with."""

    id: bytes
    code: int
    message: str


Message = Request | Notification | Response | Fault


def parse(body: bytes) -> Message:
    """One message of a POST body."""
    try:
        wire = _decode_strict(body)
    except msgspec.ValidationError:
        return _diagnose(body)
    except Malformed as error:
        return Fault(NULL, PARSE_ERROR, f"Parse error: the body is not valid JSON ({_shorten(error)})")
    raw = bytes(wire.id)
    if wire.method is UNSET:
        if raw and (wire.result or wire.error):
            return Response()
        return Fault(_safe_id(raw), INVALID_REQUEST, "Invalid request: the message has no `method`")
    if wire.jsonrpc != "2.0":
        return Fault(_safe_id(raw), INVALID_REQUEST, 'Invalid request: `jsonrpc` must be "2.0"')
    params = {} if wire.params is UNSET else wire.params
    if not raw:
        return Notification(wire.method, params)
    if not _is_id(raw):
        return Fault(NULL, INVALID_REQUEST, "Invalid request: `id` must be a string or an integer")
    return Request(raw, wire.method, params)


def _diagnose(body: bytes) -> Fault:
    """Well-formed so far, but not of the right shape: say which part, and echo the id where there is one."""
    if body.lstrip()[:1] == b"[":
        return Fault(NULL, INVALID_REQUEST, "Invalid request: batches are not supported, send one message per POST")
    try:
        wire = _decode_lenient(body)
    except msgspec.ValidationError:
        return Fault(NULL, INVALID_REQUEST, "Invalid request: the body must be one JSON-RPC message, a JSON object")
    except Malformed as error:
        return Fault(NULL, PARSE_ERROR, f"Parse error: the body is not valid JSON ({_shorten(error)})")
    identity = _safe_id(bytes(wire.id))
    if wire.method and bytes(wire.method)[:1] != b'"':
        return Fault(identity, INVALID_REQUEST, "Invalid request: `method` must be a string")
    if wire.params and bytes(wire.params)[:1] != b"{":
        return Fault(identity, INVALID_PARAMS, "Invalid params: `params` must be an object")
    return Fault(identity, INVALID_REQUEST, 'Invalid request: `jsonrpc` must be "2.0"')


def _is_id(raw: bytes) -> bool:
    if raw[:1] != b'"':
        return _INTEGER.match(raw) is not None
    if raw.isascii():
        return True
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _safe_id(raw: bytes) -> bytes:
    return raw if raw and _is_id(raw) else NULL


def _shorten(error: BaseException) -> str:
    return str(error)[:120]


def member(params: Params, key: str) -> bytes:
    """The JSON of one param; `null` when it is absent."""
    found = params.get(key)
    return NULL if found is None else bytes(found)


def text(raw: Raw | bytes) -> str | None:
    """The string that these bytes are, or None if they are anything else."""
    try:
        return _decode_text(raw)
    except Malformed:
        return None


def members(raw: Raw | bytes) -> Params | None:
    """The members of the object that these bytes are, values undecoded, or None if they are anything else."""
    try:
        return _decode_params(raw)
    except Malformed:
        return None


def value(raw: Raw | bytes) -> object:
    """Any JSON value. Raises one of `Malformed`."""
    return _decode_any(raw)


def obj(raw: Raw | bytes) -> dict[str, Any] | None:
    """The decoded object that these bytes are, or None if they are anything else."""
    try:
        return _decode_object(raw)
    except Malformed:
        return None


def result(identity: bytes, body: bytes) -> bytes:
    """The answer to a request: `body` is the result as JSON."""
    return b'{"jsonrpc":"2.0","id":' + identity + b',"result":' + body + b"}"


def error(identity: bytes, code: int, message: str, data: bytes | None = None) -> bytes:
    """The error answer to a request. `data` is JSON."""
    tail = b"}}" if data is None else b',"data":' + data + b"}}"
    return b'{"jsonrpc":"2.0","id":' + identity + b',"error":{"code":%d,"message":' % code + _encode(message) + tail


def notification(method: str, params: bytes | None = None) -> bytes:
    """A notification of ours. `params` is a JSON object."""
    tail = b"}" if params is None else b',"params":' + params + b"}"
    return b'{"jsonrpc":"2.0","method":' + _encode(method) + tail
