"""Bodies in HTTP/1.1 chunks: in a buffer and where it begins, out the body and where it ends. Pure."""

from __future__ import annotations


def body(buffer: bytes | bytearray, at: int) -> tuple[bytes, int] | None:
    """The chunks as one, and what comes after; None when there are more to come."""
    parts: list[bytes] = []
    while (end := buffer.find(b"\r\n", at)) >= 0:
        size = int(bytes(buffer[at:end]).split(b";")[0], 16)
        if len(buffer) < end + size + 4:
            return None
        if size == 0:
            return b"".join(parts), end + 4
        parts.append(bytes(buffer[end + 2 : end + 2 + size]))
        at = end + size + 4
    return None
