"""A child process: its pipes, its end, and its birth among gRPC's threads under uvloop."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from arion_tds import child

ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line.upper())\n    sys.stdout.flush()\n"
BORN = """
import asyncio, sys, uvloop, grpc.aio
from arion_tds import child

async def poke(channel):
    while True:
        try:
            async with asyncio.timeout(0.02):
                await channel.channel_ready()
        except TimeoutError:
            pass

async def born():
    one = await child.start((sys.executable, "-S", "-c", "print(1)"), {})
    said = await one.stdout.read()
    return (said, await one.wait()) == (b"1\\n", 0)

async def main():
    channel = grpc.aio.insecure_channel("127.0.0.1:1")
    busy = asyncio.create_task(poke(channel))
    for _ in range(10):
        assert all(await asyncio.gather(*(born() for _ in range(4))))
    busy.cancel()
    await channel.close()

uvloop.run(main())
"""


async def started(program: str, **more: object) -> child.Child:
    return await child.start((sys.executable, "-c", program), {"GREETING": "hi"}, **more)  # type: ignore[arg-type]


async def test_what_is_written_is_read_and_the_end_of_input_ends_it() -> None:
    async with asyncio.timeout(20):
        one = await started(ECHO)
        one.stdin.write(b"hello\n")
        assert await one.stdout.readline() == b"HELLO\n"
        assert one.returncode is None
        one.stdin.close()
        assert await one.wait() == 0
        assert one.returncode == 0
        one.close()


async def test_it_has_the_environment_that_it_was_given_and_no_other() -> None:
    async with asyncio.timeout(20):
        one = await started("import os; print(os.environ['GREETING'], 'PATH' in os.environ)", errors=True)
        assert await one.stdout.read() == b"hi False\n"
        assert await one.stderr.read() == b""
        assert await one.wait() == 0
        one.close()


async def test_it_leads_a_session_and_a_signal_is_its_status() -> None:
    async with asyncio.timeout(20):
        one = await started(ECHO)
        assert os.getsid(one.pid) == one.pid
        one.kill()
        assert await one.wait() == -signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            one.terminate()
        one.close()


async def test_a_command_that_is_not_there_is_an_oserror() -> None:
    with pytest.raises(FileNotFoundError):
        await child.start(("/nowhere/program",), {})


def test_forty_births_among_grpcs_threads_all_reach_exec() -> None:
    pytest.importorskip("uvloop")
    done = subprocess.run([sys.executable, "-c", BORN], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
