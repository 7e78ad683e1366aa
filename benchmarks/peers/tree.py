"""A gateway with all its processes: in a session of its own on a core of its own; its CPU and memory from /proc.

Where there are two cores or more, the gateway has one to itself; the load client and the services have the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import signal
from collections.abc import AsyncIterator, Iterator, Sequence

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
ROOT = pathlib.Path(__file__).resolve().parents[2]
CORES = sorted(os.sched_getaffinity(0))
PINNED = len(CORES) > 1
GATEWAY = set(CORES[:1])
OTHERS = set(CORES[1:]) or GATEWAY


class Tree:
    """Every process of the session that the first one leads."""

    def __init__(self, child: asyncio.subprocess.Process, log: pathlib.Path) -> None:
        self.child = child
        self.log = log

    def _members(self) -> Iterator[list[str]]:
        """The fields of /proc/PID/stat from the state on."""
        for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = entry.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.child.pid:
                    yield fields

    @property
    def cpu(self) -> float:
        """User + system seconds of all of them, with those of children that have ended. In steps of 10 ms."""
        return sum(sum(map(int, fields[11:15])) for fields in self._members()) / TICK

    @property
    def rss_mb(self) -> float:
        """Resident memory in MB; what they share is counted once for each."""
        return sum(int(fields[21]) for fields in self._members()) * PAGE / 1e6

    @property
    def ended(self) -> bool:
        return self.child.returncode is not None

    def last_words(self) -> str:
        """The last line of its log."""
        with contextlib.suppress(OSError, IndexError):
            return self.log.read_text(errors="replace").strip().splitlines()[-1][:200]
        return "it said nothing"


@contextlib.asynccontextmanager
async def running(
    command: Sequence[str | pathlib.Path], log: pathlib.Path, *, cores: set[int] = GATEWAY, **more: str
) -> AsyncIterator[Tree]:
    """A command, until the block ends. `more` are variables of its environment."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)  # a child inherits it
    try:
        with log.open("ab") as sink:
            child = await asyncio.create_subprocess_exec(
                *command, cwd=ROOT, env={**os.environ, **more}, stdout=sink, stderr=sink, start_new_session=True
            )
    finally:
        os.sched_setaffinity(0, mine)
    try:
        yield Tree(child, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(child.wait(), 10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()
