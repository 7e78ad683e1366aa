"""Ports of this machine that are free at the moment, for tests and trials.

Not those that the system gives to whoever asks for any (32768 and up on Linux): the next outgoing connection of anybody
could take one of them before it is listened on.
"""

from __future__ import annotations

import contextlib
import random
import socket
from typing import Final

_FIRST: Final = 10_240
_LAST: Final = 32_767
_TRIES: Final = 1_000


def free_ports(count: int) -> list[int]:
    """Different TCP ports of 127.0.0.1 that nobody listens on at this moment. OSError when there are none."""
    chosen = random.SystemRandom()
    found: list[int] = []
    with contextlib.ExitStack() as stack:
        for _ in range(_TRIES):
            if len(found) == count:
                return found
            port = chosen.randint(_FIRST, _LAST)
            probe = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                found.append(port)
    raise OSError(f"no {count} free ports between {_FIRST} and {_LAST} of 127.0.0.1")


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]
