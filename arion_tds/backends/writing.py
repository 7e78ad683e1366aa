"""The head of an HTTP/1.1 request as bytes. Pure.

In: method, target, header pairs. Out: bytes, or None where they would be anything but one request. Called by exchange
and by the channels of MCP servers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

WITHOUT_LENGTH: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods of which nobody expects a body: without one they do not say that there is none."""

_TARGET = re.compile(r"[!-~]+\Z")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")


def lines(headers: Iterable[tuple[str, str]]) -> str:
    """Header lines with their ends. Not checked: `head` checks what comes from elsewhere."""
    return "".join([f"{name}: {value}\r\n" for name, value in headers])


def head(
    method: str, target: str, headers: Collection[tuple[str, str]], body: bytes | None, before: str = ""
) -> bytes | None:
    """The request line, the lines `before` (known to be good), `headers` as they come, and the length of the body."""
    more = lines(headers)
    count = len(headers)
    if more.count("\n") != count or more.count("\r") != count or "\0" in more:  # a line in a line
        return None
    if not _TARGET.match(target) or not _TOKEN.match(method):
        return None
    if body is not None:
        more += f"content-length: {len(body)}\r\n"
    elif method not in WITHOUT_LENGTH:
        more += "content-length: 0\r\n"
    return f"{method} {target} HTTP/1.1\r\n{before}{more}\r\n".encode("utf-8", "surrogateescape")
