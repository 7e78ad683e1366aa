"""A REST tool's call as HTTP: arguments to request, response to result.

In: RestBackend and arguments; a tool's output schema and the HttpResponse. Out: HttpRequest, CallResult, or the
failure that names the argument. Called by rest. Pure.

The target is made in `target` (nothing in an argument leaves its segment), content blocks in `content`.
"""

from __future__ import annotations

import http
from typing import Final

import msgspec

from arion_tds.backends.content import blocks, excerpt, utf8
from arion_tds.backends.retry import worth_repeating
from arion_tds.backends.target import kind, refusal, scalar, target
from arion_tds.model.backend import JsonBody, RestBackend
from arion_tds.model.http import HttpRequest, HttpResponse
from arion_tds.model.result import CallFailure, CallResult, ErrorCode, failed, text_block
from arion_tds.model.template import MISSING, Template, lookup
from arion_tds.schema import Schema

EXCERPT_BYTES: Final = 2048
"""Bytes of an upstream's error body that stand in the failure's message."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_JSON: Final = (("content-type", "application/json"),)
_TEXT: Final = (("content-type", "text/plain; charset=utf-8"),)


def build(backend: RestBackend, arguments: dict[str, object]) -> HttpRequest | CallFailure:
    """The request of a call. `arguments` are JSON values that the tool's input schema accepted.

    A failure is `invalid_arguments` and names the argument: absent, not fit for its place, or not sendable.
    """
    try:
        where = target(backend, arguments)
        if isinstance(where, CallFailure):
            return where
        source = backend.body
        if source is None:
            return HttpRequest(backend.method, where)
        if isinstance(source, JsonBody):
            value = lookup(arguments, source.source)
            if value is MISSING:
                return refusal(f'argument "{".".join(source.source)}" is missing: it is the request body')
            return HttpRequest(backend.method, where, _JSON, _encode(value))
        body = _json_body(source, arguments) if source.json else _text_body(source, arguments)
    except UnicodeEncodeError:
        return refusal("an argument holds half of a surrogate pair: it is not Unicode text and cannot be sent")
    if isinstance(body, CallFailure):
        return body
    return HttpRequest(backend.method, where, _JSON if source.json else _TEXT, body)


def answer(output_schema: Schema | None, response: HttpResponse, *, idempotent: bool = False) -> CallResult:
    """The tool result of an upstream's answer.

    2xx with a schema: the body, parsed and validated, is the structured content (its bytes as they came, without line
    breaks between tokens) and a text block; `invalid_output` when it does not match. 2xx without one: its text, or a
    base64 block. Anything else: `upstream_error` with the status; `idempotent` says whether the request's method is.
    """
    if not 200 <= response.status <= 299:
        return failed(_status_failure(response, idempotent=idempotent))
    if output_schema is None:
        return CallResult(content=blocks(response))
    body = utf8(response).strip()
    problem = _mismatch(output_schema, body)
    if problem is not None:
        return failed(CallFailure(ErrorCode.INVALID_OUTPUT, problem, status=response.status))
    if b"\n" in body or b"\r" in body:  # line breaks only stand between tokens; events cannot hold them
        body = msgspec.json.format(body, indent=-1)
    return CallResult(content=text_block(body.decode()), structured=body)


def _json_body(template: Template, arguments: dict[str, object]) -> bytes | CallFailure:
    done: list[bytes] = []
    for part in template.parts:
        if isinstance(part, str):
            done.append(part.encode())
            continue
        value = lookup(arguments, part.path)
        if value is MISSING:
            return refusal(f'argument "{part.name}" is missing: the request body needs it')
        text = _encode(value)
        if part.quoted:
            text = text[1:-1] if isinstance(value, str) else _encode(text.decode())[1:-1]
        done.append(text)
    return b"".join(done)


def _text_body(template: Template, arguments: dict[str, object]) -> bytes | CallFailure:
    done: list[str] = []
    for part in template.parts:
        if isinstance(part, str):
            done.append(part)
            continue
        value = lookup(arguments, part.path)
        if value is MISSING:
            return refusal(f'argument "{part.name}" is missing: the request body needs it')
        text = scalar(value)
        if text is None:
            if isinstance(value, float):
                return refusal(f'argument "{part.name}" is {kind(value)}: give a finite one')
            text = _encode(value).decode()
        done.append(text)
    return "".join(done).encode()


def _mismatch(schema: Schema, body: bytes) -> str | None:
    if not body:
        return "the upstream's answer is empty, and the tool's output schema wants JSON"
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"the upstream's answer is not JSON that can be read: {error}"
    mismatch = schema.mismatch(value)
    if mismatch is None:
        return None
    return f"the upstream's answer does not match the tool's output schema at {mismatch}"


def _status_failure(response: HttpResponse, *, idempotent: bool) -> CallFailure:
    status = response.status
    try:
        said = f"{status} {http.HTTPStatus(status).phrase}"
    except ValueError:
        said = str(status)
    if 300 <= status <= 399:
        said += " (redirects are not followed: point the cluster or path at the final place)"
    shown = excerpt(response, EXCERPT_BYTES)
    return CallFailure(
        ErrorCode.UPSTREAM_ERROR,
        f"the upstream answered {said}: {shown}" if shown else f"the upstream answered {said}",
        retryable=worth_repeating(status, idempotent=idempotent),
        status=status,
    )
