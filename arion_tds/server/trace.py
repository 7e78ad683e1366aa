"""The names under which a request can be found again: W3C traceparent and x-request-id. Pure.

In: what the caller sent, and 32 random bytes. Out: the caller's value where it is valid, else one made from the bytes.
Called by front, once per call.
"""

from __future__ import annotations

import re
from typing import Final

_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}\Z")
_REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}\Z")
RANDOM_BYTES: Final = 32
"""Bytes that both names are made from."""


def traceparent(sent: str | None, random: bytes) -> str:
    """The caller's traceparent if it is valid, else a new trace, not sampled."""
    if sent is not None and _TRACEPARENT.match(sent):
        return sent
    return f"00-{random[:16].hex()}-{random[16:24].hex()}-00"


def request_id(sent: str | None, random: bytes) -> str:
    """The caller's x-request-id if it is at most 128 visible ASCII characters, else a new one."""
    if sent is not None and _REQUEST_ID.match(sent):
        return sent
    return random[24:32].hex()
