"""JSON-RPC as MCP servers speak it, from and to bytes. Pure.

In: the parts of a request as ready JSON, the bytes of an answer. Out: request bytes, a `Message`, a `CallResult`, an
`RpcError`, or a sentence that says what is wrong with what the server sent.
Called by everything in this package that talks to a server.

Values that are passed on are never decoded: `msgspec.Raw` keeps the server's own bytes, so numbers, key order and
unknown members come out as they went in.
"""

from __future__ import annotations

from typing import Final

import msgspec

from arion_tds.model.result import CallFailure, CallResult, ErrorCode, RpcError, failed

MODERN_PREFIX: Final = "io.modelcontextprotocol/"
"""Reserved `_meta` keys of 2026-07-28; they stay between the two ends of one hop."""

_SERVER_INFO: Final = MODERN_PREFIX + "serverInfo"

encode: Final = msgspec.json.Encoder().encode
members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
"""A JSON object as its members, each still JSON."""

_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
BAD_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding bytes of a stranger may raise."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """One JSON-RPC message. An absent member is empty bytes; `method` is empty in a response."""

    id: msgspec.Raw = msgspec.Raw()
    method: str = ""
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()

    @property
    def is_response(self) -> bool:
        """Whether it answers a request."""
        return not self.method

    @property
    def is_request(self) -> bool:
        """Whether it asks for an answer."""
        return bool(self.method) and len(bytes(self.id)) > 0


class _Error(msgspec.Struct, frozen=True):
    code: int
    message: str | None = None
    data: msgspec.Raw = msgspec.Raw()


_message = msgspec.json.Decoder(Message).decode
_error = msgspec.json.Decoder(_Error).decode


def clean(body: bytes) -> bytes | str:
    """The JSON text without byte order mark and without raw line breaks (they would break an SSE frame of ours)."""
    if body.startswith(b"\xef\xbb\xbf"):
        body = body[3:]
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError as error:
            return f"not UTF-8: {error.reason} at byte {error.start}"
    if b"\n" in body or b"\r" in body:
        try:
            return msgspec.json.format(body, indent=-1)
        except BAD_JSON as error:
            return f"not JSON: {error}"
    return body


def parse(body: bytes) -> list[Message] | str:
    """The messages of one body or SSE event (a 2025-03-26 server may send several as an array), or what is wrong."""
    text = clean(body)
    if isinstance(text, str):
        return text
    try:
        if text[:1] == b"[" or text.lstrip()[:1] == b"[":
            return [_message(bytes(each)) for each in _elements(text)]
        return [_message(text)]
    except msgspec.ValidationError as error:
        return f"not a JSON-RPC message: {error}"
    except BAD_JSON as error:
        return f"not JSON: {error}"


def request(number: int, method: str, params: bytes) -> bytes:
    """A request. `params` is a JSON object."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (number, method.encode(), params)


def notification(method: str, params: bytes | None = None) -> bytes:
    """A notification. `params` is a JSON object or nothing."""
    if params is None:
        return b'{"jsonrpc":"2.0","method":"%b"}' % method.encode()
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), params)


def answer(ident: bytes, result: bytes) -> bytes:
    """An answer to a server's request."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (ident, result)


def refusal(ident: bytes, code: int, message: str) -> bytes:
    """An error answer to a server's request."""
    return b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":%b}}' % (ident, code, encode(message))


def joined(parts: dict[str, bytes]) -> bytes:
    """A JSON object of members that are JSON already."""
    return b"{" + b",".join([encode(key) + b":" + value for key, value in parts.items()]) + b"}"


def error_of(raw: msgspec.Raw) -> RpcError | str:
    """The error member of a response, code and data as the server gave them; or what is wrong with it."""
    try:
        error = _error(raw)
    except BAD_JSON as problem:
        return f"an error that is not a JSON-RPC error: {problem}"
    data = bytes(error.data)
    return RpcError(error.code, error.message or "", data if data and data != b"null" else None)


def result_of(raw: msgspec.Raw, *, from_modern: bool, for_modern: bool) -> CallResult | str:
    """A tools/call result, every member kept; or what is wrong with it.

    An `input_required` result (or one of an extension's kinds) reaches modern callers only: nobody else can answer it.
    """
    try:
        parts = members(raw)
        kind = _text(parts.pop("resultType", None)) or "complete"
        is_error = _flag(parts.pop("isError", None))
        content = _value(parts.pop("content", None)) or b"[]"
        meta = own_meta(_value(parts.pop("_meta", None)))
    except BAD_JSON as error:
        return f"a result that is not a tool result: {error}"
    if not content.startswith(b"["):
        return "a result whose content is not an array"
    if kind != "complete" and not for_modern:
        return failed(CallFailure(ErrorCode.UPSTREAM_ERROR, _needs_modern(kind)))
    structured: bytes | None = None
    if "structuredContent" in parts:
        structured = bytes(parts.pop("structuredContent"))
        # Any JSON value is structured content since 2026-07-28; before that null could only mean "none".
        if structured == b"null" and not from_modern:
            structured = None
    extra = b""
    if parts:
        extra = b"".join([b"," + encode(key) + b":" + bytes(value) for key, value in parts.items()])
    return CallResult(
        content=content, structured=structured, is_error=is_error, meta=meta, extra=extra, result_type=kind
    )


def _needs_modern(kind: str) -> str:
    if kind == "input_required":
        return (
            "the tool asks its caller for further input (input_required), which only clients of MCP 2026-07-28 can "
            "give; call it with such a client, or give it arguments with which it needs no input"
        )
    return f"the tool answered with a result of type {kind!r}, which this client's protocol revision does not know"


def own_meta(raw: bytes) -> bytes:
    """The members of a result's `_meta` without braces, minus the server's identity (this gateway puts its own)."""
    if raw in {b"", b"{}"}:
        return b""
    if b"serverInfo" not in raw and b"\\" not in raw and raw[:1] == b"{":
        return raw[1:-1].strip()
    parts = {key: bytes(value) for key, value in members(raw).items() if key != _SERVER_INFO}
    return joined(parts)[1:-1]


def _value(raw: msgspec.Raw | None) -> bytes:
    text = b"" if raw is None else bytes(raw)
    return b"" if text == b"null" else text


def _flag(raw: msgspec.Raw | None) -> bool:
    return raw is not None and bytes(raw) == b"true"


def _text(raw: msgspec.Raw | None) -> str | None:
    text = _value(raw)
    return msgspec.json.decode(text, type=str) if text else None
