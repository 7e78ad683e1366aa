"""How a legacy client cancels a call: notifications/cancelled with the request's id, within the same session.

In: the tasks that serve calls, and ids to cancel. Called by calling (register) and front (cancel). One per front.
(In 2026-07-28 closing the response stream is the cancellation, so nothing is remembered there.)
"""

from __future__ import annotations

import asyncio
from typing import Any

_Task = asyncio.Task[Any]


class Running:
    """Calls that can be cancelled by id. Bounded: beyond it, further calls run but cannot be cancelled."""

    def __init__(self, limit: int = 10_000) -> None:
        """`limit`: calls remembered at once."""
        self._limit = limit
        self._tasks: dict[tuple[str, bytes], _Task] = {}
        self._cancelled: set[_Task] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, session: str, identity: bytes, task: _Task) -> bool:
        """The task answers this request of this session. False: not remembered (full, or the id is in use)."""
        if len(self._tasks) >= self._limit or (session, identity) in self._tasks:
            return False
        self._tasks[session, identity] = task
        return True

    def was_cancelled(self, task: _Task) -> bool:
        """Whether the task's CancelledError came from `cancel` and from nowhere else."""
        return task in self._cancelled and task.cancelling() == 1

    def remove(self, session: str, identity: bytes, task: _Task) -> None:
        """The task is done with its call."""
        self._tasks.pop((session, identity), None)
        if task in self._cancelled:
            self._cancelled.discard(task)
            task.uncancel()

    def cancel(self, session: str, identity: bytes) -> bool:
        """Cancel the request of that session. False if no such request runs (it may just have been answered)."""
        task = self._tasks.get((session, identity))
        if task is None or task in self._cancelled:
            return False
        self._cancelled.add(task)
        task.cancel()
        return True
