"""Whatever callers and servers do, in whatever order: nobody waits for nothing, and nothing is counted twice.

The network is the argument here: transports that remember what was written and say what the server does.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from arion_tds.backends.connections import Connections
from arion_tds.backends.h1 import Connection
from arion_tds.backends.reading import Headers, Loss

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LAST = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
SPOILT = OK + b"more"
ORIGINS = ("http://a", "http://b")


class Wire(asyncio.Transport):
    """The server's end of a connection."""

    def __init__(self, protocol: Connection) -> None:
        super().__init__()
        self.protocol = protocol
        self.closed = False

    def write(self, data: Any) -> None:
        assert not self.closed, "written to a connection that is closed"

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    abort = close

    def ends(self) -> None:
        """The server closes it."""
        if not self.closed:
            self.protocol.eof_received()
            self.close()


class Net:
    """Makes connections, or refuses to."""

    def __init__(self) -> None:
        self.wires: list[Wire] = []
        self.refusing = False
        self.authority = "x"

    async def dial(self, protocol: Callable[[], Connection]) -> Connection:
        await asyncio.sleep(0)
        if self.refusing:
            raise ConnectionRefusedError
        made = protocol()
        wire = Wire(made)
        made.connection_made(wire)
        self.wires.append(wire)
        return made


@dataclasses.dataclass(eq=False)
class Call:
    """One caller: takes a connection, sends, waits for the answer."""

    pool: Connections
    origin: str
    connection: Connection | None = None
    outcome: str = ""

    async def run(self) -> None:
        try:
            self.connection = self.pool.take(self.origin) or await self.pool.open(self.origin)
        except OSError as error:
            self.outcome = type(error).__name__
            return
        over = asyncio.get_running_loop().create_future()
        self.over = over
        self.connection.send(b"GET / HTTP/1.1\r\n\r\n", None, self, bare=False)
        try:
            await over
        except asyncio.CancelledError:
            self.connection.leave(self)
            raise

    def head(self, status: int, headers: Headers, *, bodiless: bool) -> None: ...

    def body(self, data: bytes) -> None: ...

    def end(self) -> None:
        self.outcome = "ok"
        if not self.over.done():
            self.over.set_result(None)

    def lost(self, loss: Loss, *, stale: bool) -> None:
        self.outcome = loss.name
        if not self.over.done():
            self.over.set_result(None)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.integers(0, 1)),
        st.tuples(
            st.sampled_from(["answer", "last", "spoilt", "ends", "chatter", "cancel", "turn"]), st.integers(0, 9)
        ),
        st.tuples(st.just("refuse"), st.integers(0, 1)),
    ),
    max_size=60,
)


class House:
    """A pool with callers and a network, and what must always hold."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.net = Net()
        self.pool = Connections(lambda _origin: self.net, most=most, idle_timeout=60.0)  # type: ignore[arg-type, return-value]
        self.calls: dict[asyncio.Task[None], Call] = {}

    @property
    def open(self) -> list[Wire]:
        return [wire for wire in self.net.wires if not wire.closed]

    def busy(self) -> list[Wire]:
        """Connections whose answer somebody waits for."""
        return [wire for wire in self.open if wire.protocol._receiver is not None]

    def step(self, what: str, which: int) -> None:
        busy, waiting = self.busy(), [task for task in self.calls if not task.done()]
        match what:
            case "call":
                call = Call(self.pool, ORIGINS[which])
                self.calls[asyncio.create_task(call.run())] = call
            case "answer" | "last" | "spoilt" if busy:
                answer = {"answer": OK, "last": LAST, "spoilt": SPOILT}[what]
                busy[which % len(busy)].protocol.data_received(answer)
            case "ends" if self.open:
                self.open[which % len(self.open)].ends()
            case "chatter" if self.open:
                self.open[which % len(self.open)].protocol.data_received(b"HTTP/1.1 1")
            case "cancel" if waiting:
                waiting[which % len(waiting)].cancel()
            case "refuse":
                self.net.refusing = bool(which)

    def check(self) -> None:
        pool = self.pool
        assert len(self.open) <= self.most
        assert len(pool._all) <= self.counted() <= pool._taken <= self.most
        for place in pool._places.values():
            for connection in place.idle:
                assert connection.usable
                assert connection._receiver is None

    def counted(self) -> int:
        return sum(place.count for place in self.pool._places.values())

    async def turn(self) -> None:
        for _ in range(6):
            await asyncio.sleep(0)
            self.check()

    async def settle(self) -> None:
        """A server that answers everybody: then everybody has an answer."""
        self.net.refusing = False
        for _ in range(500):
            if all(task.done() for task in self.calls):
                await self.turn()
                assert self.pool._taken == self.counted(), "what is taken is a connection"
                return
            for wire in self.busy():
                wire.protocol.data_received(OK)
            await self.turn()
        raise AssertionError("somebody waits for nothing")


async def run(steps: list[tuple[str, int]], most: int) -> None:
    here = House(most)
    for what, which in steps:
        here.step(what, which)
        if what == "turn":
            await here.turn()
    await here.settle()
    assert all(call.outcome or task.cancelled() for task, call in here.calls.items())
    await here.pool.close()
    assert not here.open
    assert here.pool._taken == 0


@settings(max_examples=500)
@given(STEPS, st.integers(1, 3))
def test_nobody_waits_for_nothing_and_nothing_is_counted_twice(steps: list[tuple[str, int]], most: int) -> None:
    asyncio.run(run(steps, most))
