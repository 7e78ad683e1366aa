"""Where the statements of a TypeScript program begin, without parsing it. Pure.

In: source text. Out: the places where its outermost statements begin. Called by wrap.

This is a guess by tokens: brackets, strings, templates, regular expressions and comments are told apart, and a line end
ends a statement where JavaScript would insert a semicolon. The one thing built on it (a `return` before the last
statement) is tried by the sandbox's own parser, which has the last word.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<newline>[\n\r\u2028\u2029])
    |(?P<space>[^\S\n\r\u2028\u2029]+)
    |(?P<comment>//[^\n\r\u2028\u2029]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>[#@]?[A-Za-z_$\u0080-\u2027\u202a-\uffff][\w$]*)
    |(?P<number>\.?[0-9](?:[eE][+-][0-9]|[\w.])*)
    |(?P<punct>=>|\+\+|--|\?\.|\.\.\.|&&|\|\||\?\?|[\s\S])""",
    re.VERBOSE | re.DOTALL,
)
_REGEX: Final = re.compile(r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[A-Za-z]*")
_TEMPLATE: Final = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(`|\$\{)", re.DOTALL)

_OPERATORS: Final = frozenset(
    (
        *("return", "typeof", "case", "in", "of", "await", "yield", "new", "delete", "void", "throw", "else", "do"),
        *("instanceof", "extends", "const", "let", "var", "import", "export", "default", "async", "as", "satisfies"),
        *("keyof", "implements", "type", "enum", "interface", "class", "function", "declare", "abstract"),
    )
)
"""Words after which a line end ends nothing and a slash begins a regular expression."""

_CONTINUING: Final = frozenset(("in", "of", "instanceof", "as", "satisfies", "else", "catch", "finally"))
_HEADED: Final = frozenset(("if", "for", "while", "with", "switch", "catch"))
_BLOCKS: Final = frozenset(
    (
        *("if", "for", "while", "do", "else", "try", "catch", "finally", "switch", "function", "class"),
        *("interface", "enum", "namespace", "module", "declare", "abstract", "{"),
    )
)
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"
_MAX_DEPTH: Final = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Statement:
    """Where an outermost statement begins, and its first two tokens."""

    at: int
    first: str
    second: str = ""


class _Scanner:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.statements: list[Statement] = []
        self._open: list[str] = []  # "(" "[" "{" as they are, "h" for a control header, "$" for a template's hole
        self._last = ""
        self._ends_value = False
        self._ended = True  # a statement is over: the next lexeme begins one
        self._newline = False
        self._adjacent = False

    def scan(self) -> bool:
        """Fill `statements`. False when brackets do not match."""
        while self.at < len(self.source):
            found = _TOKEN.match(self.source, self.at)
            if found is None:
                return False
            kind, lexeme = found.lastgroup, found.group()
            if kind in {"newline", "comment", "space"}:
                self._newline |= kind == "newline" or (kind == "comment" and "\n" in lexeme)
                self._adjacent = False
                self.at = found.end()
                continue
            if lexeme == "/" and not self._ends_value:
                regex = _REGEX.match(self.source, self.at)
                if regex is not None:
                    kind, lexeme, found = "string", "/re/", regex
            self._note(kind, lexeme)
            self.at = found.end()
            if not self._take(kind, lexeme):
                return False
        return not self._open

    def _note(self, kind: str | None, lexeme: str) -> None:
        """Record the lexeme as a statement's beginning if it is one."""
        if self._open:
            return
        if not self._ended and self._newline and self._ends_value:
            self._ended = kind != "punct" and lexeme not in _CONTINUING
        if self._ended and lexeme in _CONTINUING:
            self._ended = False
        if self._ended and lexeme != ";":
            self.statements.append(Statement(self.at, lexeme))
            self._ended = False
        elif self.statements and not self.statements[-1].second and self.statements[-1].at != self.at:
            self.statements[-1] = dataclasses.replace(self.statements[-1], second=lexeme)

    def _take(self, kind: str | None, lexeme: str) -> bool:
        self._newline = False
        was, adjacent = self._ends_value, self._adjacent
        self._adjacent = True
        if lexeme == "`":
            return self._template()
        if kind == "punct" and lexeme in _OPENING:
            if len(self._open) >= _MAX_DEPTH:
                return False
            self._open.append("h" if lexeme == "(" and self._last in _HEADED else lexeme)
            self._ends_value = False
        elif kind == "punct" and lexeme in _CLOSING:
            return self._close(lexeme)
        elif lexeme == ";":
            self._ends_value = False
            self._ended = not self._open
        elif kind == "punct":
            self._ends_value = (lexeme in {"++", "--"} and was) or (lexeme == "!" and was and adjacent)
        else:
            self._ends_value = kind != "word" or lexeme not in _OPERATORS or self._last in {".", "?."}
        # `for await (…)`: the header's word is still `for`
        self._last = self._last if lexeme == "await" and self._last == "for" else lexeme
        return True

    def _close(self, lexeme: str) -> bool:
        opened = self._open.pop() if self._open else ""
        if opened == "$" and lexeme == "}":
            return self._template()
        if _OPENING.find("(" if opened == "h" else opened) != _CLOSING.index(lexeme) or not opened:
            return False
        self._ends_value = opened != "h"
        self._last = lexeme
        if lexeme == "}" and not self._open and self.statements:
            begun = self.statements[-1]
            self._ended = begun.first in _BLOCKS or (begun.first in {"async", "export"} and begun.second in _BLOCKS)
        return True

    def _template(self) -> bool:
        """The rest of a template up to its end or its next hole."""
        found = _TEMPLATE.match(self.source, self.at)
        if found is None:
            return False
        self.at = found.end()
        hole = found.group(1) != "`"
        if hole:
            self._open.append("$")
        self._last = "`"
        self._ends_value = not hole
        return True


def statements(source: str) -> list[Statement] | None:
    """The outermost statements in order, or None where the source makes no sense to this scanner."""
    scanner = _Scanner(source)
    return scanner.statements if scanner.scan() else None
