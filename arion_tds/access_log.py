"""The access log: one line per HTTP request, JSON or text, written beside the event loop and never in its way.

In: requests that are over (`Requests`, one per listener, is a front's `RequestLog`). Out: lines in a file or on stderr.
Built and ended by app. Lines wait in a bounded buffer for a thread that writes them; what does not fit, as the disk is
slow or full, is dropped and counted. A file that was moved away is opened anew: log rotation needs no signal.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, Literal

import msgspec
from aiohttp import web
from multidict import istr

from arion_tds.server import noting

STDERR: Final = "stderr"

_FLUSH: Final = 0.25
"""Seconds that a line may wait for others to be written with."""

_END: Final = 2.0
"""Seconds that the last lines get at the end."""

_CUT: Final = 256
_USER_AGENT: Final = istr("User-Agent")
_encode = msgspec.json.Encoder().encode
_log = logging.getLogger("arion_tds.access_log")

Style = Literal["json", "text"]


class AccessLog:
    """The buffer and the thread behind it. `write` belongs to the event loop, everything else to the thread."""

    def __init__(self, path: str, max_buffer: int, dropped: Callable[[int], None]) -> None:
        """OSError when the file cannot be opened. `max_buffer`: bytes. `dropped` hears of lines that were lost."""
        self._path = path
        self._most = max_buffer
        self._dropped = dropped
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._ending = threading.Event()
        self._waiting: list[bytes] = []
        self._size = 0
        self._file = _open(path)
        self._said = False

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Write while the block runs, and what is left when it ends."""
        thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ending.set()
            self._some.set()
            thread.join(_END)

    def write(self, line: bytes) -> None:
        """Take a line, without its newline."""
        with self._lock:
            if self._size + len(line) <= self._most:
                self._waiting.append(line)
                self._size += len(line) + 1
                self._some.set()
                return
        self._dropped(1)

    def _run(self) -> None:
        while not self._ending.is_set():
            self._some.wait()
            self._ending.wait(_FLUSH)
            self._flush()
        self._flush()
        if self._path != STDERR:
            self._file.close()

    def _flush(self) -> None:
        with self._lock:
            lines, self._waiting = self._waiting, []
            self._some.clear()
        if not lines:
            return
        try:
            self._follow()
            self._file.write(b"\n".join(lines) + b"\n")
            self._file.flush()
        except (OSError, ValueError) as error:
            self._dropped(len(lines))
            if not self._said:
                _log.warning("the access log %s cannot be written: %s; lines are dropped", self._path, error)
            self._said = True
        else:
            self._said = False
        with self._lock:
            self._size = sum(len(line) + 1 for line in self._waiting)

    def _follow(self) -> None:
        """Open the file anew if another one, or none, stands under its name."""
        if self._path == STDERR:
            return
        try:
            there = os.stat(self._path)
            here = os.fstat(self._file.fileno())
            moved = (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)
        except FileNotFoundError:
            moved = True
        if moved:
            self._file.close()
            self._file = _open(self._path)


class Requests:
    """One listener's requests as lines."""

    def __init__(self, log: AccessLog, listener: str, style: Style, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since the epoch."""
        self._log = log
        self._listener = listener
        self._line = _json if style == "json" else _text
        self._clock = clock
        self._second = -1
        self._stamp = ""

    def served(self, request: web.BaseRequest, status: int, seconds: float) -> None:
        """Log one request."""
        fields: _Fields = {
            "time": self._time(),
            "listener": self._listener,
            "remote": request.remote,
            "http_method": request.method,
            "path": request.raw_path.partition("?")[0][:_CUT],
            "status": status,
            "ms": round(seconds * 1e3, 3),
            "method": _cut(request.get(noting.METHOD)),
            "tool": request.get(noting.TOOL),
            "outcome": request.get(noting.OUTCOME),
            "subject": _cut(request.get(noting.SUBJECT)),
            "request_id": request.get(noting.REQUEST_ID),
            "trace_id": request.get(noting.TRACE_ID),
            "user_agent": _cut(request.headers.get(_USER_AGENT)),
        }
        self._log.write(self._line(fields))

    def _time(self) -> str:
        """Now, in UTC to the millisecond (RFC 3339)."""
        now = self._clock()
        second = int(now)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._stamp}.{int((now - second) * 1000):03}Z"


_Fields = dict[str, str | int | float | None]


def _json(fields: _Fields) -> bytes:
    """Every field that there is; control characters are escaped by JSON itself."""
    return _encode({name: value for name, value in fields.items() if value is not None})


def _text(fields: _Fields) -> bytes:
    """In the order of Envoy's default format: time, request line, status, duration, then ours; `-` where nothing is."""
    shown = {name: "-" if value is None else _quiet(str(value)) for name, value in fields.items()}
    return (
        f'[{shown["time"]}] "{shown["http_method"]} {shown["path"]}" {shown["status"]} {shown["ms"]} '
        f'{shown["listener"]} "{shown["method"]}" "{shown["tool"]}" {shown["outcome"]} '
        f'"{shown["subject"]}" "{shown["request_id"]}" "{shown["user_agent"]}" {shown["remote"]}'
    ).encode("utf-8", "backslashreplace")


def _quiet(text: str) -> str:
    """Text that cannot end its quotes or its line."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    if plain.isprintable():
        return plain
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in plain)


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:_CUT]


def _open(path: str) -> BinaryIO:
    if path == STDERR:
        return sys.stderr.buffer
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
    return os.fdopen(handle, "ab", buffering=0)
