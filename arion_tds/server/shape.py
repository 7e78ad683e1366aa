"""Is a JSON body nested deeper than anybody needs? Pure; called by front before a body is decoded.

The decoder refuses what would exhaust the stack and numbers beyond 4300 digits by itself; this is the limit that the
listener sets, for the sake of everything that walks arguments afterwards. A few passes over the bytes, so that a body
made to be slow to judge is not, and no numpy, which a gateway that nobody searches does without.
"""

from __future__ import annotations

import itertools
import re
from typing import Final

_OPEN, _CLOSE = b"\x01", b"\xff"  # as signed bytes: +1 and -1
_MARKS: Final = bytes.maketrans(b"[{]}", 2 * _OPEN + 2 * _CLOSE)
_REST: Final = bytes(byte for byte in range(256) if byte not in b'"[{]}')
_RUNS: Final = re.compile(rb"\x01+|\xff+")
_MANY_LEAVES: Final = 8
"""Innermost pairs are taken away while they are at least such a part of what is left."""


def too_deep(body: bytes, limit: int) -> bool:
    """Whether objects and lists in `body` are nested deeper than `limit`. Bytes that are not JSON get any answer."""
    if body.count(b"{") + body.count(b"[") <= limit:
        return False
    if b"\\" in body:  # a quote after an odd run of backslashes is part of its text
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes side by side say nothing of what is inside a text: left are texts with brackets in them.
    marks = body.translate(_MARKS, _REST).replace(b'""', b"")
    if b'"' in marks:
        marks = b"".join(marks.split(b'"')[::2])
    taken = 0
    while marks:  # each round takes the innermost level of everything; nothing is left of most bodies
        inner = marks.replace(_OPEN + _CLOSE, b"")
        if (len(marks) - len(inner)) * _MANY_LEAVES < len(marks):
            break
        marks, taken = inner, taken + 1
    steps = (len(run) if run[0] == 1 else -len(run) for run in _RUNS.findall(marks))
    return taken + max(itertools.accumulate(steps), default=0) > limit
