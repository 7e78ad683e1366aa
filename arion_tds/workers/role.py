"""What a worker knows of its place, and its line to the supervisor: the worker's end of it, and the words on it.

In: standard input, which the supervisor made a socket. Out: a `Role`, orders as they come, and what is told back. The
line carries one JSON object per line. Its end means that the supervisor is gone. Called by cli.serving.

Nothing of it stands in arguments or environment: the key of the sessions is on the line too.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import os
import pathlib
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

STOP: Final = "stop"
HURRY: Final = "hurry"
RELOAD: Final = "reload"
PING: Final = "ping"
"""Say that you live: see `Line.lives`."""

ALL: Final = "all"
"""Every worker has taken connections, and had its first content, by now. (No order, but a word.)"""

MAX_LINE: Final = 1 << 20
"""Bytes of one message on the line: mistakes of a config are told on it."""

_HELLO: Final = 10.0  # seconds that the supervisor's first line may take


@dataclasses.dataclass(frozen=True, slots=True)
class Role:
    """Worker `number` (from 0) of `count`. `directory`: where each has its private socket.

    `key` signs sessions where the config has none. `patient`: others serve already, so there is no hurry to listen.
    """

    number: int
    count: int
    directory: pathlib.Path
    key: bytes = dataclasses.field(repr=False)
    patient: bool = False

    @property
    def leads(self) -> bool:
        """Whether this one does what is done once for all of them: events, and the cache on disk."""
        return self.number == 0

    def socket(self, number: int) -> str:
        """Path of a worker's private socket."""
        return str(self.directory / f"{number}.sock")

    def encode(self) -> bytes:
        """As the first line that a worker gets."""
        key = base64.b64encode(self.key).decode()
        fields = {**dataclasses.asdict(self), "directory": str(self.directory), "key": key}
        return message(**fields)


def message(**fields: object) -> bytes:
    """One line."""
    return json.dumps(fields).encode() + b"\n"


class Line:
    """The worker's end."""

    def __init__(self, end: socket.socket) -> None:
        """See `taken`."""
        self._end = end

    @classmethod
    def taken(cls) -> Line:
        """Of standard input, which is nothing from then on, so that no child of ours gets it."""
        end = socket.socket(fileno=os.dup(0))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        return cls(end)

    def role(self) -> Role:
        """The first line. OSError when there is none."""
        self._end.settimeout(_HELLO)
        raw = b""
        while not raw.endswith(b"\n"):
            more = self._end.recv(1)  # no byte of what comes after it
            if not more or len(raw) > MAX_LINE:
                raise OSError("the supervisor said nothing")
            raw += more
        given: dict[str, Any] = json.loads(raw)
        directory, key = pathlib.Path(given.pop("directory")), base64.b64decode(given.pop("key"))
        return Role(directory=directory, key=key, **given)

    def state(self, *, serving: bool, patience: float, timeout: float) -> None:
        """Tell whether this one takes connections, and how many seconds it may need to stop.

        From then on it is to answer a `PING` within `timeout` seconds (0: it need not).
        """
        self._tell(serving=serving, patience=patience, timeout=timeout)

    def complete(self) -> None:
        """Tell that the first content is there."""
        self._tell(complete=True)

    def lives(self) -> None:
        """Answer a `PING`."""
        self._tell(lives=True)

    def refused(self, problems: Sequence[str], *, bind: bool) -> None:
        """Tell why this one cannot start: mistakes in the config, or (`bind`) an address that cannot be had."""
        self._tell(refused=list(problems), bind=bind)

    def _tell(self, **fields: object) -> None:
        raw = message(**fields)
        self._end.settimeout(_HELLO)
        try:
            self._end.sendall(
                raw if len(raw) <= MAX_LINE else message(refused=["too many mistakes to tell"], bind=False)
            )
        except OSError:
            return  # it is gone, which `orders` hears too
        finally:
            self._end.settimeout(0)

    async def orders(self, obey: Callable[[str], None]) -> None:
        """Hand on what comes, until the supervisor is gone: then that is the last order (`HURRY`)."""
        loop = asyncio.get_running_loop()
        self._end.settimeout(0)
        rest = b""
        while True:
            try:
                more = await loop.sock_recv(self._end, 4096)
            except OSError:
                more = b""
            if not more:
                obey(STOP)
                obey(HURRY)
                return
            *lines, rest = (rest + more).split(b"\n")
            for line in lines:
                obey(str(json.loads(line)["order"]))
