"""Child processes that end with us: started, watched, limited and killed. Nothing here knows what they run.

In: a command. Out: a `Process` with two streams and an exit status; how much memory a process holds. Called by deno.

Not asyncio's own subprocesses: uvloop forks, and a fork of a process with gRPC's threads runs their fork handlers and
Python's in the child, which then crashes now and then before it gets to exec. The standard library's Popen uses vfork.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

LINUX: Final = sys.platform == "linux"
_F_SETSIG: Final = 10
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if LINUX else 4096
_SHORT: Final = 1 << 14
_CLEAR_SECONDS: Final = 5.0


class Process:
    """One child, which leads a process group of its own. Made by `start`; the streams are its stdin and stdout."""

    def __init__(self, child: subprocess.Popen[bytes], lifeline: int) -> None:
        """`lifeline`: our end of the pipe whose closing kills the child."""
        self._child = child
        self._lifeline = lifeline
        self._exited = asyncio.get_running_loop().create_future()
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.errors: asyncio.StreamReader
        self._closing: list[asyncio.StreamWriter] = []

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str], limit: int) -> Process:
        """Start the command. `limit`: bytes of a line that may be read. OSError when it cannot be started."""
        ours, theirs = socket.socketpair()
        err_ours, err_theirs = socket.socketpair()
        reading, writing = os.pipe()
        made: Process | None = None
        try:
            # Half a millisecond on the loop; on a thread, a cancelled start would leave a child that nobody knows.
            child = _popen(command, environment, (theirs, err_theirs, reading))
            made = cls(child, writing)
            with contextlib.suppress(ProcessLookupError):  # it may have ended already: then its exit status says so
                _tie(child.pid, reading)
            made._watch()
            await made._connect(ours, err_ours, limit)
        except BaseException:
            ours.close()
            err_ours.close()
            if made is None:
                os.close(writing)
            else:
                await made.clear(_CLEAR_SECONDS)
            raise
        finally:
            theirs.close()
            err_theirs.close()
            os.close(reading)
        return made

    async def _connect(self, ours: socket.socket, err_ours: socket.socket, limit: int) -> None:
        self.reader, self.writer = await asyncio.open_unix_connection(sock=ours, limit=limit)
        self._closing.append(self.writer)
        self.errors, errors = await asyncio.open_unix_connection(sock=err_ours, limit=_SHORT)
        self._closing.append(errors)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended (as far as we have heard)."""
        return not self._exited.done()

    async def wait(self) -> int:
        """Its exit status, negative for a signal."""
        return int(await asyncio.shield(self._exited))

    def kill(self) -> None:
        """Kill the group at once. The lifeline goes too, should the signal have missed."""
        if self.running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    async def clear(self, seconds: float) -> None:
        """Kill it and return once it is buried and the streams are closed, or so many seconds have passed."""
        self.kill()
        for writer in self._closing:
            writer.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.wait()
                for writer in self._closing:
                    with contextlib.suppress(OSError):  # it is closed either way
                        await writer.wait_closed()

    def _watch(self) -> None:
        """Hear of the end. By a descriptor of the process where there are such, else from a thread that waits."""
        loop = asyncio.get_running_loop()
        try:
            handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            threading.Thread(target=_wait, args=(self._child, loop, self._ended), daemon=True).start()
            return

        def ended() -> None:
            loop.remove_reader(handle)
            os.close(handle)
            self._ended(self._child.wait())

        loop.add_reader(handle, ended)

    def _ended(self, status: int) -> None:
        if not self._exited.done():
            self._exited.set_result(status)


def _wait(child: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, ended: Callable[[int], None]) -> None:
    status = child.wait()
    with contextlib.suppress(RuntimeError):  # the loop has closed
        loop.call_soon_threadsafe(ended, status)


def _popen(
    command: Sequence[str],
    environment: Mapping[str, str],
    handed: tuple[socket.socket, socket.socket, int],
) -> subprocess.Popen[bytes]:
    theirs, err_theirs, reading = handed
    return subprocess.Popen(  # noqa: S603 - our own command
        list(command),
        stdin=theirs.fileno(),
        stdout=theirs.fileno(),
        stderr=err_theirs.fileno(),
        env=dict(environment),
        cwd="/",
        start_new_session=True,
        pass_fds=(reading,),
    )


def _tie(pid: int, reading: int) -> None:
    """Have the kernel kill the process when the other end of this pipe closes: when we end, however we end.

    `reading` is the pipe's reading end, which the process has inherited. The order to signal belongs to that shared
    open file, so it outlives our copy of the descriptor; nothing has to run in the process for it to be obeyed.
    """
    if not LINUX:
        return
    import fcntl

    fcntl.fcntl(reading, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reading, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)


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
