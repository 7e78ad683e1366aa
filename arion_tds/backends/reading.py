"""The answers of one connection, from bytes to head, body and end: framing, limits, what may be read after it.

In: bytes as they arrive. Out: calls of a `Receiver`, and whether the answer is complete. Used by h1. No I/O.

Framing (lengths, chunks, interim answers) is llhttp's work (httptools), as lenient as browsers are: with line breaks
and blanks, never with lengths.
"""

from __future__ import annotations

import enum
from typing import Final, Protocol

import httptools

MAX_HEAD: Final = 64 << 10
"""Bytes of an answer's headers, and of the interim answers before it, unless a setting says otherwise."""

_EACH: Final = 32
"""Bytes that a header counts beside its name and value (as in RFC 9113, 6.5.2): many small ones are a lot, too."""

Headers = list[tuple[str, str]]
"""Pairs in their order; names in lower case."""

_NO_BODY: Final = frozenset({204, 304})
_INTERIM: Final = 100
_FINAL: Final = 200


class Loss(enum.Enum):
    """Why there is no (whole) answer."""

    UNANSWERED = "the connection was lost before an answer came"
    BROKEN_OFF = "the answer broke off in the middle"
    MALFORMED = "the answer is not HTTP/1.1 that can be read"
    LONG_HEAD = "the answer's headers are larger than allowed (max_response_header_bytes)"


class Receiver(Protocol):
    """Hears one answer. No call may raise."""

    def head(self, status: int, headers: Headers, *, bodiless: bool) -> None:
        """The final answer's head. `bodiless`: nothing follows, whatever its headers say."""

    def body(self, data: bytes) -> None:
        """The next piece of its body, as it was framed (still compressed)."""

    def end(self) -> None:
        """It is complete. The connection belongs to others already."""

    def lost(self, loss: Loss, *, stale: bool) -> None:
        """Nothing more comes. `stale`: a kept connection ended before the first byte, as idle connections do."""


class Reading:
    """One connection's. `in_body`: the head was told; `ends_with_connection`: only then the body is whole."""

    __slots__ = (
        "_bare",
        "_fed",
        "_headers",
        "_keep",
        "_max_head",
        "_parser",
        "_receiver",
        "_spoilt",
        "complete",
        "ends_with_connection",
        "in_body",
    )

    def __init__(self, max_head: int = MAX_HEAD) -> None:
        self._max_head = max_head
        self._parser = self._made()
        self._receiver: Receiver | None = None
        self._headers: Headers = []
        self._fed = 0
        self._bare = self._keep = self._spoilt = False
        self.complete = self.in_body = self.ends_with_connection = False

    def begin(self, receiver: Receiver, *, bare: bool) -> None:
        """The next answer is for this one. `bare`: it has no body, whatever its headers say."""
        self._receiver = receiver
        self._bare = bare
        self._headers = []
        self._fed = 0
        self.complete = self.in_body = self.ends_with_connection = False

    @property
    def begun(self) -> bool:
        """Whether anything of the answer came."""
        return self._fed > 0

    def feed(self, data: bytes) -> Loss | None:
        """Read on. What came is no answer, or too much of one: why."""
        if not self.in_body:
            self._fed += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if not self.complete:
                return Loss.MALFORMED
            self._spoilt = True
        return Loss.LONG_HEAD if self._fed > self._max_head and not self.in_body else None

    def finish(self) -> bool:
        """The answer is complete: whether another one may follow on the connection."""
        self._receiver = None
        if self._bare:
            self._parser = self._made()  # the old one still waits for the body that the headers speak of
        return self._keep and not self._spoilt

    def on_message_begin(self) -> None:
        """Called by the parser. After a complete answer it is one to nothing."""
        if self.complete:
            self._spoilt = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser. Trailers are dropped."""
        if not self.in_body:
            text = value.rstrip(b" \t").decode("utf-8", "surrogateescape")
            self._headers.append((name.decode("latin-1").lower(), text))

    def on_headers_complete(self) -> None:
        """Called by the parser. Interim answers are passed over, others told."""
        if self.complete or self._receiver is None:
            return
        status, headers = self._parser.get_status_code(), self._headers
        if status < _FINAL:
            if status < _INTERIM:
                raise ValueError("no status of an answer")  # `feed` hears it as an error of the parser's
            self._headers = []
            return
        most = self._max_head
        if self._fed + len(headers) * _EACH > most and _size(headers) > most:
            self._fed = most + 1
            return  # as if it had not ended: `feed` says so
        self.in_body = True
        self._keep = self._parser.should_keep_alive()
        bodiless = self._bare or status in _NO_BODY
        if not self._keep and not bodiless:
            self.ends_with_connection = not any(_frames(name, value) for name, value in headers)
        self._receiver.head(status, headers, bodiless=bodiless)
        if self._bare:
            self.complete = True

    def on_body(self, data: bytes) -> None:
        """Called by the parser."""
        if self.complete:
            self._spoilt = True
        elif self._receiver is not None and self.in_body:
            self._receiver.body(data)

    def on_message_complete(self) -> None:
        """Called by the parser, for interim answers too."""
        if self.in_body:
            self.complete = True

    def _made(self) -> httptools.HttpResponseParser:
        made = httptools.HttpResponseParser(self)
        made.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        return made


def _size(headers: Headers) -> int:
    return sum(len(name) + len(value) + _EACH for name, value in headers)


def _frames(name: str, value: str) -> bool:
    """Whether a header says where the body ends."""
    if name == "transfer-encoding":
        return value.strip().lower().endswith("chunked")
    return name == "content-length"
