"""The other workers: what is asked of them, what is told to them, and what they hear from us. Over private sockets.

In: this worker's place, what it has to say of itself, notes of its fronts. Out: the state and the metrics of all as if
they were one process; notes to the fronts of this one. Built by app. Each worker serves a socket in the supervisor's
directory, which is open to its user alone.

Nobody waits long for a worker that is stuck or gone: an answer gets a second, and a note waits in a bounded queue for
its turn. What comes to nothing is counted (`arion_tds_worker_failures_total`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Protocol

import msgspec
from aiohttp import web
from prometheus_client import generate_latest

from arion_tds.auth.rbac import Token
from arion_tds.metrics import Metrics
from arion_tds.server.front import McpFront
from arion_tds.server.notes import Note, Tell
from arion_tds.workers import counts, summing
from arion_tds.workers.counts import Counts
from arion_tds.workers.others import MAX_ANSWER, TIMEOUT, Others
from arion_tds.workers.role import Role

MAX_NOTES: Final = 1000
"""Notes that wait for one worker; more are dropped."""

_BATCH: Final = 100
_encode = msgspec.json.Encoder().encode


class _Letter(msgspec.Struct, frozen=True):
    """A note and the listener that it is about."""

    listener: str
    note: Note


_letters = msgspec.json.Decoder(list[_Letter])


class _Question(msgspec.Struct, frozen=True):
    """What `Panel.explained` is asked."""

    name: str
    scope: str | None
    token: Token | None


_questions = msgspec.json.Decoder(_Question)


class _Panel(Protocol):
    async def explained(self, name: str, scope: str | None, token: Token | None) -> list[dict[str, Any]]:
        """What this worker says of a name."""
        ...


class Parts(Protocol):
    """What of a running gateway the others are told, and how it hears from them."""

    metrics: Metrics

    @property
    def panel(self) -> _Panel:
        """Its answers."""

    def ready(self) -> Mapping[str, object]:
        """Its state, as `/readyz` says it of one process."""

    def measure(self) -> None:
        """Bring the gauges up to date."""

    @property
    def serving(self) -> bool:
        """Whether it takes connections."""

    @property
    def fronts(self) -> Mapping[str, McpFront]:
        """By listener."""


class Siblings:
    """Use while `running`."""

    def __init__(self, role: Role, parts: Parts) -> None:
        """`parts`: this worker itself."""
        self._role = role
        self._parts = parts
        metrics = parts.metrics
        self._modes = summing.modes(vars(metrics).values())
        self.complete = asyncio.Event()
        """Every worker has taken connections, and had content, by now, or a process that it stands in for."""
        whats = ("state", "metrics", "explain", "note", "counts")
        self._failures = {what: metrics.worker_failures.labels(what) for what in whats}
        self._others = Others(role, {what: counter.inc for what, counter in self._failures.items()})
        self._queues: dict[int, asyncio.Queue[_Letter]] = {
            one: asyncio.Queue(MAX_NOTES) for one in self._others.numbers
        }
        self._counts: Counts | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer the others, and send notes to them, while the block runs."""
        app = web.Application(client_max_size=MAX_ANSWER)
        app.router.add_get("/state", self._state)
        app.router.add_get("/metrics", self._collected)
        app.router.add_post("/explain", self._explained)
        app.router.add_post("/notes", self._notes)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=TIMEOUT)
        await runner.setup()
        path, supervisor = self._role.socket(self._role.number), os.getppid()
        self._counts = await asyncio.to_thread(Counts, self._role.directory, self._role.number, self._modes)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # of one that was killed
        try:
            await web.UnixSite(runner, path).start()
            async with asyncio.TaskGroup() as tasks:
                senders = [tasks.create_task(self._send(number)) for number in self._others.numbers]
                try:
                    yield
                    await self._collect()  # what was counted since somebody last looked
                finally:
                    for sender in senders:
                        sender.cancel()
        finally:
            try:
                await runner.cleanup()
            finally:
                self._leave(path, orphaned=os.getppid() != supervisor)

    def _leave(self, path: str, *, orphaned: bool) -> None:
        """Take the socket away; a supervisor that is gone cannot remove the folder: the last of us does."""
        with contextlib.suppress(OSError):
            os.unlink(path)
        if orphaned:
            counts.clear(self._role.directory)
            with contextlib.suppress(OSError):  # not the last one
                os.rmdir(self._role.directory)

    def teller(self, listener: str) -> Tell:
        """Sends the notes of that listener."""

        def tell(note: Note) -> None:
            for queue in self._queues.values():
                try:
                    queue.put_nowait(_Letter(listener, note))
                except asyncio.QueueFull:
                    self._failures["note"].inc()

        return tell

    async def ready(self) -> dict[str, object]:
        """The state of this worker, with `ready` for all, and the state of each in `workers`.

        Ready once every worker has taken connections and had its first content, and while all that take them are ready.
        One that is being replaced or drains is asked by nobody, and the others must not be taken out of service for it.
        """
        own = {**self._parts.ready()}
        found = await self._others.ask("state")
        states: dict[int, Any] = {self._role.number: self._about()}
        for number, raw in found.items():
            with contextlib.suppress(msgspec.DecodeError):
                states[number] = {"worker": number, "ready": False} if raw is None else msgspec.json.decode(raw)
        asked = [one["ready"] for one in states.values() if one.get("serving") and not one["draining"]]
        own["ready"] = bool(asked) and all(asked) and self.complete.is_set()
        return {**own, "worker": self._role.number, "workers": [states[number] for number in sorted(states)]}

    async def metrics(self) -> bytes:
        """The page of all workers together; of one that does not answer, what it had counted when it last did."""
        own = await self._collect()
        return await asyncio.to_thread(self._page, own, await self._others.ask("metrics"))

    async def explained(
        self, name: str, scope: str | None, token: Token | None
    ) -> dict[int, list[dict[str, Any]] | None]:
        """What each of the others says of a name, see `Panel.explained`. None: it does not answer."""
        answers: dict[int, list[dict[str, Any]] | None] = {}
        for number, raw in (await self._others.ask("explain", _encode(_Question(name, scope, token)))).items():
            answers[number] = None if raw is None else msgspec.json.decode(raw, type=list[dict[str, Any]])
        return answers

    def _page(self, own: bytes, others: Mapping[int, bytes | None]) -> bytes:
        parts = [summing.decode(own)]
        for number, raw in others.items():
            part = counts.read(self._role.directory, number) if raw is None else raw
            if part is not None:
                with contextlib.suppress(msgspec.MsgspecError):
                    parts.append(summing.decode(part))
        return generate_latest(summing.Summed(parts, self._modes))

    async def _send(self, number: int) -> None:
        """Notes to one worker, in their order, as many at a time as there are."""
        queue = self._queues[number]
        while True:
            letters = [await queue.get()]
            while len(letters) < _BATCH and not queue.empty():
                letters.append(queue.get_nowait())
            if not await self._others.tell(number, "notes", _encode(letters)):
                self._failures["note"].inc(len(letters))

    async def _collect(self) -> bytes:
        self._parts.measure()
        # A thousand scopes are some ten thousand lines: they are gathered beside the loop, not on it.
        if self._counts is None:
            raise RuntimeError("nothing is counted before it runs")
        raw, good = await asyncio.to_thread(self._counts.collect, self._parts.metrics.registry)
        if not good:
            self._failures["counts"].inc()
        return raw

    def _about(self) -> dict[str, object]:
        state, fronts = self._parts.ready(), [one.status() for one in self._parts.fronts.values()]
        told = ("ready", "draining", "config_generation", "last_reload_error")
        counts = {name: sum(one[name] for one in fronts) for name in ("open_streams", "running_calls")}
        return {
            "worker": self._role.number,
            "pid": os.getpid(),
            "serving": self._parts.serving,
            **{name: state[name] for name in told},
            **counts,
        }

    async def _state(self, _request: web.Request) -> web.Response:
        return web.Response(body=_encode(self._about()))

    async def _collected(self, _request: web.Request) -> web.Response:
        return web.Response(body=await self._collect())

    async def _explained(self, request: web.Request) -> web.Response:
        asked = _questions.decode(await request.read())
        return web.Response(body=_encode(await self._parts.panel.explained(asked.name, asked.scope, asked.token)))

    async def _notes(self, request: web.Request) -> web.Response:
        for letter in _letters.decode(await request.read()):
            front = self._parts.fronts.get(letter.listener)
            if front is not None:
                front.heard(letter.note)
        return web.Response(status=204)
