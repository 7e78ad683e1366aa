"""Many open notification streams in a process of their own: `python -m benchmarks.holding ADDRESS COUNT`.

Each is a subscriptions/listen of 2026-07-28, written and read by hand, so that it takes little of the machine from the
gateway that is measured. On stdout, a line of JSON each: {"open": COUNT} when all are acknowledged, and {"told": N,
"first": T, "last": T, "most": M} whenever every one has heard of the list's Nth change at the least (T: monotonic
seconds; `most`: what the one that heard most often has heard).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator

from benchmarks import rig

_AT_ONCE = 100
_META = (
    b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},'
    b'"io.modelcontextprotocol/clientCapabilities":{}}'
)
_BODY = (
    b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},'
    b'"_meta":' + _META + b"}}"
)
_ACKNOWLEDGED = b"subscriptions/acknowledged"
CHANGED = b"tools/list_changed"


def request(address: str) -> bytes:
    """The bytes that open a stream."""
    return (
        f"POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n"
        "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n"
        f"mcp-method: subscriptions/listen\r\ncontent-length: {len(_BODY)}\r\n\r\n"
    ).encode() + _BODY


class Tally:
    """What all streams have heard, together."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.opened = 0
        self.heard: dict[int, tuple[int, float]] = {}  # by which change: how many, and when the first
        self.all_open = asyncio.Event()

    def open(self) -> None:
        self.opened += 1
        if self.opened == self.count:
            say(open=self.count)
            self.all_open.set()

    def told(self, number: int) -> None:
        now = time.perf_counter()
        many, first = self.heard.get(number, (0, now))
        self.heard[number] = many + 1, first
        if many + 1 == self.count:
            say(told=number, first=first, last=now, most=max(self.heard))


class Stream(asyncio.Protocol):
    """One stream."""

    def __init__(self, tally: Tally, asked: bytes) -> None:
        self._tally = tally
        self._asked = asked
        self._told = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(self._asked)

    def data_received(self, data: bytes) -> None:
        if _ACKNOWLEDGED in data:
            self._tally.open()
        for _ in range(data.count(CHANGED)):
            self._told += 1
            self._tally.told(self._told)

    def connection_lost(self, exc: Exception | None) -> None:
        say(lost=str(exc))


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


class Held:
    """The streams, as seen from the process that started theirs."""

    def __init__(self, child: asyncio.subprocess.Process, address: str) -> None:
        self._child = child
        self.address = address
        self.process = rig.Process(child)

    async def next(self, what: str, seconds: float = 60) -> dict[str, float]:
        """The next line that says this."""
        assert self._child.stdout is not None
        async with asyncio.timeout(seconds):
            while line := await self._child.stdout.readline():
                said: dict[str, float] = json.loads(line)
                if what in said:
                    return said
        msg = f"the streams ended before {what!r}"
        raise RuntimeError(msg)


@contextlib.asynccontextmanager
async def streams(address: str, count: int) -> AsyncIterator[Held]:
    """So many open streams, all acknowledged."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.holding", address, str(count)),
        cwd=rig.ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    held = Held(child, address)
    try:
        await held.next("open")
        yield held
    finally:
        await held.process.stop()


async def main(address: str, count: int) -> None:
    host, _, port = address.rpartition(":")
    loop, tally, asked = asyncio.get_running_loop(), Tally(count), request(address)
    held = []
    for begin in range(0, count, _AT_ONCE):
        some = range(begin, min(count, begin + _AT_ONCE))
        held += await asyncio.gather(
            *(loop.create_connection(lambda: Stream(tally, asked), host, int(port)) for _ in some)
        )
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
