"""The process that starts the workers, replaces those that end, and hands signals on to all. It serves nothing itself.

In: a `Plan`, the command that a worker is started with, signals. Out: the exit status. Called by cli.serve. It imports
neither gRPC nor aiohttp nor numpy: what it holds is an interpreter.

A worker gets its place and its orders over standard input, which is a socket: its end is how a worker learns that its
supervisor is gone. Signals are orders there, not signals: systemd and terminals signal every process themselves, and
nobody is told twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import pathlib
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Sequence
from typing import Final

from arion_tds.config import sharing
from arion_tds.errors import BindError, ConfigError
from arion_tds.workers import role
from arion_tds.workers.choosing import Plan
from arion_tds.workers.pulse import TRIES, Pulse
from arion_tds.workers.restarts import Restarts, Uniform
from arion_tds.workers.role import Role

PATIENCE: Final = 30.0
"""Seconds that a worker gets to stop which has not said how many it needs."""

MARGIN: Final = 15.0
"""Seconds beyond those that a worker says it needs."""

_LONGEST: Final = 90  # bytes: the system takes 107, with the socket's name

_log = logging.getLogger("arion_tds.workers")


class _Life:
    """One process of a worker, from its start to its end."""

    def __init__(self, process: asyncio.subprocess.Process, end: socket.socket) -> None:
        self.process = process
        self.patience = PATIENCE
        self.timeout = 0.0
        self._serves = asyncio.Event()
        self._pulse = Pulse()
        self.serving_since: float | None = None
        self.refused: ConfigError | BindError | None = None
        self._end = end

    def order(self, what: str) -> None:
        """Tell it; one that does not listen is ended when its patience is over."""
        with contextlib.suppress(OSError):
            self._end.send(role.message(order=what))

    def kill(self) -> None:
        """End it, whatever it does."""
        with contextlib.suppress(ProcessLookupError):  # it has ended, which nobody has been told of yet
            self.process.kill()

    async def hear(self, served: Callable[[], float], complete: Callable[[], None]) -> None:
        """What it says, until it has no more to say. `served` is told when it serves, and gives the time.

        `complete` is told when it has content.
        """
        reader, writer = await asyncio.open_connection(sock=self._end.dup(), limit=role.MAX_LINE + 1)
        try:
            while line := await reader.readline():
                said = json.loads(line)
                if "refused" in said:
                    problems = said["refused"]
                    self.refused = BindError(problems[0]) if said["bind"] else ConfigError(problems)
                elif "lives" in said:
                    self._pulse.answered()
                elif "complete" in said:
                    complete()
                else:
                    self.patience, self.timeout = said["patience"] + MARGIN, said["timeout"]
                    if said["serving"] and self.serving_since is None:
                        self.serving_since = served()
                        self._serves.set()
        except OSError:
            pass  # it ended in the midst of a word
        finally:
            writer.close()
            self._end.close()

    async def hangs(self) -> None:
        """Until it has not answered for as long as it may. Before it serves it may be busy for as long as it likes."""
        await self._serves.wait()
        if not self.timeout:
            await asyncio.Event().wait()
        while self._pulse.beats():
            self.order(role.PING)
            await asyncio.sleep(self.timeout / TRIES)


class Supervisor:
    """Use `run` once."""

    def __init__(self, command: Sequence[str], plan: Plan, *, clock: Callable[[], float], rng: Uniform) -> None:
        """`command` starts a worker, whose place is added to it. `clock`: seconds that never go back."""
        self._command = tuple(command)
        self._plan = plan
        self._clock = clock
        self._rng = rng
        self._key = secrets.token_bytes(32)
        self._lives: dict[int, _Life] = {}
        self._settled: set[int] = set()
        self._complete: set[int] = set()
        self._stop = asyncio.Event()
        self._refused: ConfigError | BindError | None = None

    async def run(self) -> int:
        """Until told to stop. ConfigError or BindError: the workers could not start, and none is left."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._told_to_stop)
        loop.add_signal_handler(signal.SIGINT, self._told_to_stop)
        loop.add_signal_handler(signal.SIGHUP, self._order, role.RELOAD)
        for whose, address in self._plan.addresses:
            _probe(whose, address)
        directory = pathlib.Path(tempfile.mkdtemp(prefix="arion-tds-"))
        try:
            if len(bytes(directory)) > _LONGEST:
                raise ConfigError([f"workers: {directory} is too long a path for their sockets: set TMPDIR"])
            async with asyncio.TaskGroup() as tasks:
                for number in range(self._plan.count):
                    tasks.create_task(self._keep(number, directory))
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        if self._refused is not None:
            raise self._refused
        return 0

    def _told_to_stop(self) -> None:
        self._order(role.HURRY if self._stop.is_set() else role.STOP)
        self._stop.set()

    def _order(self, what: str) -> None:
        for life in self._lives.values():
            life.order(what)

    async def _keep(self, number: int, directory: pathlib.Path) -> None:
        """Have a worker of that number, one after the other."""
        restarts = Restarts(self._rng)
        while not self._stop.is_set():
            try:
                life = await self._start(number, directory)
            except OSError as error:
                if len(self._settled) < self._plan.count:
                    raise
                delay = restarts.delay(0.0) or 1.0
                _log.error("worker %d cannot be started: %s; it is tried again after %.1f s", number, error, delay)
                await self._pause(delay)
                continue
            try:
                await self._lived(number, life)
            finally:
                del self._lives[number]
            if self._stop.is_set():
                return
            if life.refused is not None and len(self._settled) < self._plan.count:
                self._refused = self._refused or life.refused
                self._told_to_stop()
                return
            served = 0.0 if life.serving_since is None else self._clock() - life.serving_since
            delay = restarts.delay(served)
            why = "" if life.refused is None else f": {life.refused}"
            when = f"after {delay:.1f} s" if delay else "at once"
            _log.error("worker %d %s%s; it is replaced %s", number, _ended(life.process.returncode), why, when)
            await self._pause(delay)

    async def _pause(self, seconds: float) -> None:
        """That long, or until told to stop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()

    async def _start(self, number: int, directory: pathlib.Path) -> _Life:
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        place = Role(number, self._plan.count, directory, self._key, patient=self._someone_serves)
        command = (*self._command, f"--worker={number}/{self._plan.count}")
        with theirs:
            ours.send(place.encode())  # smaller than any socket's buffer
            process = await asyncio.create_subprocess_exec(*command, stdin=theirs.fileno())
        life = self._lives[number] = _Life(process, ours)
        if self._stop.is_set():
            life.order(role.STOP)
        return life

    @property
    def _someone_serves(self) -> bool:
        return any(life.serving_since is not None for life in self._lives.values())

    async def _lived(self, number: int, life: _Life) -> None:
        """Until the process has ended, by itself or since it had to."""

        def served() -> float:
            self._settled.add(number)
            return self._clock()

        def complete() -> None:
            self._complete.add(number)
            if len(self._complete) == self._plan.count:
                self._order(role.ALL)

        async with asyncio.TaskGroup() as tasks:
            hearing = tasks.create_task(life.hear(served, complete))
            ending = tasks.create_task(life.process.wait())
            stopping = tasks.create_task(self._stop.wait())
            hanging = tasks.create_task(life.hangs())
            await asyncio.wait({ending, stopping, hanging}, return_when=asyncio.FIRST_COMPLETED)
            if hanging.done() and not ending.done():
                _log.error("worker %d has not answered for %g s (worker_timeout): it is killed", number, life.timeout)
                life.kill()
                await ending
            stopping.cancel()
            hanging.cancel()
            told = self._clock()
            while not ending.done() and (left := told + life.patience - self._clock()) > 0:
                # It may yet say that it needs longer: the config has changed since it said so first.
                await asyncio.wait({ending}, timeout=min(left, 1.0))
            if not ending.done():
                _log.error("worker %d has not stopped within %g s: it is killed", number, life.patience)
                life.kill()
            await ending
            # A child of its own may hold the line open: what it said itself is read by then.
            await asyncio.wait({hearing}, timeout=1.0)
            hearing.cancel()


def _probe(whose: str, address: str) -> None:
    """BindError when somebody has the address: with SO_REUSEPORT the system would let us share it unawares."""
    host, port = sharing.split_address(address)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, where in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(where)
    except OSError as error:
        raise BindError.at(whose, host, port, error) from error


def _ended(status: int | None) -> str:
    if status is not None and status < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"
