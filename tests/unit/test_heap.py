"""What is free goes back once, after the last of several large deliveries; threads take memory from one heap."""

from __future__ import annotations

import asyncio
import platform
import subprocess
import sys

import pytest

from arion_tds.heap import LARGE, Heap


async def test_several_deliveries_are_followed_by_one_trim() -> None:
    trims = 0
    trimmed = asyncio.Event()

    def trim() -> None:
        nonlocal trims
        trims += 1
        trimmed.set()

    heap = Heap(trim, quiet=0)
    heap.delivered(LARGE - 1)
    for size in (1, LARGE, 5):
        heap.delivered(size)
    async with asyncio.timeout(10):
        await trimmed.wait()
    assert trims == 1


async def test_small_deliveries_count_from_the_last_trim() -> None:
    trimmed = asyncio.Event()
    heap = Heap(trimmed.set, quiet=0)
    heap.delivered(LARGE)
    async with asyncio.timeout(10):
        await trimmed.wait()
    trimmed.clear()
    heap.delivered(LARGE - 1)
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(0, passed.set)  # what is due now comes before it
    async with asyncio.timeout(10):
        await passed.wait()
    assert not trimmed.is_set()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has a heap for each thread")
@pytest.mark.parametrize(("before", "heaps"), [("", True), ("heap.share()", False)])
def test_a_thread_has_no_heap_of_its_own(before: str, heaps: bool) -> None:
    code = f"""if True:
        import ctypes, sys, threading
        from arion_tds import heap
        {before}
        memory = ctypes.CDLL(None)
        thread = threading.Thread(target=lambda: memory.malloc(100_000))
        thread.start()
        thread.join()
        memory.malloc_stats()
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ("Arena 1:" in done.stderr) is heaps


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux maps files so")
def test_code_that_has_run_is_let_go_of_and_runs_on() -> None:
    code = """if True:
        import pathlib, ssl
        import grpc, pydantic
        from arion_tds import heap
        def mb():
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
        before = mb()
        heap.leave_code()
        after = mb()
        ssl.create_default_context()
        pydantic.create_model("Thing", number=(int, ...))(number="7")
        grpc.insecure_channel("127.0.0.1:1").close()
        heap.leave_code()
        print(round(before - after))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 4, "several megabytes of libraries have run once"
