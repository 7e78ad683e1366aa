"""An execution against a sandbox that says what a test tells it to: nothing that comes out of one is believed."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterable
from typing import Any

import pytest

from arion_tds.codemode import limits, protocol, run
from arion_tds.codemode.engine import Ending, GoneError
from arion_tds.codemode.outcome import Code, Failure, Outcome, Success
from arion_tds.model.gateway import CodeMode

LIMITS = limits.of(CodeMode(execution_timeout=5, max_host_calls=5, max_output_bytes=100, memory_limit_bytes=100_000))
DONE = b'{"t":"done","value":1}'


class Scripted:
    """A Sandbox that plays lines; after them it waits until it is told an end, or plays an ending."""

    def __init__(self, lines: Iterable[bytes | GoneError]) -> None:
        self.lines = list(lines)
        self.sent: list[Any] = []
        self.answered = asyncio.Event()
        self.watched = False
        self.alive = True

    def watch(self) -> None:
        self.watched = True

    async def send(self, frame: bytes) -> None:
        self.sent.append(json.loads(frame))
        self.answered.set()

    async def receive(self) -> bytes:
        await asyncio.sleep(0)
        if not self.lines:
            await asyncio.Event().wait()
        line = self.lines.pop(0)
        if isinstance(line, GoneError):
            raise line
        return line

    async def clear(self) -> None:
        self.alive = False


def call(identity: int = 1, op: str = "tool", args: str = "{}") -> bytes:
    return f'{{"t":"call","id":{identity},"op":"{op}","args":{args}}}'.encode()


async def echo(identity: int, _op: str, args: bytes) -> bytes:
    return protocol.value(identity, args)


async def play(*lines: bytes | GoneError, answer: run.Answer = echo, settings: limits.Limits = LIMITS) -> Outcome:
    async with asyncio.timeout(5):
        return await run.Execution(Scripted(lines), answer, settings).run(run.prepare("1"), ["a"])


async def failed(*lines: bytes | GoneError, **more: Any) -> Failure:
    outcome = await play(*lines, **more)
    assert isinstance(outcome, Failure), outcome
    return outcome


async def test_a_program_is_sent_with_its_limits_once_its_memory_is_watched() -> None:
    sandbox = Scripted([DONE])
    outcome = await run.Execution(sandbox, echo, LIMITS).run(run.prepare("1"), ["a"])
    assert outcome == Success(value=b"1")
    (sent,) = sandbox.sent
    assert (sent["t"], sent["maxOutput"], sent["namespaces"], len(sent["modules"])) == ("run", 100, ["a"], 2)
    assert sandbox.watched


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"garbage",
        b"{}",
        b'{"t":"ready","version":1}',
        b'{"t":"ret","id":1}',
        b'{"t":"call","id":1,"op":"x","args":{}}',
    ],
)
async def test_what_is_no_frame_ends_the_execution(line: bytes) -> None:
    failure = await failed(line, DONE)
    assert failure.code is Code.ENGINE
    assert "protocol" in failure.message


async def test_a_value_over_the_limit_is_refused_whatever_the_sandbox_says() -> None:
    failure = await failed(b'{"t":"done","value":"' + b"x" * 200 + b'"}')
    assert failure.code is Code.OUTPUT
    failure = await failed(b'{"t":"log","text":"' + b"x" * 60 + b'"}', b'{"t":"done","value":"' + b"x" * 60 + b'"}')
    assert (failure.code, failure.console) == (Code.OUTPUT, ("x" * 60,))


async def test_console_lines_are_counted_in_bytes() -> None:
    assert (await failed(b'{"t":"log","text":"' + ("é" * 60).encode() + b'"}')).code is Code.OUTPUT


async def test_console_lines_are_counted_too() -> None:
    settings = dataclasses.replace(LIMITS, max_console_lines=3)
    failure = await failed(*[b'{"t":"log","text":""}'] * 4, DONE, settings=settings)
    assert (failure.code, "3 lines" in failure.message, len(failure.console)) == (Code.OUTPUT, True, 3)


async def test_calls_are_counted_whatever_their_ids() -> None:
    failure = await failed(*[call(1)] * 6, DONE)
    assert (failure.code, "max_host_calls" in failure.message) == (Code.HOST_CALLS, True)
    assert isinstance(await play(*[call(7)] * 5, DONE), Success)


async def test_calls_that_wait_are_measured() -> None:
    async def never(_identity: int, _op: str, _args: bytes) -> bytes:
        await asyncio.Event().wait()
        return b""

    large = call(1, args='{"x":"' + "x" * 60_000 + '"}')
    failure = await failed(large, large, DONE, answer=never)
    assert (failure.code, "memory_limit_bytes" in failure.message) == (Code.MEMORY, True)


async def test_a_fault_of_ours_in_a_call_is_told_to_the_program_and_not_to_the_caller() -> None:
    async def broken(_identity: int, _op: str, _args: bytes) -> bytes:
        raise RuntimeError("secret")

    sandbox = Scripted([call(1)])
    task = asyncio.create_task(run.Execution(sandbox, broken, LIMITS).run(run.prepare("1"), []))
    async with asyncio.timeout(5):
        while len(sandbox.sent) < 2:
            sandbox.answered.clear()
            await sandbox.answered.wait()
        sandbox.lines.append(DONE)
    task.cancel()
    assert sandbox.sent[1]["error"]["code"] == "internal_error"
    assert "secret" not in json.dumps(sandbox.sent)


@pytest.mark.parametrize(
    ("gone", "code", "words"),
    [
        (GoneError(Ending.MEMORY, "filled the heap"), Code.MEMORY, "memory_limit_bytes"),
        (GoneError(Ending.OVERLONG, "sent a line"), Code.OUTPUT, "max_output_bytes"),
        (GoneError(Ending.EXITED, "ended itself with status 3"), Code.ENGINE, "ended itself with status 3"),
    ],
)
async def test_an_early_end_is_an_error_with_its_reason(gone: GoneError, code: Code, words: str) -> None:
    failure = await failed(b'{"t":"log","text":"so far"}', gone)
    assert (failure.code, words in failure.message, failure.console) == (code, True, ("so far",))


async def test_places_that_make_no_sense_are_left_out() -> None:
    line = b'{"t":"error","kind":"runtime","name":"E","message":"m","module":9,"line":1,"column":1}'
    failure = await failed(line)
    assert (failure.line, failure.column, failure.message) == (None, None, "m")


async def test_time_is_kept_by_the_host() -> None:
    short = limits.of(CodeMode(execution_timeout=0.01))
    failure = await failed(settings=short)
    assert (failure.code, "execution_timeout" in failure.message) == (Code.TIMEOUT, True)
