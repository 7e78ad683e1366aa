"""The head of an HTTP/1.1 request as bytes. Pure.

In: method, target, header pairs. Out: bytes, or None where they would be anything but one request. Called by exchange
and by the channels of MCP servers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

WITHOUT_LENGTH: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods of which nobody expects a body: without one they do not say that there is none."""

_TARGET = re.compile(r"[!-~]+\Z")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")


def head(method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None) -> bytes | None:
    """`headers` as they come, then the length of the body."""
    lines = [f"{method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers]
    if body is not None:
        lines.append(f"content-length: {len(body)}")
    elif method not in WITHOUT_LENGTH:
        lines.append("content-length: 0")
    made = "\r\n".join(lines)
    breaks = len(lines) - 1
    if made.count("\n") != breaks or made.count("\r") != breaks or "\0" in made:  # a line in a line
        return None
    if not _TARGET.match(target) or not _TOKEN.match(method):
        return None
    return f"{made}\r\n\r\n".encode("utf-8", "surrogateescape")
