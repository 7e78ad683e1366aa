"""What a sandbox is, whatever makes it: it runs one program and speaks `protocol`'s frames. Interfaces only.

Implemented by deno; used by pool and run.
"""

from __future__ import annotations

import enum
from typing import Protocol


class Ending(enum.Enum):
    """Why a sandbox is gone."""

    MEMORY = "memory"
    EXITED = "exited"
    OVERLONG = "overlong"


class GoneError(Exception):
    """The sandbox ended, or had to be ended, before it was done. `detail` says with what, for the log and the error."""

    def __init__(self, ending: Ending, detail: str) -> None:
        """`detail` is a phrase without a full stop."""
        super().__init__(detail)
        self.ending = ending
        self.detail = detail


class StartError(Exception):
    """No sandbox could be started; the text says why."""


class Sandbox(Protocol):
    """One sandbox, ready for one program. Used by one task at a time."""

    @property
    def alive(self) -> bool:
        """Whether it may still be used."""
        ...

    def watch(self) -> None:
        """From now on its memory is watched: the program is about to be sent."""
        ...

    async def send(self, frame: bytes) -> None:
        """Send one line. Raises GoneError."""
        ...

    async def receive(self) -> bytes:
        """The next line, without its end. Raises GoneError."""
        ...

    async def clear(self) -> None:
        """Kill it at once, whatever it does, and return when nothing of it is left."""
        ...


class Engine(Protocol):
    """Makes sandboxes."""

    async def sandbox(self) -> Sandbox:
        """A new one, ready. Raises StartError."""
        ...

    async def close(self) -> None:
        """End every sandbox that was made, and return once none is left."""
        ...
