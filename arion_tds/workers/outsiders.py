"""Whether somebody who is no worker of ours listens on an address: SO_REUSEPORT would let us share it unawares.

In: an address, and what Linux tells of sockets and processes (/proc). Out: yes or no. Called by listening for every
address that a worker takes. The supervisor's try at the start (`supervisor.probe`) cannot be repeated later: to a try
the other workers, who may have taken the address a moment before, look like anybody else.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import Final

_PROC: Final = pathlib.Path("/proc")
_TABLES: Final = {socket.AF_INET: "tcp", socket.AF_INET6: "tcp6"}
_LISTENS: Final = "0A"


LOOKS: Final = 10
PAUSE: Final = 0.1
"""Seconds between two looks. Another worker may be ending: its socket is still there, and nobody's any more."""


def listen(host: str, port: int, pause: Callable[[float], None] = time.sleep) -> bool:
    """Whether any does. Where /proc does not say it, as on other systems than Linux: no. To be called in a thread."""
    strange = _strange(host, port)
    for _ in range(LOOKS - 1):
        if not strange:
            return False
        pause(PAUSE)
        strange &= _strange(host, port)
    return bool(strange)


def _strange(host: str, port: int) -> set[str]:
    """The inodes of sockets that listen there and are none of ours."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: set[str] = set()
    for family, _, _, _, where in found:
        if family in _TABLES:
            wanted = socket.inet_pton(family, str(where[0]).partition("%")[0])
            with contextlib.suppress(OSError):
                sockets.update(_listening(family, wanted, port))
    with contextlib.suppress(PermissionError):  # a worker's are hidden from the others, say by file capabilities
        return sockets and sockets.difference(_ours())
    return set()


def _listening(family: socket.AddressFamily, wanted: bytes, port: int) -> Iterator[str]:
    """The inodes of sockets that listen where those of that address would."""
    everywhere = bytes(len(wanted))
    for line in (_PROC / "net" / _TABLES[family]).read_text("ascii").splitlines()[1:]:
        fields = line.split()
        address, _, number = fields[1].partition(":")
        if fields[3] != _LISTENS or int(number, 16) != port:
            continue
        # Words of four bytes, each as this machine writes a number.
        local = b"".join(struct.pack("=I", int(address[at : at + 8], 16)) for at in range(0, len(address), 8))
        if everywhere in {local, wanted} or local == wanted:
            yield fields[9]


def _ours() -> Iterator[str]:
    """The inodes of the sockets of this process, and of all others that its parent has started."""
    parent = os.getppid()
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # ended, or closed, since
            # The name in the middle may hold anything.
            stat = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            if int(stat[1]) != parent:
                continue
            for one in (folder / "fd").iterdir():
                with contextlib.suppress(FileNotFoundError):
                    yield os.readlink(one).removeprefix("socket:[").removesuffix("]")
