"""A child process with pipes, started without running Python between fork and exec. For any event loop.

In: a command and its environment. Out: a `Child` that looks like asyncio's own Process. Called by expansion and the
stdio transport.

uvloop's own subprocesses run Python's and gRPC's fork handlers in the forked child; with gRPC's threads about it, a
child now and then dies there of SIGSEGV before it reaches exec. The standard library's Popen starts with vfork.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import IO


class Child:
    """One process, leader of a session of its own. Made by `start`; its streams are ours to read, write and close."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        """Watches for the end of the process from now on."""
        self._popen = popen
        self.pid = popen.pid
        self._exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.stdin: asyncio.StreamWriter
        self.stdout: asyncio.StreamReader
        self.stderr = asyncio.StreamReader()
        """At its end from the start, unless `errors` was asked for."""
        self.stderr.feed_eof()
        self._transports: list[asyncio.BaseTransport] = []
        self._watch()

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._exited.result() if self._exited.done() else None

    async def wait(self) -> int:
        """The exit status, once it has ended."""
        return await asyncio.shield(self._exited)

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the process. ProcessLookupError when it has ended."""
        if self._exited.done():
            raise ProcessLookupError(self.pid)
        os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Close our ends of its pipes."""
        for transport in self._transports:
            transport.close()

    async def connect(self, limit: int) -> None:
        """Make streams of the pipes. `limit`: bytes of a line that may be read."""
        loop = asyncio.get_running_loop()
        pipes = self._popen.stdin, self._popen.stdout
        if pipes[0] is None or pipes[1] is None:  # never: both are pipes
            raise OSError("the process has no pipes")
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipes[0])
        self._transports.append(transport)
        self.stdin = asyncio.StreamWriter(transport, protocol, None, loop)
        self.stdout = await self._reader(pipes[1], limit)
        if self._popen.stderr is not None:
            self.stderr = await self._reader(self._popen.stderr, limit)

    async def _reader(self, pipe: IO[bytes], limit: int) -> asyncio.StreamReader:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=limit)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        self._transports.append(transport)
        return reader

    def _watch(self) -> None:
        """Hear of the end: by a descriptor of the process where there are such, else from a thread that waits."""
        loop = asyncio.get_running_loop()
        try:
            handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait, args=(loop,), daemon=True).start()
            return

        def ended() -> None:
            loop.remove_reader(handle)
            os.close(handle)
            self._end(self._popen.wait())

        loop.add_reader(handle, ended)

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        status = self._popen.wait()
        with contextlib.suppress(RuntimeError):  # the loop has closed
            loop.call_soon_threadsafe(self._end, status)

    def _end(self, status: int) -> None:
        if not self._exited.done():
            self._exited.set_result(status)


async def start(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: str | None = None,
    errors: bool = False,
    limit: int = 1 << 16,
) -> Child:
    """Start the command. `errors`: its standard error is a stream too, else it is ours. OSError when it cannot be."""
    # Half a millisecond on the loop; on a thread, a cancelled start would leave a child that nobody knows.
    popen = subprocess.Popen(  # noqa: S603, ASYNC220 - our own command; see the line above
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if errors else None,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,  # an interrupt at the terminal is the gateway's to handle
    )
    child = Child(popen)
    try:
        await child.connect(limit)
    except BaseException:
        popen.kill()
        child.close()
        raise
    return child
