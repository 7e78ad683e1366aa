"""Is a JSON body nested deeper than anybody needs? Pure; called by front before a body is decoded.

The decoder refuses what would exhaust the stack and numbers beyond 4300 digits by itself; this is the limit that the
listener sets, for the sake of everything that walks arguments afterwards. A few vector operations, so that a body
made to be slow to judge is not.
"""

from __future__ import annotations

from typing import Final

import numpy as np

_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_STEP: Final = np.zeros(256, dtype=np.int8)
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1


def too_deep(body: bytes, limit: int) -> bool:
    """Whether objects and lists in `body` are nested deeper than `limit`. Bytes that are not JSON get any answer."""
    if body.count(b"{") + body.count(b"[") <= limit:
        return False
    data = np.frombuffer(body, dtype=np.uint8)
    quotes = data == _QUOTE
    if b"\\" in body:
        # A quote after an odd run of backslashes is part of its text.
        at = np.arange(len(data), dtype=np.int32)
        other = np.maximum.accumulate(np.where(data != _BACKSLASH, at, np.int32(-1)))
        quotes[1:] &= (at[:-1] - other[:-1]) & 1 == 0
    steps = _STEP[data]
    steps[np.cumsum(quotes, dtype=np.int32) & 1 == 1] = 0  # inside a text
    return int(np.cumsum(steps, dtype=np.int32).max()) > limit
