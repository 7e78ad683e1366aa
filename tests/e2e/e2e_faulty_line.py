"""A TCP line between a gateway and its control plane that breaks, cuts and garbles, as a test's dice say.

In: the address behind it, a random number generator. Out: an address to connect to. Used by test_churn.

Garbled means: from some byte on everything is 0xFF, for a little while, then the line is cut. No length, tag or text of
HTTP/2 or protobuf survives that unnoticed, so what arrives is never good content of another meaning; on a real line
checksums see to that.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Final, Self

_CHUNK: Final = 16 * 1024
_GARBLED: Final = 2048
"""Bytes that are garbled before the line is cut."""


class FaultyLine:
    """Listens while it is entered. `healthy`: connections made from now on are left alone."""

    def __init__(self, target: str, rng: random.Random) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._rng = rng
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.healthy = True
        self.address = ""
        self.faults = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        await asyncio.gather(*self._open, return_exceptions=True)

    def cut(self) -> None:
        """Break every connection that there is."""
        for task in self._open:
            task.cancel()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        other: asyncio.StreamWriter | None = None
        try:
            behind, other = await asyncio.open_connection(*self._target)
            up, down = self._fate(), self._fate()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, other, up))
                group.create_task(self._pass(behind, writer, down))
        except (OSError, asyncio.CancelledError, BaseExceptionGroup):
            pass  # the line is broken: that is what it is for
        finally:
            self._open.discard(task)
            for end in (writer, other):
                if end is not None:
                    end.transport.abort()

    def _fate(self) -> tuple[int, bool] | None:
        """After how many bytes of one direction the line breaks, and whether it is garbled first. None: it does not."""
        if self.healthy or self._rng.random() < 0.3:
            return None
        return int(self._rng.choice((40, 400, 4_000, 40_000)) * self._rng.random()), self._rng.random() < 0.5

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fate: tuple[int, bool] | None
    ) -> None:
        passed, spoilt = 0, 0
        while chunk := await reader.read(_CHUNK):
            if fate is not None:
                at, garbles = fate
                good = chunk[: max(0, at - passed)]
                bad = len(chunk) - len(good)
                if bad and not garbles:
                    writer.write(good)
                    break
                chunk = good + b"\xff" * bad
                spoilt += bad
            passed += len(chunk)
            writer.write(chunk)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
            if spoilt > _GARBLED:
                break
        else:
            raise ConnectionResetError("one end has closed")
        self.faults += 1
        raise ConnectionResetError("a fault of the line")
