"""Server-sent events, incrementally. Pure.

In: chunks of a `text/event-stream` body as they arrive. Out: the data of each message event.
Called by the readers of answers (exchange) and of watch streams.

Tolerant as real servers demand: comments, CRLF and lone CR, events without a name, empty data events (they only carry
an id to resume from). Events under another name than `message` are skipped: JSON-RPC travels under none of them.
"""

from __future__ import annotations

import re

_FIELD = 16  # "data: " and its line end are not the event's bytes
_LINE = re.compile(rb"\r\n|\n|\r")


class SseParser:
    """One stream. `too_long` is set, and nothing more comes out, once an event holds more than `max_event` bytes.

    `last_id` and `retry` (milliseconds) are what the stream said last, for resuming it.
    """

    __slots__ = ("_data", "_line", "_max", "_name", "_partial", "_size", "_skip_lf", "last_id", "retry", "too_long")

    def __init__(self, max_event: int) -> None:
        self._max = max_event
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._name = b""
        self._size = 0
        self._partial = 0
        self._skip_lf = False
        self.last_id: str | None = None
        self.retry: int | None = None
        self.too_long = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of every message event that ended in this chunk, in order."""
        if self.too_long or not chunk:
            return []
        if self._skip_lf and chunk[:1] == b"\n":
            chunk = chunk[1:]
        self._skip_lf = chunk[-1:] == b"\r"
        lines = _LINE.split(chunk)
        rest = lines.pop()
        events: list[bytes] = []
        for line in lines:
            if self._line:
                self._line.append(line)
                line = b"".join(self._line)  # noqa: PLW2901 - the line that began in an earlier chunk
                self._line.clear()
                self._partial = 0
            if line:
                self._field(line)
            else:
                self._dispatch(events)
        if rest:
            self._line.append(rest)
            self._partial += len(rest)
        if self._size + self._partial > self._max + _FIELD:
            self.too_long = True
        return events

    def end(self) -> list[bytes]:
        """What stands unfinished when the stream ends: servers forget the last blank line."""
        events: list[bytes] = []
        if self._line:
            line = b"".join(self._line)
            self._line.clear()
            self._field(line)
        self._dispatch(events)
        return events

    def _dispatch(self, events: list[bytes]) -> None:
        if self._data and self._name in {b"", b"message"}:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            if len(data) > self._max:
                self.too_long = True
            elif data.strip():
                events.append(data)
        self._data.clear()
        self._name = b""
        self._size = 0

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value) + 1
        elif name == b"event":
            self._name = value
        elif name == b"id" and b"\0" not in value:
            self.last_id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry = int(value)
