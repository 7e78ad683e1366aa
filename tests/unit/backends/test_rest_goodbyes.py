"""A connection that takes its time to end (TLS says goodbye) holds nobody up, and is still seen to its end.

The transport is the argument here: it ends when the test says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from arion_tds.backends.clusters import Clusters
from arion_tds.backends.connections import Connections
from arion_tds.backends.exchange import Pool
from arion_tds.backends.h1 import Connection
from arion_tds.backends.reading import Headers, Loss
from arion_tds.model.cluster import Cluster

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LAST = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


class Slow(asyncio.Transport):
    """Closing begins at once and ends with `ends`."""

    def __init__(self, protocol: Connection) -> None:
        super().__init__()
        self.protocol = protocol
        self.closing = self.aborted = False
        self.unsent = 0

    def write(self, data: object) -> None:
        assert not self.closing

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True
        self.ends()

    def ends(self) -> None:
        asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)


class Net:
    """Dials at once."""

    def __init__(self) -> None:
        self.made: list[Slow] = []

    async def dial(self, protocol: Callable[[], Connection]) -> Connection:
        made = protocol()
        self.made.append(Slow(made))
        made.connection_made(self.made[-1])
        return made


class Heard:
    """What became of one request; `then` is done in the same breath."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.outcome: Loss | str = ""
        self.then = then

    def head(self, status: int, headers: Headers, *, bodiless: bool) -> None: ...

    def body(self, data: bytes) -> None: ...

    def end(self) -> None:
        self.outcome = "ok"
        self.then()

    def lost(self, loss: Loss, *, stale: bool) -> None:
        self.outcome = loss


@pytest.fixture
def net() -> Net:
    return Net()


@pytest.fixture
def pool(net: Net) -> Connections:
    return Connections(lambda _origin: net, most=1, idle_timeout=60.0)  # type: ignore[arg-type, return-value]


async def opened(pool: Connections, origin: str = "http://a") -> Connection:
    async with asyncio.timeout(5):
        return pool.take(origin) or await pool.open(origin)


def ask(connection: Connection, answer: bytes, then: Callable[[], object] = lambda: None) -> Heard:
    heard = Heard(then)
    connection.send(b"GET / HTTP/1.1\r\n\r\n", None, heard, bare=False)
    connection.data_received(answer)
    return heard


async def test_the_next_call_does_not_wait_for_the_goodbye_of_a_last_answer(pool: Connections, net: Net) -> None:
    assert ask(await opened(pool), LAST).outcome == "ok"
    assert net.made[0].closing
    assert ask(await opened(pool), OK).outcome == "ok"
    net.made[0].ends()
    await asyncio.sleep(0)
    assert pool._taken == 1
    assert pool.take("http://a") is net.made[1].protocol


async def test_nor_for_that_of_a_connection_which_said_what_nobody_asked_for(
    pool: Connections, net: Net, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(await opened(pool), OK)
    monkeypatch.setattr(Connection, "silent", False)
    await opened(pool)
    assert net.made[0].closing
    assert len(net.made) == 2


async def test_whoever_waits_is_let_in_when_the_goodbye_begins(pool: Connections, net: Net) -> None:
    only = await opened(pool)
    waiting = asyncio.create_task(opened(pool))
    await asyncio.sleep(0)
    ask(only, LAST)
    assert await waiting is net.made[1].protocol


async def test_closing_sees_every_goodbye_to_its_end(pool: Connections, net: Net) -> None:
    ask(await opened(pool), LAST)
    closing = asyncio.create_task(pool.close())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not closing.done()
    net.made[0].ends()
    async with asyncio.timeout(1):
        await closing
    assert pool._taken == 0


async def test_a_connection_that_ended_on_its_way_to_who_waits_is_made_anew(pool: Connections, net: Net) -> None:
    only = await opened(pool)
    waiting = asyncio.create_task(opened(pool))
    await asyncio.sleep(0)
    ask(only, OK, then=only.abort)  # it is the other's already, who has not run yet
    assert await waiting is net.made[1].protocol
    assert pool._taken == 1


async def test_an_answer_before_the_request_is_sent_costs_the_connection_at_once(pool: Connections, net: Net) -> None:
    connection = await opened(pool)
    net.made[0].unsent = 1
    assert ask(connection, OK).outcome == "ok"
    assert net.made[0].aborted  # closing would wait for the server to read on


async def test_clusters_say_goodbye_at_once_not_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    both = asyncio.Barrier(2)

    async def close(_pool: Pool) -> None:
        await both.wait()

    monkeypatch.setattr(Pool, "close", close)
    settings = {name: Cluster(name=name, endpoints=("http://127.0.0.1:1",)) for name in ("a", "b")}
    async with asyncio.timeout(5):
        await Clusters(settings).close()
