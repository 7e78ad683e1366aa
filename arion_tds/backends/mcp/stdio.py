"""A local MCP server as a child process: a `Line` over its stdin and stdout.

In: a command of the operator's config (never of a control plane), request bytes. Out: answers as `line.Line` says; its
stderr goes to the log. Called by connection (as a Line), built by pool.

The process is started when it is first needed and again when it is needed after it ended; it is ended after a time
without calls. One that dies soon after its start is started again only after a growing pause. Nothing of it is left
behind: stdin is closed, then its process group is told to end, then killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import logging
import os
import signal
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from multidict import CIMultiDict

from arion_tds.backends.mcp import wire
from arion_tds.backends.mcp.era import Peer
from arion_tds.backends.mcp.line import Answer, Background, Broken, Hear, Limit, failure, malformed, too_large
from arion_tds.child import Child, start

if TYPE_CHECKING:
    from arion_tds.tracing.spans import Attributes

_log = logging.getLogger(__name__)
_INHERITED: Final = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
_STDERR_LINE: Final = 1000
_GRACE: Final = 2.0
_SOON: Final = 10.0
"""Seconds after its start within which an end counts as a crash."""

_MAX_PAUSE: Final = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StdioServer:
    """A command and its environment (beside PATH, HOME and the like). Times in seconds, sizes in bytes."""

    command: tuple[str, ...]
    env: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    cwd: str | None = None
    idle_timeout: float = 180.0
    max_line: int = 32 << 20


@dataclasses.dataclass(slots=True)
class _Waiting:
    """A request without an answer yet."""

    future: asyncio.Future[wire.Message]
    limit: Limit
    hear: Hear | None


@dataclasses.dataclass(slots=True, eq=False)
class _Child:
    """One process and what it still owes. `resting`: it was told to end."""

    process: Child
    stdin: asyncio.StreamWriter
    begun: float
    waiting: dict[int, _Waiting] = dataclasses.field(default_factory=dict)
    resting: bool = False


class Lost(Protocol):
    """Hears that the process is gone."""

    def __call__(self, *, unexpected: bool) -> None:
        """`unexpected`: not because it was told to end."""


class StdioLine:
    """One child process at a time. Owned by its Upstream; use from one event loop."""

    def __init__(self, name: str, server: StdioServer, lost: Lost, hear: Hear) -> None:
        """`lost` is called when a process has ended; `hear` gets what belongs to no request."""
        self._name = name
        self._server = server
        self._lost = lost
        self._hear = hear
        self.base: CIMultiDict[str] = CIMultiDict()
        self.where: Attributes = {"network.transport": "pipe", "server.address": name}
        self._numbers = itertools.count(1)
        self._background = Background()
        self._owners: set[asyncio.Task[None]] = set()
        self._child: _Child | None = None
        self._starting = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._crashes = 0
        self._not_before = 0.0
        self._closed = False

    @property
    def name(self) -> str:
        """The server's name in the config."""
        return self._name

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        return None if self._child is None else self._child.process.pid

    def number(self) -> int:
        """The next request id."""
        return next(self._numbers)

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
        """See line.Line. A handshake (peer number 0) starts the process; what was agreed with one ends with it."""
        del headers
        child = self._child
        if child is None:
            if peer.number:
                why = failure("its process has ended", self._name, retryable=True)
                raise Broken(why, executed=False, unsent=True)
            child = await self._started()
        waiting = _Waiting(asyncio.get_running_loop().create_future(), limit, hear)
        child.waiting[number] = waiting
        self._count_idle(None)
        try:
            await self._write(child, body)
            return Answer(200, await waiting.future, {})
        finally:
            del child.waiting[number]
            if child is self._child and not child.waiting:
                self._count_idle(child)

    async def tell(self, peer: Peer, method: str, body: bytes, *, seconds: float = 5.0) -> Broken | None:
        """See line.Line. A process that does not run is not started for this."""
        del peer, method
        child = self._child
        if child is None:
            return Broken(failure("its process has ended", self._name), executed=False)
        try:
            async with asyncio.timeout(seconds):
                await self._write(child, body)
        except TimeoutError:
            return malformed(self._name, "nothing: it does not read its input")
        except Broken as broken:
            return broken
        return None

    async def _write(self, child: _Child, body: bytes) -> None:
        try:
            child.stdin.write(body.replace(b"\n", b"") + b"\n")
            await child.stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            raise Broken(failure("its process has ended", self._name, retryable=True), executed=True) from error

    async def _started(self) -> _Child:
        """The process; started now if there is none. Raises Broken."""
        async with self._starting:
            if self._closed:
                raise Broken(failure("its connection is closed", self._name), executed=False)
            if self._child is not None:
                return self._child
            now = asyncio.get_running_loop().time()
            if now < self._not_before:
                why = f"its process crashed {self._crashes} times; the next start is in {self._not_before - now:.1f} s"
                raise Broken(failure(why, self._name, retryable=True), executed=False)
            try:
                process = await start(
                    self._server.command,
                    {key: os.environ[key] for key in _INHERITED if key in os.environ} | dict(self._server.env),
                    cwd=self._server.cwd,
                    errors=True,
                    limit=self._server.max_line,
                )
            except (OSError, ValueError) as error:
                raise Broken(failure(f"its command cannot be started: {error}", self._name), executed=False) from error
            child = self._child = _Child(process, process.stdin, now)
            owner = asyncio.get_running_loop().create_task(self._own(child, process.stdout, process.stderr))
            self._owners.add(owner)
            owner.add_done_callback(self._owners.discard)
            return child

    async def _own(self, child: _Child, stdout: asyncio.StreamReader, stderr: asyncio.StreamReader) -> None:
        """The life of one process: read what it writes until it ends, then clear away what is left of it."""
        log = asyncio.get_running_loop().create_task(self._errors(stderr))
        try:
            await self._read(child, stdout)
            # Nothing more will come on stdout: this conversation is over, whether or not the process is.
            self._ended(child)
            await _end(child)
            await asyncio.wait({log}, timeout=_GRACE)
        finally:
            log.cancel()
            self._ended(child)
            _kill(child)
        _log.info(
            "MCP server %s: process %d ended (exit code %s)", self._name, child.process.pid, child.process.returncode
        )

    def _ended(self, child: _Child) -> None:
        """Everything that waits for this process learns that it is gone."""
        why = failure("its process ended", self._name, retryable=True)
        for waiting in child.waiting.values():
            if not waiting.future.done():
                waiting.future.set_exception(Broken(why, executed=True))
        if self._child is not child:
            return
        self._child = None
        self._lost(unexpected=not self._closed)
        now = asyncio.get_running_loop().time()
        if child.resting or self._closed or now - child.begun >= _SOON:
            self._crashes = 0
            return
        self._crashes += 1
        if self._crashes > 1:  # the first may be what it answers an unknown method with
            self._not_before = now + min(2.0 ** (self._crashes - 2), _MAX_PAUSE)

    async def _read(self, child: _Child, stdout: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return
            except asyncio.LimitOverrunError:
                _log.error("MCP server %s: a line of more than %d bytes (max_line)", self._name, self._server.max_line)
                return
            if line.strip():
                await self._line(child, line.strip())

    async def _line(self, child: _Child, line: bytes) -> None:
        messages = wire.parse(line)
        if isinstance(messages, str):
            _log.debug("MCP server %s wrote a line that is %s", self._name, messages)
            return
        for message in messages:
            if not message.is_response:
                await self._listener(child, message)(message, line)
                continue
            waiting = child.waiting.get(_number(message.id))
            if waiting is None or waiting.future.done():
                continue
            if len(line) > waiting.limit[0]:
                waiting.future.set_exception(too_large(self._name, *waiting.limit))
            else:
                waiting.future.set_result(message)

    def _listener(self, child: _Child, message: wire.Message) -> Hear:
        """Whose concern a message is: the call of its progress token, else the only call that runs, else nobody's."""
        listening = {number: each.hear for number, each in child.waiting.items() if each.hear is not None}
        if message.method == "notifications/progress":
            with contextlib.suppress(*wire.BAD_JSON):
                token = wire.members(message.params).get("progressToken", msgspec.Raw())
                return listening.get(_number(token), self._hear)
        if len(listening) == 1:
            return next(iter(listening.values()))
        return self._hear

    async def _errors(self, stderr: asyncio.StreamReader) -> None:
        while chunk := await stderr.read(8192):
            for line in chunk.splitlines()[:100]:
                _log.info("MCP server %s: %s", self._name, line[:_STDERR_LINE].decode("utf-8", "replace"))

    def _count_idle(self, child: _Child | None) -> None:
        """Count the time without calls of `child` anew; None: there are calls."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if child is not None:
            self._idle = asyncio.get_running_loop().call_later(self._server.idle_timeout, self._rest, child)

    def _rest(self, child: _Child) -> None:
        """Nobody has called for a while. The next call gets a new process."""
        self._idle = None
        child.resting = True
        if self._child is child:
            self._child = None
            self._lost(unexpected=False)
        child.stdin.close()  # its owner sees the end of its output, and clears away what is left
        self.spawn(_end(child))

    def cancels_by_leaving(self, peer: Peer) -> bool:
        """No: the server cannot see that nobody waits any more, in either era."""
        del peer
        return False

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """See line.Line."""
        self._background.spawn(work)

    async def leave(self, peer: Peer) -> None:
        """The end of the process is the end of the session."""
        del peer

    async def close(self) -> None:
        """End the process and every task."""
        self._closed = True
        self._count_idle(None)
        await self._background.close()
        if self._child is not None:
            await _end(self._child)
        owners = set(self._owners)
        if owners:
            await asyncio.wait(owners, timeout=4 * _GRACE)  # each is ending its process already
        for owner in owners:
            owner.cancel()
        await asyncio.gather(*owners, return_exceptions=True)


async def _end(child: _Child) -> None:
    """Ask ever less politely, then clear the process group: children of wrappers outlive their parents."""
    child.stdin.close()
    for sign in (None, signal.SIGTERM, signal.SIGKILL):
        if sign is not None:
            _signal(child, sign)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await child.process.wait()
                break
    _kill(child)
    child.process.close()


def _kill(child: _Child) -> None:
    _signal(child, signal.SIGKILL)


def _signal(child: _Child, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.process.pid, sign)


def _number(raw: msgspec.Raw) -> int:
    text = bytes(raw).strip(b'"')
    return int(text) if text.isdigit() and len(text) < 18 else 0
