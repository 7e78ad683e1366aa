"""Expansion in real worker processes: reuse, limits, death, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from arion_tds.expansion import Expander, _load
from arion_tds.model.source import OpenApiSource
from arion_tds.openapi import expand as pure
from arion_tds.openapi.limits import Limits

PETS = b"""
openapi: 3.1.0
info: {title: pets, version: "1"}
paths:
  /pets/{id}:
    get:
      operationId: getPet
      parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
      responses: {"200": {description: ok, content: {application/json: {schema: {type: object}}}}}
"""


def source(document: bytes = PETS, **settings: object) -> OpenApiSource:
    return OpenApiSource(namespace="pets", document=document, cluster="c", **settings)  # type: ignore[arg-type]


def many(operations: int, parameters: int = 1) -> bytes:
    """A document of that many operations."""
    inputs = ", ".join(f"{{name: p{n}, in: query, schema: {{type: string}}}}" for n in range(parameters))
    lines = [f"  /x{n}: {{get: {{operationId: op{n}, parameters: [{inputs}]}}}}" for n in range(operations)]
    return "\n".join(["openapi: 3.1.0", "info: {title: t, version: '1'}", "paths:", *lines]).encode()


@pytest.fixture
async def expander() -> AsyncIterator[Expander]:
    made = Expander(Limits())
    yield made
    await made.close()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_worker_answers_what_the_pure_function_answers_and_is_reused(expander: Expander) -> None:
    async with asyncio.timeout(30):
        for given in (source(), source(b"nonsense"), source(many(250)), source()):
            assert await expander.expand(given) == pure.expand(given, Limits())
    assert expander.status() == {"started": 1, "ended": 0, "waiting": 0, "busy": 0, "idle": 1}


async def test_documents_wait_for_their_turn(expander: Expander) -> None:
    async with asyncio.timeout(30):
        found = await asyncio.gather(*[expander.expand(source()) for _ in range(20)])
    assert all(len(expansion.tools) == 1 for expansion in found)
    assert expander.status()["started"] == 1


async def test_a_document_that_takes_too_long_is_rejected_and_its_worker_replaced() -> None:
    expander = Expander(Limits(max_wall_seconds=0.01))
    try:
        async with asyncio.timeout(30):
            expansion = await expander.expand(source(many(3000, 20)))
        assert "max_wall_seconds" in expansion.problems[0].why
        assert expander.status() == {"started": 1, "ended": 1, "waiting": 0, "busy": 0, "idle": 0}
    finally:
        await expander.close()


async def test_a_document_that_costs_too_much_cpu_is_rejected_by_the_limits_name() -> None:
    expander = Expander(Limits(max_cpu_seconds=-1))
    try:
        async with asyncio.timeout(30):
            expansion = await expander.expand(source(many(3000, 40)))
        assert "max_cpu_seconds" in expansion.problems[0].why
    finally:
        await expander.close()


async def test_a_document_that_needs_too_much_memory_is_rejected_by_the_limits_name() -> None:
    expander = Expander(Limits(max_memory_bytes=16 << 20))
    try:
        async with asyncio.timeout(30):
            expansion = await expander.expand(source(many(3000, 20)))
        assert "max_memory_bytes" in expansion.problems[0].why
    finally:
        await expander.close()


async def test_a_worker_that_died_while_idle_is_replaced_without_a_word(expander: Expander) -> None:
    async with asyncio.timeout(30):
        await expander.expand(source())
        os.kill(expander._idle[0].process.pid, signal.SIGKILL)
        assert len((await expander.expand(source())).tools) == 1
    assert expander.status()["started"] == 2


async def test_closing_ends_every_worker_the_busy_ones_too() -> None:
    expander = Expander(Limits(), max_workers=2)
    async with asyncio.timeout(30):
        await expander.expand(source())
        idle = expander._idle[0].process.pid
        busy = asyncio.create_task(expander.expand(source(many(4000, 20))))
        other = asyncio.create_task(expander.expand(source(many(4000, 20))))
        while expander.status()["busy"] < 2:  # noqa: ASYNC110 - bounded by the timeout around it
            await asyncio.sleep(0)
        pids = [worker.process.pid for worker in expander._busy]
        await expander.close()
        assert (await busy).problems
        assert (await other).problems
        assert (await expander.expand(source())).problems
    assert not any(map(alive, [idle, *pids]))


async def test_a_cancelled_expansion_leaves_no_worker_behind(expander: Expander) -> None:
    async with asyncio.timeout(30):
        task = asyncio.create_task(expander.expand(source(many(4000, 20))))
        while not expander._busy:  # noqa: ASYNC110 - bounded by the timeout around it
            await asyncio.sleep(0)
        pid = next(iter(expander._busy)).process.pid
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not alive(pid)


def test_an_answer_can_hold_nothing_but_our_own_nouns() -> None:
    import pickle

    for evil in (os.system, eval, asyncio.sleep):
        with pytest.raises(pickle.UnpicklingError):
            _load(pickle.dumps(evil))


async def test_a_worker_of_a_large_gateway_is_reused_too(expander: Expander) -> None:
    ballast = bytearray(b"x") * (300 << 20)  # what a child's ru_maxrss begins with
    async with asyncio.timeout(30):
        for _ in range(3):
            assert (await expander.expand(source())).tools
    assert expander.status()["started"] == 1
    assert len(ballast)


def test_the_gateways_process_does_without_what_expands() -> None:
    code = f"""if True:
        import asyncio, sys
        from arion_tds import app
        from arion_tds.expansion import Expander
        from arion_tds.model.source import OpenApiSource
        from arion_tds.openapi.limits import Limits

        async def main():
            expander = Expander(Limits())
            made = await expander.expand(OpenApiSource(namespace="pets", document={PETS!r}, cluster="c"))
            await expander.close()
            return [tool.name for tool in made.tools]

        made = asyncio.run(main())
        print(made, [name for name in ("expand", "convert") if "arion_tds.openapi." + name in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['getPet'] []\n"
