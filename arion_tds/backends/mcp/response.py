"""One answer of an MCP server, read as it comes: a whole body, or an event stream that may last for days.

In: what h1 tells of the answer. Out: status and headers once they are there, then pieces of the body. Made by http.

What arrives faster than it is read waits here, up to a bound; beyond it the server has to wait.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import Final

from arion_tds.backends.h1 import Connection
from arion_tds.backends.reading import Headers, Loss
from arion_tds.inflate import decompressor, supported

_AHEAD: Final = 256 << 10
"""Bytes that may wait to be read."""

_PIECE: Final = 64 << 10
"""Bytes that are unpacked at once."""


class Lost(Exception):  # noqa: N818 - a state of the exchange, translated by the channel
    """There is no (whole) answer."""

    def __init__(self, loss: Loss) -> None:
        super().__init__(loss.value)
        self.loss = loss


class Response:
    """`headers`: the first value of each, names in lower case. To be read to the end, closed or discarded."""

    __slots__ = (
        "_between",
        "_connection",
        "_decoder",
        "_discarded",
        "_encoding",
        "_ended",
        "_loss",
        "_over",
        "_packed",
        "_parts",
        "_size",
        "_waiter",
        "headers",
        "status",
    )

    def __init__(self, connection: Connection) -> None:
        """The connection is the answer's until its end."""
        self.status = 0
        self.headers: dict[str, str] = {}
        self._connection = connection
        self._parts: list[bytes] = []
        self._size = 0
        self._ended = False
        self._loss: Loss | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._encoding = ""
        self._between = False
        self._decoder: zlib._Decompress | None = None
        self._packed = b""
        self._discarded: int | None = None
        self._over: Callable[[], None] | None = None

    @property
    def content_length(self) -> int | None:
        """What the headers say."""
        said = self.headers.get("content-length")
        return None if said is None else int(said)

    @property
    def at_eof(self) -> bool:
        """Whether all of it was read."""
        return self._ended and not self._parts and not self._packed

    async def started(self) -> None:
        """Until status and headers are there. Raises Lost."""
        while not self.status:
            if self._loss is not None:
                raise Lost(self._loss)
            await self._wait()

    async def readany(self) -> bytes:
        """What there is of the body, or comes next; b"" at its end. Raises Lost."""
        while True:
            piece = self._unpacked() if self._encoding else self._taken()
            if piece:
                return piece
            if self._loss is not None:
                raise Lost(self._loss)
            if self._ended:
                return b""
            await self._wait()

    def close(self) -> None:
        """Read no more of it; an answer that is not over yet costs its connection."""
        self._parts, self._packed = [], b""
        if not self._ended:
            self._ended = True
            self._connection.leave(self)
            self._tell()

    def discard(self, most: int, over: Callable[[], None]) -> None:
        """Read what little is left of it and forget it. `over` is called once, when it has ended or been closed."""
        self._parts, self._packed = [], b""
        self._discarded = most
        self._over = over
        if self._ended or self._loss is not None:
            self._tell()
        else:
            self._connection.resume()

    def head(self, status: int, headers: Headers, *, bodiless: bool) -> None:
        """See reading.Receiver."""
        for name, value in headers:
            self.headers.setdefault(name, value)
        self.status = status
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if not bodiless and encoding != "identity":  # nobody asked for it
            self._encoding = encoding
            if not supported(encoding):
                self._fail(Loss.MALFORMED)
        self._tell()

    def body(self, data: bytes) -> None:
        """See reading.Receiver."""
        if self._discarded is not None:
            self._discarded -= len(data)
            if self._discarded < 0:
                self.close()
            return
        self._parts.append(data)
        self._size += len(data)
        if self._size > _AHEAD:
            self._connection.pause()
        self._tell()

    def end(self) -> None:
        """See reading.Receiver."""
        self._ended = True
        self._tell()

    def lost(self, loss: Loss, *, stale: bool) -> None:
        """See reading.Receiver."""
        del stale  # a call may have been executed: it is never sent again by itself
        self._loss = loss
        self._tell()

    def _taken(self) -> bytes:
        if not self._parts:
            return b""
        parts, self._parts, self._size = self._parts, [], 0
        if not self._ended:
            self._connection.resume()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _unpacked(self) -> bytes:
        """The next piece of a compressed body, never much at once: little can unpack to very much."""
        while self._packed or self._parts:
            packed = self._packed or self._taken()
            if self._between and not (packed := packed.lstrip(b"\0")):
                self._packed = b""
                continue
            if self._decoder is None:
                self._decoder, self._between = decompressor(self._encoding, packed), False
            try:
                piece = self._decoder.decompress(packed, _PIECE)
            except zlib.error:
                self._fail(Loss.MALFORMED)
                return b""
            self._packed = self._decoder.unconsumed_tail
            if self._decoder.eof:  # another member may follow, or padding
                self._packed, self._decoder, self._between = self._decoder.unused_data, None, True
            if piece:
                return piece
        return b""

    def _fail(self, loss: Loss) -> None:
        self._loss = loss
        self._parts, self._packed = [], b""
        if not self._ended:
            self._connection.leave(self)

    def _tell(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        if self._over is not None and (self._ended or self._loss is not None):
            over, self._over = self._over, None
            over()

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter
