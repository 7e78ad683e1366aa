"""One HTTP/1.1 connection to an upstream: a request is written, its answer told piece by piece to a `Receiver`.

In: requests as bytes, one at a time. Out: `head`, `body`, `end`, or `lost`. Made by connections, which has it back once
an answer is complete and the connection can be used again. How the bytes of an answer are read stands in reading.

The hot path of every call: no task, no timer and no stream object per exchange.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from arion_tds.backends.reading import Loss, Reading, Receiver

if TYPE_CHECKING:
    from arion_tds.backends.connections import Connections, Place

_JOINED: Final = 64 << 10
"""Bytes of a body that are copied behind its head, so that one write takes both."""


class Connection(asyncio.Protocol):
    """State of the event loop's alone. `reused`: it has served a request before the current one."""

    __slots__ = ("_paused", "_poll", "_pool", "_reading", "_receiver", "_transport", "place", "reused")

    def __init__(self, pool: Connections, place: Place) -> None:
        self._pool = pool
        self.place = place
        self.reused = False
        self._transport: asyncio.Transport | None = None
        self._receiver: Receiver | None = None
        self._reading = Reading(pool.max_head)
        self._poll: Callable[[int], list[tuple[int, int]]] | None = None
        self._paused = False

    @property
    def usable(self) -> bool:
        """Whether a request can be written to it."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def silent(self) -> bool:
        """Whether nothing has come, as far as the system knows: the end of a connection may wait to be read.

        What is written to a connection that has ended is a call that may have been executed, or not: one look saves it.
        """
        return self._poll is None or not self._poll(0)

    def send(self, head: bytes, body: bytes | None, receiver: Receiver, *, bare: bool) -> None:
        """Write a request. `bare`: its answer has no body (HEAD)."""
        self._receiver = receiver
        self._reading.begin(receiver, bare=bare)
        transport = self._transport
        if transport is None or transport.is_closing():
            self._lose(Loss.UNANSWERED)
        elif body is None or len(body) < _JOINED:
            transport.write(head if body is None else head + body)
        elif transport.get_extra_info("sslcontext") is None:
            transport.writelines((head, body))
        else:
            transport.writelines((head, memoryview(body)[:-1]))
            # By itself: of what waits beneath TLS nothing else is seen (`_finish`) while the network takes no more.
            transport.write(body[-1:])

    def leave(self, receiver: Receiver) -> None:
        """It waits for its answer no more. If that has not come, the connection is of no use; else it is another's."""
        if self._receiver is receiver:
            self._receiver = None
            self.abort()

    def abort(self) -> None:
        """End it now."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End it in order."""
        if self._transport is not None:
            self._transport.close()

    def pause(self) -> None:
        """Read no more for now: the receiver has enough to do."""
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It stands."""
        self._transport = transport  # type: ignore[assignment] # uvloop's is no subclass of asyncio.Transport
        socket = transport.get_extra_info("socket")
        if socket is not None and hasattr(select, "poll"):
            poll = select.poll()
            poll.register(socket, select.POLLIN)
            self._poll = poll.poll

    def data_received(self, data: bytes) -> None:
        """Bytes of an answer; without a request they are nobody's."""
        if self._receiver is None:
            self.abort()
            return
        loss = self._reading.feed(data)
        if loss is not None:
            self._lose(loss)
        elif self._reading.complete:
            self._finish()

    def eof_received(self) -> None:
        """The upstream says no more: the connection is closed (by returning None), and told so at once."""
        self._ended(cut=False)

    def connection_lost(self, error: Exception | None) -> None:
        """It is gone."""
        self._ended(cut=error is not None)
        self._transport = None
        self._pool.gone(self)

    def _ended(self, *, cut: bool) -> None:
        if self._receiver is None:
            self._pool.unusable(self)
        elif self._reading.ends_with_connection and not cut:
            self._finish()
        else:
            self._lose(Loss.BROKEN_OFF if self._reading.in_body else Loss.UNANSWERED)

    def _finish(self) -> None:
        receiver, self._receiver = self._receiver, None
        transport = self._transport
        self.resume()
        again = self._reading.finish()
        if transport is None or transport.is_closing():
            pass  # it ends already
        elif transport.get_write_buffer_size():  # it answered before it had read the request, and may never read it
            self.abort()
        elif again:
            self._pool.release(self)
        else:
            self._pool.drop(self)
        if receiver is not None:
            receiver.end()

    def _lose(self, loss: Loss) -> None:
        receiver, self._receiver = self._receiver, None
        self.abort()
        if receiver is not None:
            receiver.lost(loss, stale=self.reused and loss is Loss.UNANSWERED and not self._reading.begun)
