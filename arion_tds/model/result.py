"""What a call gives back: an MCP tool result as ready JSON pieces, or a JSON-RPC error.

The pieces are bytes so that an upstream's result is passed on without decoding and re-encoding it; the front joins
them as each protocol revision wants them.
"""

from __future__ import annotations

import dataclasses
import enum

import msgspec

_encode = msgspec.json.Encoder().encode


class ErrorCode(enum.StrEnum):
    """`structuredContent.error.code` of a failed call (tds.md, Calls)."""

    INVALID_ARGUMENTS = "invalid_arguments"
    INVALID_OUTPUT = "invalid_output"
    UPSTREAM_ERROR = "upstream_error"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    OVERFLOW = "overflow"
    RESPONSE_TOO_LARGE = "response_too_large"


@dataclasses.dataclass(frozen=True, slots=True)
class CallFailure:
    """Why a call failed. `status` is the upstream's HTTP status, where there is one."""

    code: ErrorCode
    message: str
    retryable: bool = False
    status: int | None = None


@dataclasses.dataclass(slots=True, kw_only=True)  # made with every call: see docs/architecture.md, Rules
class CallResult:
    """A tool result. Every bytes field is compact JSON.

    `content` is the content array; `structured` the structuredContent value, if any; `meta` the `_meta` members
    without braces; `extra` further members of the result with a leading comma each; `result_type` is "complete"
    or what a modern upstream said ("input_required"). `failure` says why, when the gateway itself made the error.
    """

    content: bytes = b"[]"
    structured: bytes | None = None
    is_error: bool = False
    meta: bytes = b""
    extra: bytes = b""
    result_type: str = "complete"
    failure: CallFailure | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RpcError:
    """A JSON-RPC error. `data` is compact JSON or nothing."""

    code: int
    message: str
    data: bytes | None = None


def text_block(text: str) -> bytes:
    """A content array of one text block."""
    return b'[{"type":"text","text":' + _encode(text) + b"}]"


def failed(failure: CallFailure) -> CallResult:
    """The `isError` result of a failed call: `{"error": {"code", "message", "retryable", "status"?}}` and its text."""
    error: dict[str, object] = {
        "code": failure.code.value,
        "message": failure.message,
        "retryable": failure.retryable,
    }
    if failure.status is not None:
        error["status"] = failure.status
    return CallResult(
        content=text_block(f"{failure.code.value}: {failure.message}"),
        structured=_encode({"error": error}),
        is_error=True,
        failure=failure,
    )
