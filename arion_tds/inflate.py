"""Decompression of a body that stops at a limit: a small body that would unpack to gigabytes never does.

In: the body piece by piece. Out: decoded pieces, or that the limit was passed. Called by the front for requests, by
backends for answers. Pure.
"""

from __future__ import annotations

import zlib
from typing import Final

ACCEPTED: Final = "gzip, deflate"
"""Content encodings that can be decoded: the Accept-Encoding of what we send."""

_GZIP: Final = 16 + zlib.MAX_WBITS
_SLACK: Final = 1024


class TooLarge(Exception):  # noqa: N818 - it is no error of ours, it is the verdict on a body
    """The body is larger than the limit."""


class Body:
    """Collects one body of at most `limit` decoded bytes. `encoding` is its Content-Encoding, or nothing."""

    __slots__ = ("_decoder", "_encoding", "_ended", "_limit", "_parts", "_raw", "_size")

    def __init__(self, limit: int, encoding: str = "") -> None:
        """`encoding`: one that `supported` takes."""
        self._limit = limit
        self._encoding = encoding.strip().lower()
        self._parts: list[bytes] = []
        self._size = 0
        self._raw = 0
        self._ended = True
        self._decoder: zlib._Decompress | None = None

    def feed(self, data: bytes) -> None:
        """Take the next piece. Raises TooLarge, or zlib.error when it is not what the encoding says."""
        if self._encoding in {"", "identity"}:
            self._keep(data)
            return
        self._raw += len(data)
        if self._raw > self._limit + self._limit // 64 + _SLACK:  # members that unpack to nothing also cost
            raise TooLarge
        if self._decoder is None and self._raw > len(data):
            data = data.lstrip(b"\0")  # padding after the last gzip member, as RFC 1952 readers do
        while data:
            data = self._decode(data)

    def whole(self) -> bytes | None:
        """The decoded body, or None when its compressed form ends early."""
        if not self._ended:
            return None
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._limit:
            raise TooLarge
        if data:
            self._parts.append(data)

    def _decode(self, data: bytes) -> bytes:
        """Decode a piece; what remains belongs to the next member."""
        decoder = self._decoder
        if decoder is None:
            decoder = self._decoder = decompressor(self._encoding, data)
            self._ended = False
        self._keep(decoder.decompress(data, self._limit - self._size + 1))
        if not decoder.eof:
            return decoder.unconsumed_tail
        self._ended = True
        self._decoder = None
        return decoder.unused_data.lstrip(b"\0")


def decompressor(encoding: str, start: bytes) -> zlib._Decompress:
    """What decodes a body of a supported Content-Encoding that starts so (at least one byte)."""
    if encoding.strip().lower() != "deflate":
        return zlib.decompressobj(_GZIP)
    # "deflate" is zlib by RFC 9110; some servers send it without the zlib header.
    return zlib.decompressobj(zlib.MAX_WBITS if start[0] & 0x0F == 8 else -zlib.MAX_WBITS)


def supported(encoding: str) -> bool:
    """Whether a Content-Encoding can be decoded."""
    return encoding.strip().lower() in {"", "identity", "gzip", "x-gzip", "deflate"}
