"""What became of one execution, as values. Made by run and pool, rendered by `arion_tds.executing`."""

from __future__ import annotations

import dataclasses
import enum


class Code(enum.StrEnum):
    """`error.code` of an execution that failed."""

    ARGUMENTS = "invalid_arguments"
    SYNTAX = "syntax_error"
    RUNTIME = "runtime_error"
    RESULT = "invalid_result"
    TIMEOUT = "execution_timeout"
    MEMORY = "memory_limit"
    OUTPUT = "output_limit"
    HOST_CALLS = "host_call_limit"
    CODE_SIZE = "code_too_large"
    BUSY = "overflow"
    ENGINE = "engine_error"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """`value` is compact JSON. `hint` tells the model what it may have meant, where the value looks like a mistake."""

    value: bytes
    console: tuple[str, ...] = ()
    hint: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why there is no value. `line` and `column` (from 1) are places in the code as it was sent.

    `name` is the class of the error that was thrown; `tool_code` and `status` are those of a failed call nobody caught.
    `preview` and `shape` describe a value that was too large.
    """

    code: Code
    message: str
    retryable: bool = False
    line: int | None = None
    column: int | None = None
    name: str | None = None
    tool_code: str | None = None
    status: int | None = None
    preview: str | None = None
    shape: str | None = None
    console: tuple[str, ...] = ()


Outcome = Success | Failure
