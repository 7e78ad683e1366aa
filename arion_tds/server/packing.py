"""List pages as gzip or zstd, compressed once and then copied to whoever asks for the same page.

In: the pieces of a page and the id of the request. Out: one gzip member or one zstd frame. Called by front for
`tools/list`.

What differs between two answers with the same page is the id of the request alone. It is put last: the page before it
is compressed and flushed to a byte boundary once, and the id follows as a block that is stored as it is and ends the
stream (RFC 1951 3.2.4, RFC 8878 3.1.1.2.2); gzip's checksum goes on from that of the page, zstd's is left out. Nothing
that a client sent is ever compressed together with anything else.

A page is known by its pieces, so nothing has to be thrown away when the catalog changes: a page without the changed
tool is found as before.
"""

from __future__ import annotations

import asyncio
import dataclasses
import struct
import sys
import zlib
from collections.abc import Sequence
from typing import Final

from arion_tds.server.guard import Coding

_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # RFC 1952 2.3: deflate, no name, no time
_GZIP_LEVEL: Final = 4
_ZSTD_LEVEL: Final = 3
_LEAST: Final = 1400
"""Bytes below which an answer fits in a packet anyway."""

_LONGEST_END: Final = 60_000  # a stored block of gzip holds 65,535
_INLINE: Final = 1 << 18
"""Bytes up to which a page is compressed in the loop, about a millisecond; a larger one in a thread."""


@dataclasses.dataclass(frozen=True, slots=True)
class Listed:
    """One page: the result object is `head`, the definitions with commas between, and `tail`."""

    head: bytes
    definitions: Sequence[bytes]
    tail: bytes

    def around(self, identity: bytes) -> tuple[bytes, bytes]:
        """What stands before and behind the definitions in the answer to the request of that id."""
        return b'{"jsonrpc":"2.0","id":' + identity + b',"result":' + self.head, self.tail + b"}"

    def plain(self, identity: bytes) -> bytes:
        """The answer to the request of that id."""
        before, behind = self.around(identity)
        return before + b",".join(self.definitions) + behind


@dataclasses.dataclass(frozen=True, slots=True)
class _Page:
    """Compressed but for its end. `checksum`: of what was compressed, where the coding has one; `size`: of it."""

    packed: bytes
    checksum: int
    size: int


class Packer:
    """The pages of one listener that were asked for lately. All state is the event loop's."""

    __slots__ = ("_joined", "_last", "_limit", "_pages", "_working", "held")

    def __init__(self, limit: int) -> None:
        """`limit`: bytes of the pages kept, as they were before compression (what a page may keep alive)."""
        self._limit = limit
        self.held = 0
        self._pages: dict[tuple[Coding, tuple[bytes, ...]], _Page] = {}
        self._working = asyncio.Lock()
        self._last: tuple[Sequence[bytes], bytes] = ((), b"")
        self._joined: bytes | None = None

    def pieces(self, listed: Listed, identity: bytes) -> tuple[bytes, bytes]:
        """The whole answer as it is, in two pieces. A page that is asked for again and again is put together once."""
        before, behind = listed.around(identity)
        again = listed.definitions is self._last[0] and listed.tail == self._last[1]
        joined = self._joined if again else None
        if joined is None:
            joined = b",".join(listed.definitions) + behind
            self._joined = joined if again else None
            self._last = (listed.definitions, listed.tail)
        return before, joined

    async def pack(self, coding: Coding, listed: Listed, identity: bytes) -> bytes | None:
        """The whole answer, compressed; None where that is not worth it."""
        if len(identity) > _LONGEST_END:
            return None
        pieces = (listed.head, listed.tail, *listed.definitions)
        key = (coding, pieces)
        page = self._pages.pop(key, None)
        if page is None:
            size = sum(map(len, pieces))
            if size < _LEAST or size > self._limit:
                return None
            page = _compress(*key) if size <= _INLINE else await self._beside(*key)
            self._make_room(page.size)
            self.held += 0 if key in self._pages else page.size
        self._pages[key] = page  # the last one now: the first goes when room is needed
        return (_finish if coding == "gzip" else _finish_zstd)(page, b',"id":' + identity + b"}")

    async def _beside(self, coding: Coding, pieces: tuple[bytes, ...]) -> _Page:
        async with self._working:  # who waits for the same page finds it then
            found = self._pages.get((coding, pieces))
            return await asyncio.to_thread(_compress, coding, pieces) if found is None else found

    def _make_room(self, size: int) -> None:
        while self._pages and self.held + size > self._limit:
            first = next(iter(self._pages))
            self.held -= self._pages.pop(first).size


def _compress(coding: Coding, pieces: tuple[bytes, ...]) -> _Page:
    head, tail, *definitions = pieces
    whole = b'{"jsonrpc":"2.0","result":' + head + b",".join(definitions) + tail
    if coding == "zstd":
        return _Page(_zstd(whole), 0, len(whole))
    work = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = _HEADER + work.compress(whole) + work.flush(zlib.Z_SYNC_FLUSH)
    return _Page(packed, zlib.crc32(whole), len(whole))


def _zstd(whole: bytes) -> bytes:
    """A frame that is not at its end yet."""
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdCompressor
    else:  # loaded by the first client that asks for it
        from backports.zstd import ZstdCompressor
    work = ZstdCompressor(_ZSTD_LEVEL)
    return work.compress(whole, ZstdCompressor.FLUSH_BLOCK)


def _finish(page: _Page, end: bytes) -> bytes:
    """The member: the page, then `end` in a stored block, then checksum and length of both."""
    count = len(end)
    block = struct.pack("<BHH", 1, count, count ^ 0xFFFF)
    whole = (page.size + count) & 0xFFFFFFFF
    return b"".join((page.packed, block, end, struct.pack("<II", zlib.crc32(end, page.checksum), whole)))


def _finish_zstd(page: _Page, end: bytes) -> bytes:
    """The frame: the page, then `end` in a raw block that is the last."""
    return page.packed + struct.pack("<I", 1 | len(end) << 3)[:3] + end
