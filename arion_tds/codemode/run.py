"""One execution: a program goes into a sandbox, its host calls are answered, and what comes out is an `Outcome`.

In: code, a fresh sandbox, a host. Out: the value or the error, with the console. Called by executing, inside a turn of
the pool. Every frame is untrusted: it is counted, measured and judged here; the caller clears the sandbox away in any
case.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from arion_tds.codemode import protocol, wrap
from arion_tds.codemode.engine import Ending, GoneError, Sandbox
from arion_tds.codemode.limits import Limits, size
from arion_tds.codemode.outcome import Code, Failure, Outcome, Success
from arion_tds.codemode.protocol import Call, Done, Frame, Log, Op, Oversize, Thrown
from arion_tds.codemode.wrap import Program
from arion_tds.pace import Pace

Answer = Callable[[int, Op, bytes], Awaitable[bytes]]
"""A host call's id, op and arguments to the line that answers it (bridge.Bridge.answer)."""

_CALL_OVERHEAD: Final = 4096  # what a waiting call costs us beside its arguments
_NOTHING: Final = "the program gave no value: end it with `return value`, or with an expression"
_IMPORT: Final = "there are no modules here: everything is in `tools` and `catalog`"
_log = logging.getLogger("arion_tds.codemode")


class Execution:
    """Runs one program in one sandbox. Used once, by one task."""

    def __init__(self, sandbox: Sandbox, answer: Answer, limits: Limits) -> None:
        """`answer` serves the host calls."""
        self._sandbox = sandbox
        self._answer = answer
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.max_concurrent_tool_calls)
        self._console: list[str] = []
        self._output = 0
        self._calls = 0
        self._pending = 0  # bytes of calls that are not answered yet
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, program: Program, namespaces: list[str]) -> Outcome:
        """The outcome, within the time limit. Calls that still run then are cancelled."""
        limits = self._limits
        self._sandbox.watch()
        frame = protocol.run(
            [candidate.url for candidate in program.candidates],
            max_output=limits.max_output_bytes,
            max_argument=limits.max_argument_bytes,
            namespaces=namespaces,
        )
        try:
            async with asyncio.timeout(limits.execution_timeout):
                await self._sandbox.send(frame)
                outcome = await self._frames(program)
        except TimeoutError:
            why = f"the program and its tool calls took longer than {limits.execution_timeout:g} s (execution_timeout)"
            outcome = Failure(code=Code.TIMEOUT, message=why, retryable=False)
        except GoneError as gone:
            outcome = self._ended(gone)
        finally:
            await self._cancel()
        return dataclasses.replace(outcome, console=tuple(self._console))

    async def _frames(self, program: Program) -> Outcome:
        """Read frames until one of them ends the program."""
        pace = Pace()  # frames that have arrived already are read without a turn of the event loop
        while True:
            await pace.breathe()
            found = protocol.read(await self._sandbox.receive())
            outcome = self._frame(found, program) if not isinstance(found, str) else _garbled(found)
            if outcome is not None:
                return outcome

    def _frame(self, frame: Frame, program: Program) -> Outcome | None:
        match frame:
            case Call():
                return self._call(frame)
            case Log():
                return self._say(frame.text)
            case Done():
                return self._done(frame)
            case Oversize():
                return self._too_large(frame.what, frame.bytes, frame.preview, frame.shape)
            case Thrown():
                return _thrown(frame, program)
            case _:
                return _garbled("ready, a second time")

    def _say(self, text: str) -> Outcome | None:
        self._output += len(text.encode()) + 1
        if self._output > self._limits.max_output_bytes:
            return self._too_large("console", self._output, text[:1000], "string")
        if len(self._console) >= self._limits.max_console_lines:
            why = f"the program wrote more than {self._limits.max_console_lines} lines to the console: print less"
            return Failure(code=Code.OUTPUT, message=why)
        self._console.append(text)
        return None

    def _done(self, done: Done) -> Outcome:
        value = bytes(done.value)
        total = self._output + len(value)
        if total > self._limits.max_output_bytes:
            return self._too_large("result", total, value[:1000].decode(errors="ignore"), "")
        hints: list[str] = [_NOTHING] if done.undefined else []
        if done.calls:
            hints.append(f"{done.calls} host calls were not awaited and have been cancelled")
        return Success(value=value, hint="; ".join(hints) or None)

    def _too_large(self, what: str, count: int, preview: str, shape: str) -> Failure:
        room = f"{size(self._limits.max_output_bytes)} (max_output_bytes: result and console together)"
        if what == "console":
            why = f"the console output is more than {room}: print less"
        else:
            why = f"the result and the console output are {size(count)}, more than {room}: return a part, or a count"
        return Failure(code=Code.OUTPUT, message=why, preview=preview or None, shape=shape or None)

    def _call(self, call: Call) -> Failure | None:
        self._calls += 1
        limit = self._limits.max_host_calls
        if self._calls > limit:
            why = f"the program made more than {limit} host calls (max_host_calls): do more with each of them"
            return Failure(code=Code.HOST_CALLS, message=why)
        cost = len(call.args) + _CALL_OVERHEAD
        self._pending += cost
        if self._pending > self._limits.memory_limit_bytes:
            limit_text = size(self._limits.memory_limit_bytes)
            why = f"the calls that wait for their turn hold more than {limit_text} (memory_limit_bytes)"
            return Failure(code=Code.MEMORY, message=why)
        task = asyncio.get_running_loop().create_task(self._serve(call, cost))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return None

    async def _serve(self, call: Call, cost: int) -> None:
        """Answer one call when it has a slot. The slot is kept until the answer is sent: answers are not piled up."""
        try:
            async with self._slots:
                try:
                    line = await self._answer(call.id, call.op, bytes(call.args))
                except Exception:  # noqa: BLE001 - top of the task: a fault of ours is logged, and the program hears of it
                    _log.exception("host call %s failed", call.op)
                    line = protocol.error(call.id, "internal_error", "the gateway failed to make this call")
                await self._sandbox.send(line)
        except GoneError:
            pass  # whoever reads the frames hears it too
        finally:
            self._pending -= cost

    async def _cancel(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, gone: GoneError) -> Failure:
        if gone.ending is Ending.MEMORY:
            limit = size(self._limits.memory_limit_bytes)
            why = f"the program used more than {limit} of memory (memory_limit_bytes): it {gone.detail}"
            return Failure(code=Code.MEMORY, message=why)
        if gone.ending is Ending.OVERLONG:
            return self._too_large("result", self._limits.max_frame_bytes, "", "")
        return Failure(code=Code.ENGINE, message=f"the sandbox {gone.detail} before the program was done")


def _garbled(why: str) -> Failure:
    return Failure(code=Code.ENGINE, message=f"the sandbox broke its protocol ({why[:200]})")


def _thrown(frame: Thrown, program: Program) -> Failure:
    code = {"syntax": Code.SYNTAX, "runtime": Code.RUNTIME, "result": Code.RESULT}[frame.kind]
    line, column = program.locate(frame.module, frame.line, frame.column)
    message = frame.message
    if code is Code.SYNTAX and "import" in message and "export" in message:
        message += f" ({_IMPORT})"
    return Failure(
        code=code,
        message=message or frame.name or "the program threw a value without a message",
        retryable=frame.retryable,
        line=line,
        column=column,
        name=frame.name or None,
        tool_code=frame.code,
        status=frame.status,
    )


def prepare(code: str) -> Program:
    """The program for this code (about 0.3 µs a character: large code belongs on a thread)."""
    return wrap.program(code)
