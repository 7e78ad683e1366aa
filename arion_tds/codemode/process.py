"""How much memory a process holds, and the ties that bind it to this one. Linux; elsewhere the answers are "unknown".

In: process ids. Out: bytes, or None. Called by deno.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
from typing import Final

LINUX: Final = sys.platform == "linux"
_F_SETSIG: Final = 10
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def held(pid: int) -> int | None:
    """Bytes of the process's own (resident, not shared with files). None where that cannot be known, or it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            _, resident, shared, *_ = file.read().split()
    except (OSError, ValueError):
        return None
    return (int(resident) - int(shared)) * _PAGE


def restrain(pid: int, *, cpu_seconds: int, open_files: int) -> None:
    """Limits that the kernel keeps, as a second line behind our own. A process that has just ended is passed over."""
    if not LINUX:
        return
    import resource

    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_CPU, cpu_seconds),
    ):
        with contextlib.suppress(OSError):
            resource.prlimit(pid, kind, (limit, limit))
    # When the machine runs out of memory, the kernel should look here first.
    with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "wb") as file:
        file.write(b"1000")


def tie(pid: int, reading: int) -> None:
    """Have the kernel kill the process when the other end of this pipe closes: when we end, however we end.

    `reading` is the pipe's reading end, which the process has inherited. The order to signal belongs to that shared
    open file, so it outlives our copy of the descriptor; nothing has to run in the process for it to be obeyed.
    """
    if not LINUX:
        return
    fcntl.fcntl(reading, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reading, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)
