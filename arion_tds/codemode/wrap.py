"""From what a model sent as code to modules that can be run, and from a module's lines back to the model's. Pure.

In: the `code` argument. Out: a `Program`: candidates in order of preference, of which the sandbox runs the first that
it can parse. Called by run.

Models send a body with `return`, a body whose last expression is meant, one function that nobody calls, an IIFE, a
module with `export default`, and any of them inside a ``` fence. The body stands inside an async function, on the same
lines as it was sent; a value that is a function is called by the sandbox.
"""

from __future__ import annotations

import base64
import dataclasses
import re
from typing import Final

from arion_tds.codemode import scan
from arion_tds.codemode.scan import Statement

_HEAD: Final = "export default async function execute(){"
_TAIL: Final = "\n}"
_RETURN: Final = "return "
_FENCE: Final = re.compile(
    r"\A\s*(?P<open>(?:```|~~~)[^\n`]*)\n(?P<code>.*?)(?P<close>\n[ \t]*(?:```|~~~)[ \t]*)?\s*\Z", re.DOTALL
)
_EXPORT: Final = re.compile(r"export(?:\s+default)?(?=[\s({\[])")

_NO_VALUE: Final = frozenset(
    (
        *("const", "let", "var", "if", "for", "while", "do", "switch", "try", "throw", "return", "break", "continue"),
        *("import", "export", "class", "interface", "type", "enum", "namespace", "declare", "debugger", "with"),
        *("function", "else", "catch", "finally", "using"),
    )
)
"""Words that begin a statement without a value."""


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A body that may be run. `line` and `column` (from 1) tell where `return ` was put in, if it was."""

    body: str
    line: int = 0
    column: int = 0

    @property
    def url(self) -> str:
        """The module as a URL."""
        text = (_HEAD + self.body + _TAIL).encode("utf-8", "replace")
        return "data:application/typescript;base64," + base64.b64encode(text).decode()

    def locate(self, line: int, column: int) -> tuple[int, int]:
        """The place in the code as it was sent of a place in the module."""
        if line == 1:
            column -= len(_HEAD)
        if line == self.line and column > self.column:
            column = max(self.column, column - len(_RETURN))
        # What is wrong at the very end shows in the line that closes the function.
        last = self.body.count("\n") + 1
        if line > last:
            return last, len(self.body.rpartition("\n")[2]) + 1
        return max(line, 1), max(column, 1)


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """At least one candidate; the last one is the code as it was sent (without fence and `export`)."""

    candidates: tuple[Candidate, ...]

    def locate(self, module: int, line: int | None, column: int | None) -> tuple[int | None, int | None]:
        """The model's line and column of a place in the candidate of that number."""
        if line is None or column is None or module >= len(self.candidates):
            return None, None
        return self.candidates[module].locate(line, column)


def program(code: str) -> Program:
    """What to run for this code."""
    sent = _without_fence(code)
    found = scan.statements(sent)
    if not found:
        return Program((Candidate(sent),))
    last = found[-1]
    body = _without_exports(sent, found)
    plain = Candidate(body)
    default = _EXPORT.match(sent, last.at) if last.first == "export" and last.second == "default" else None
    if default is not None:  # `return` takes the place of `export default`: no column moves
        returned = "return".ljust(len(default.group()))
        return Program((Candidate(body[: last.at] + returned + body[default.end() :]), plain))
    if not _has_value(last, alone=len(found) == 1):
        return Program((plain,))
    line = body.count("\n", 0, last.at) + 1
    column = last.at - body.rfind("\n", 0, last.at)
    return Program((Candidate(body[: last.at] + _RETURN + body[last.at :], line, column), plain))


def _has_value(last: Statement, *, alone: bool) -> bool:
    if last.first == "function" or (last.first == "async" and last.second == "function"):
        return alone  # one function that nobody calls is the program; helpers at the end are not
    if last.first == "class":
        return False
    if last.second == ":" and last.first.isidentifier():
        return False  # a label
    if last.first in {"type", "using", "declare", "namespace"} and not last.second.isidentifier():
        return True  # an ordinary name
    return last.first not in _NO_VALUE


def _without_fence(code: str) -> str:
    """The code inside a fence that stands around all of it, on the same lines."""
    found = _FENCE.match(code)
    if found is None:
        return code
    return "\n" * code.count("\n", 0, found.start("code")) + found.group("code")


def _without_exports(body: str, found: list[Statement]) -> str:
    """The body with `export` blanked out where an outermost statement begins with it."""
    parts: list[str] = []
    at = 0
    for statement in found:
        if statement.first == "export":
            match = _EXPORT.match(body, statement.at)
            if match is not None:
                parts += [body[at : statement.at], re.sub(r"[^\n]", " ", match.group())]
                at = match.end()
    return "".join([*parts, body[at:]])
