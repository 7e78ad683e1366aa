"""What a conversation with one server is, whatever carries it: the port between the protocol and its transports.

In: an agreed `Peer`, request bytes. Out: the `Answer`; everything else that arrives before it goes to `hear`. Raised:
`Broken`, which says in a caller's words what went wrong and whether the server may have acted on the request.
Spoken by handshake, listing, calling and connection; implemented by streamable (HTTP) and stdio.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from multidict import CIMultiDict

from arion_tds.backends.mcp import wire
from arion_tds.backends.mcp.era import Era, Peer
from arion_tds.model.result import CallFailure, ErrorCode

if TYPE_CHECKING:
    from arion_tds.tracing.spans import Attributes

Hear = Callable[[wire.Message, bytes], Awaitable[None]]
"""Hears a message that is not the answer, and its bytes."""

Limit = tuple[int, str]
"""The most bytes of an answer or event, and the setting to name."""

ERROR_BODY_LIMIT: Final = 64 << 10
"""Bytes that are read of a body whose HTTP status is not 2xx."""

_METHOD_NOT_FOUND: Final = -32601
_MAX_BACKGROUND: Final = 256
_RETRYABLE_STATUS: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class Broken(Exception):  # noqa: N818 - it is a state of the exchange, translated where it enters
    """An exchange that came to nothing. `executed`: the server may have acted on the request.

    `unsent`: the line was gone before the request was on it; over a new one it may well succeed.
    """

    def __init__(self, failure: CallFailure, *, executed: bool, unsent: bool = False) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.executed = executed
        self.unsent = unsent


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """`message` is None where the HTTP status was not 2xx and no JSON-RPC error came with it."""

    status: int
    message: wire.Message | None
    headers: Mapping[str, str]


class Line(Protocol):
    """One server's conversation. Request numbers never repeat. Background tasks are its own and end with it.

    `base`: headers of every request. `where`: how and where the server is reached, for spans; not to be changed.
    """

    base: CIMultiDict[str]
    where: Attributes

    @property
    def name(self) -> str:
        """What to call the server in messages."""

    def number(self) -> int:
        """The next request id."""

    async def ask(
        self,
        peer: Peer,
        number: int,
        headers: CIMultiDict[str],
        body: bytes,
        *,
        limit: Limit,
        hear: Hear | None = None,
    ) -> Answer:
        """Send a request and wait for its answer. The time limit is the caller's. Raises Broken."""

    async def tell(self, peer: Peer, method: str, body: bytes, *, seconds: float = ...) -> Broken | None:
        """Send what has no answer. Bounded; a failure is returned, not raised."""

    def cancels_by_leaving(self, peer: Peer) -> bool:
        """Whether the server takes an abandoned `ask` for a cancellation."""

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something bounded without anybody waiting. Beyond a limit it is left out."""

    async def leave(self, peer: Peer) -> None:
        """Say good-bye. Bounded, never fails."""

    async def close(self) -> None:
        """End every task and connection."""


async def serve(line: Line, peer: Peer, message: wire.Message) -> str | None:
    """Answer a legacy server's request: ping is answered, all else refused. The refused method, if it was."""
    if peer.era is not Era.LEGACY:
        return None  # a modern server must not ask over the wire
    ident = bytes(message.id)
    if message.method == "ping":
        await line.tell(peer, message.method, wire.answer(ident, b"{}"))
        return None
    why = f"{message.method} is not served: this gateway does not pass servers' requests on to its clients"
    await line.tell(peer, message.method, wire.refusal(ident, _METHOD_NOT_FOUND, why))
    return message.method


class Background:
    """A bounded set of tasks that nobody waits for, until it is closed."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Start it, or drop it if too much is going on already."""
        if len(self._tasks) >= _MAX_BACKGROUND:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(_ignoring(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel all and wait for them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ignoring(work: Coroutine[Any, Any, object]) -> None:
    await work


def refused_status(name: str, status: int, location: str | None = None) -> Broken:
    """What an HTTP status without a JSON-RPC answer means to a caller. 4xx: the request was not executed."""
    if 300 <= status < 400:
        where = f" to {location[:200]!r}" if location else ""
        why = f"it redirects{where} (HTTP {status}), and redirects are not followed: name the final URL"
    elif status in {401, 403}:
        why = f"it refuses this gateway (HTTP {status}): check the headers that the gateway is to send to it"
    else:
        why = f"it answered HTTP {status} without a JSON-RPC message"
    found = CallFailure(
        ErrorCode.UPSTREAM_ERROR, f"MCP server {name}: {why}", retryable=status in _RETRYABLE_STATUS, status=status
    )
    return Broken(found, executed=status == 408 or (status >= 500 and status != 503))


def too_large(name: str, limit: int, setting: str) -> Broken:
    """An answer that was stopped at its limit."""
    why = f"MCP server {name}: its answer is larger than {limit} bytes ({setting})"
    return Broken(CallFailure(ErrorCode.RESPONSE_TOO_LARGE, why), executed=True)


def malformed(name: str, why: str) -> Broken:
    """An answer that is not what MCP says."""
    return Broken(failure(f"it answered with {why}", name), executed=True)


def failure(why: str, name: str, *, retryable: bool = False) -> CallFailure:
    """A server's fault, with its name in front."""
    return CallFailure(ErrorCode.UPSTREAM_ERROR, f"MCP server {name}: {why}", retryable=retryable)
