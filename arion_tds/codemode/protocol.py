"""The lines between gateway and sandbox: one JSON object each, told apart by `t`. Pure.

In: a line from a sandbox, which is untrusted whatever it says. Out: a frame, or a sentence that says what is wrong
with it; and the lines that the gateway sends, as bytes. Called by run (both ways), bridge (answers) and deno (Ready).

sandbox → gateway   ready · call (id, op, args) · log (text) · done (value | oversize) · error
gateway → sandbox   run (modules, limits, namespaces) · ret (id, value | text | error)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec

VERSION: Final = 1
MAX_NAMESPACES: Final = 1000
"""Namespaces that the sandbox is told, so that `Object.keys(tools)` works."""

Op = Literal["tool", "namespaces", "list", "search", "describe", "toolkits", "toolkit"]
_Position = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
_Short = Annotated[str, msgspec.Meta(max_length=300)]
_Long = Annotated[str, msgspec.Meta(max_length=20_000)]


class Ready(msgspec.Struct, frozen=True, tag_field="t", tag="ready"):
    """The sandbox can take a program."""

    version: int


class Call(msgspec.Struct, frozen=True, tag_field="t", tag="call"):
    """The program calls the host. `args` is JSON, judged by whoever serves the op."""

    id: Annotated[int, msgspec.Meta(ge=1, le=1 << 53)]
    op: Op
    args: msgspec.Raw


class Log(msgspec.Struct, frozen=True, tag_field="t", tag="log"):
    """One console line."""

    text: str


class Done(msgspec.Struct, frozen=True, tag_field="t", tag="done"):
    """The program ended. `undefined`: it gave no value. `calls`: host calls that it did not wait for."""

    value: msgspec.Raw
    undefined: bool = False
    calls: _Position = 0


class Oversize(msgspec.Struct, frozen=True, tag_field="t", tag="oversize"):
    """The value, or one console line, is larger than may be sent."""

    what: Literal["result", "console"]
    bytes: int
    preview: _Long
    shape: _Long


class Thrown(msgspec.Struct, frozen=True, tag_field="t", tag="error"):
    """The program could not be read or threw. Line and column are those of the module numbered `module`."""

    kind: Literal["syntax", "runtime", "result"]
    name: _Short
    message: _Long
    module: _Position = 0
    line: _Position | None = None
    column: _Position | None = None
    code: _Short | None = None
    retryable: bool = False
    status: int | None = None


Frame = Ready | Call | Log | Done | Oversize | Thrown

_decoder = msgspec.json.Decoder(Frame)
_encode = msgspec.json.Encoder().encode


def read(line: bytes) -> Frame | str:
    """The frame, or why the line is none."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"not a frame: {error}"
    except RecursionError:
        return "not a frame: nested too deeply"


def run(modules: Sequence[str], *, max_output: int, max_argument: int, namespaces: Sequence[str]) -> bytes:
    """Run the first of the modules (URLs) that can be read."""
    message = {
        "t": "run",
        "modules": modules,
        "maxOutput": max_output,
        "maxArgument": max_argument,
        "namespaces": namespaces[:MAX_NAMESPACES],
    }
    return _encode(message)


def value(identity: int, raw: bytes) -> bytes:
    """A call's answer is this JSON."""
    return b'{"t":"ret","id":%d,"value":' % identity + one_line(raw) + b"}"


def text(identity: int, content: str) -> bytes:
    """A call's answer is this text: what it says if it is JSON, else itself."""
    return b'{"t":"ret","id":%d,"text":' % identity + _encode(content) + b"}"


def error(identity: int, code: str, message: str, *, retryable: bool = False, status: int | None = None) -> bytes:
    """A call failed: the program gets an Error with these properties."""
    found: dict[str, object] = {"code": code, "message": message, "retryable": retryable}
    if status is not None:
        found["status"] = status
    return b'{"t":"ret","id":%d,"error":' % identity + _encode(found) + b"}"


def one_line(raw: bytes) -> bytes:
    """JSON without line ends: between tokens they are blanks, and inside strings they cannot stand."""
    return raw if b"\n" not in raw and b"\r" not in raw else msgspec.json.format(raw, indent=-1)
