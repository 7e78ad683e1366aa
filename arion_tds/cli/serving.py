"""A gateway in this process, alone or as one of several workers, until it is told to stop. Called by cli.serve."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import AsyncIterator
from typing import Final

from arion_tds import app, heap, log
from arion_tds.config import judging
from arion_tds.errors import BindError, ConfigError
from arion_tds.workers import role
from arion_tds.workers.role import Line, Role

if sys.platform != "win32":
    import resource

    import uvloop

_FILES: Final = 1 << 20
"""Open files that are enough."""


def alone(path: str) -> int:
    """Serve until told to stop by a signal. ConfigError or BindError when it cannot start."""
    _run(path, None, None)
    return 0


def worker(path: str) -> int:
    """Serve as a worker, until told to stop by the supervisor or by a signal; why it cannot start is told there."""
    line = Line.taken()
    place = line.role()
    try:
        _run(path, line, place)
    except ConfigError as error:
        line.refused(error.problems, bind=False)
        return 1
    except BindError as error:
        line.refused([str(error)], bind=True)
        return 1
    return 0


def _run(path: str, line: Line | None, place: Role | None) -> None:
    loaded = judging.load(path)
    log.setup(loaded.file.log.level, loaded.file.log.format, None if place is None else place.number)
    _more_files()
    heap.share()
    # A catalog is hundreds of thousands of objects that live long: looking for cycles among them is what stalls a loop.
    gc.set_threshold(100_000, 50, 100)
    factory = uvloop.new_event_loop if sys.platform != "win32" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        if line is None or place is None:
            runner.run(_serve(loaded, path))
        else:
            runner.run(_work(loaded, path, line, place))


def _more_files() -> None:
    """Connections are files: have as many as the system allows, not as many as it gives to whoever does not ask."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(loaded: judging.Config, path: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with app.running(loaded, path) as gateway:
        if sys.platform != "win32":
            loop.add_signal_handler(signal.SIGHUP, gateway.reloader.ask)
        gc.freeze()
        heap.leave_code()
        await stop.wait()
        stop.clear()  # a second signal cuts the delay short
        await gateway.drain(stop)


async def _work(loaded: judging.Config, path: str, line: Line, place: Role) -> None:
    """As one of several. A signal of its own stops this one alone; a second one is the supervisor's to give."""
    stop, hurry, reload, complete = (asyncio.Event() for _ in range(4))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, lambda: None)  # a terminal's, which the supervisor hears too
    loop.add_signal_handler(signal.SIGHUP, reload.set)
    orders = {
        role.STOP: stop.set,
        role.HURRY: hurry.set,
        role.RELOAD: reload.set,
        role.ALL: complete.set,
        role.PING: line.lives,  # from the loop that serves: where it is stuck, nobody answers
    }
    timeout = loaded.file.worker_timeout
    async with _task(line.orders(lambda what: orders[what]())), app.running(loaded, path, place) as gateway:
        gateway.reloader.follow(reload)
        if gateway.siblings is not None:
            gateway.siblings.complete = complete
        opening = asyncio.create_task(gateway.open())
        ending = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({opening, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                return  # told to stop before it has served anybody
            opening.result()
            line.state(serving=True, patience=gateway.patience, timeout=timeout)
            gc.freeze()
            heap.leave_code()
            async with _task(_complete(gateway, line)):
                await ending
        finally:
            opening.cancel()
            ending.cancel()
        line.state(serving=False, patience=gateway.patience, timeout=timeout)
        await gateway.drain(hurry)


async def _complete(gateway: app.Gateway, line: Line) -> None:
    """Tell when it has content. It may serve before that, where the control plane takes long."""
    await gateway.fetched()
    line.complete()


@contextlib.asynccontextmanager
async def _task(work: asyncio._CoroutineLike[None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
