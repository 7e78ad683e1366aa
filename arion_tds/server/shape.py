"""Is a JSON body nested deeper than anybody needs? Pure; called by front before a body is decoded.

The decoder refuses what would exhaust the stack and numbers beyond 4300 digits by itself; this is the limit that the
listener sets, for the sake of everything that walks arguments afterwards.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

# A text that does not end is taken to the end: to look for its end again from every quote would be quadratic.
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEP: Final = np.zeros(256, dtype=np.int32)
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1


def too_deep(body: bytes, limit: int) -> bool:
    """Whether objects and lists in `body` are nested deeper than `limit`. Bytes that are not JSON get any answer."""
    if body.count(b"{") + body.count(b"[") <= limit:
        return False
    brackets = _STRING.sub(b"", body).translate(None, _OTHERS)
    if len(brackets) <= limit:
        return False
    return int(np.cumsum(_STEP[np.frombuffer(brackets, dtype=np.uint8)]).max()) > limit
