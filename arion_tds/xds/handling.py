"""Handler calls, and when the client is ready.

In: tickets of responses, in order of arrival. Out: calls of the handler, their verdicts in the session, readiness.
Called by xds.stream. Calls outlive the stream that brought them: their group is as old as the client's run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from arion_tds.model.delivery import Delivery, DeliveryVerdict
from arion_tds.pace import Pace
from arion_tds.xds.session import Session, Ticket
from arion_tds.xds.telling import Teller

Handler = Callable[[Delivery], Awaitable[DeliveryVerdict]]

_STEP: Final = 64
"""Resources of a verdict recorded between two looks at the clock."""


class Handling:
    """Owned by the client's run task, which sets `calls` to its group. `ready` is set once and stays so.

    `complete` is set while every type's first response for the scopes of this moment has been applied.
    """

    def __init__(
        self, session: Session, handler: Handler, fetch: float, teller: Teller, settled: Callable[[], None]
    ) -> None:
        """`fetch`: seconds that ready waits while a stream is up. `settled` is called whenever a verdict is in."""
        self.calls = asyncio.TaskGroup()
        self.ready = asyncio.Event()
        self.complete = asyncio.Event()
        self._session = session
        self._handler = handler
        self._fetch = fetch
        self._left = fetch
        self._teller = teller
        self._told = settled

    def take(self, ticket: Ticket) -> None:
        """A response was read. What there is to hand over is handed over, in a task of its own."""
        if ticket.delivery is None:
            self._settled()
        else:
            self.calls.create_task(self.handle(ticket, ticket.delivery, self._handler))

    async def initial_fetch(self) -> None:
        """The time that ready waits for; to be run only while a stream is up (gRFC A57)."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            await asyncio.sleep(max(0.0, self._left))
        finally:
            self._left -= loop.time() - begun
        if not self.ready.is_set():
            self.ready.set()
            silent = [kind.short for kind, state in self._session.types.items() if not state.answered]
            self._teller.not_all(silent, self._fetch)

    async def handle(self, ticket: Ticket, delivery: Delivery, handler: Handler) -> None:
        """Call the handler and record its verdict."""
        verdict: DeliveryVerdict | None = None
        try:
            verdict = await handler(delivery)
        except Exception as error:  # noqa: BLE001  (the top of a task: a bug in a handler must not end the stream)
            self._teller.broke(f"the handling of a {ticket.kind.short} response", error)
        finally:
            if verdict is None:
                self._session.settle(ticket, None)
                self._settled()
        if verdict is not None:
            pace = Pace()
            for done, _ in enumerate(self._session.settling(ticket, verdict)):
                if done % _STEP == 0:
                    await pace.breathe()
            self._settled()

    def _settled(self) -> None:
        self._told()
        if self.complete.is_set() or not self._session.complete:
            return
        self.complete.set()
        if not self.ready.is_set():
            self.ready.set()
            self._teller.all_there()
