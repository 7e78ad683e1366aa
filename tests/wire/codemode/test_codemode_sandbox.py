"""Programs as models write them, in a real sandbox; and the life of the processes behind it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import sys
import textwrap

import pytest
from codemode_box import box

from arion_tds.codemode import deno, protocol
from arion_tds.codemode.outcome import Code, Success
from arion_tds.codemode.pool import BusyError

pytest.importorskip("deno", reason="the extra code-mode is not installed")


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("return 1", 1),
        ("1 + 1", 2),
        ("const a: number = 20\na + 1", 21),
        ("async () => { return 3 }", 3),
        ("async (): Promise<number> => 4", 4),
        ("async function main() { return 5 }", 5),
        ("function main() { return 6 }\nmain()", 6),
        ("(async () => { return 7 })()", 7),
        ("(async () => { return 8 })().then((n) => n)", 8),
        ("export default async function () { return 9 }", 9),
        ("```ts\nconst a = 10\nreturn a\n```", 10),
        ("```\nasync () => 11\n```", 11),
        ("enum E { A = 12 }\nE.A", 12),
        ("interface A { n: number }\nconst a = {n: 13} as A satisfies A\na.n", 13),
        ("class A { constructor(private n: number) {} get() { return this.n } }\nnew A(14).get()", 14),
        ("type F<T> = (a: T) => T\nconst f: F<number> = <T,>(a: T) => a\nf(15)", 15),
        ("{a: 1, b: [2]}", {"a": 1, "b": [2]}),
        ("new Map([['a', 1]])", {"a": 1}),
        ("new Set([1, 2])", [1, 2]),
        ("new Date(0)", "1970-01-01T00:00:00.000Z"),
        ("new Uint8Array([1, 2])", [1, 2]),
        ("new Error('x')", {"name": "Error", "message": "x"}),
        ("2n ** 64n", 2**64),
        ("null", None),
        ("let x = 0\nfor (const y of [1, 2]) x += y\nx", 3),
        ("if (true) { const z = 1 }\n[1].length", 1),
        ("await new Promise((done) => setTimeout(() => done(16), 5))", 16),
        (
            "new TextDecoder().decode(new TextEncoder().encode('é')) + btoa('a') + new URL('http://a/b').pathname",
            "éYQ==/b",
        ),
        ("structuredClone({a: crypto.randomUUID().length})", {"a": 36}),
    ],
)
async def test_what_models_send_has_its_value(code: str, value: object) -> None:
    async with box() as here:
        assert json.loads(await here.value(code)) == value


async def test_a_program_without_a_value_says_so() -> None:
    async with box() as here:
        outcome = await here.run("const a = 1")
        assert isinstance(outcome, Success)
        assert (outcome.value, "`return" in (outcome.hint or "")) == (b"null", True)


@pytest.mark.parametrize(
    ("code", "place", "message"),
    [
        ("throw new TypeError('no')", (1, 7), "no"),
        ("\n\n  throw new Error('no')", (3, 9), "no"),
        ("const f = () => {\n  null.x\n}\nf()", (2, 8), "Cannot read properties of null (reading 'x')"),
        ("interface A {\n  a: string\n}\nenum E { B }\nmissing", (5, 1), "missing is not defined"),
        ("const a = 1; missing", (1, 14), "missing is not defined"),
        ("```ts\nmissing\n```", (2, 1), "missing is not defined"),
        ("const a = ;", (1, 11), "Expression expected"),
        ("\nlet b = 1\nlet b = 2\n", (3, 5), "already been declared"),
        ("foo(", (1, 5), ""),
        ("await tools.a.b({\n  x: 1n,\n  y: () => {\n    throw 1 }})\nboom()", (5, 1), "boom is not defined"),
        ("import fs from 'fs'\nfs", (1, 1), "everything is in `tools`"),
    ],
)
async def test_an_error_has_the_models_own_line_and_column(code: str, place: tuple[int, int], message: str) -> None:
    async with box() as here:
        failure = await here.fails(code)
        assert ((failure.line, failure.column), message in failure.message) == (place, True), failure


async def test_a_failed_call_is_an_error_at_the_place_of_the_call() -> None:
    async def refuse(identity: int, _op: str, _args: bytes) -> bytes:
        return protocol.error(identity, "upstream_error", "it is down", retryable=True, status=503)

    async with box() as here:
        failure = await here.fails("const a = 1\n\nawait tools.a.b()", answer=refuse)
        assert (failure.code, failure.name, failure.tool_code) == (Code.RUNTIME, "ToolError", "upstream_error")
        assert (failure.message, failure.retryable, failure.status, failure.line) == ("it is down", True, 503, 3)
        code = "await tools.a.b().catch((e) => [e instanceof Error, e.code, e.message, e.retryable, e.status])"
        caught = await here.value(code, answer=refuse)
        assert json.loads(caught) == [True, "upstream_error", "it is down", True, 503]


async def test_large_integers_come_through_exactly() -> None:
    async def ids(identity: int, _op: str, args: bytes) -> bytes:
        if b"a.ask" in args:
            return protocol.value(identity, b'{"id": 9007199254740993, "near": [1, 2.5, -12345678901234567890]}')
        return protocol.value(identity, args)

    async with box() as here:
        code = "const {id, near} = await tools.a.ask(); ({id, near, back: (await tools.a.b({id})).args.id})"
        assert await here.value(code, answer=ids) == (
            b'{"id":9007199254740993,"near":[1,2.5,-12345678901234567890],"back":9007199254740993}'
        )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1}', {"a": 1}),
        ("plain", "plain"),
        ("42", 42),
        ("007", "007"),
        ("1e3", "1e3"),
        ("", ""),
        ("[1", "[1"),
        ("true", True),
    ],
)
async def test_a_text_answer_is_what_it_says_if_it_is_json(text: str, value: object) -> None:
    async def say(identity: int, _op: str, _args: bytes) -> bytes:
        return protocol.text(identity, text)

    async with box() as here:
        assert json.loads(await here.value("await tools.a.b()", answer=say)) == value


async def test_the_console_comes_with_the_value() -> None:
    async with box() as here:
        outcome = await here.run("console.log('a', 1, {b: [2]}); console.warn('c'); console.table([1]); 1")
        assert outcome == Success(value=b"1", console=("a 1 { b: [ 2 ] }", "[warn] c", "[ 1 ]"))


async def test_the_console_comes_with_an_error_and_with_the_end_of_the_time() -> None:
    async with box(execution_timeout=0.3) as here:
        assert (await here.fails("console.log('a'); throw 1")).console == ("a",)
        assert (await here.fails("console.log('a'); for (;;);")).console == ("a",)


async def test_a_value_that_is_too_large_is_described_and_not_cut() -> None:
    async with box() as here:
        failure = await here.fails("({rows: Array.from({length: 5000}, (_, id) => ({id, name: 'n' + id, tags: []}))})")
        assert failure.shape == "{rows: Array(5000) of {id: number, name: string(2), tags: []}}"
        assert (failure.preview or "").startswith('{"rows":[{"id":0')
        assert len(failure.preview or "") <= 1000
        assert "max_output_bytes" in failure.message


async def test_tools_can_be_looked_at() -> None:
    async with box() as here:
        code = "[Object.keys(tools), 'a' in tools, 'z' in tools, await tools, typeof tools.a.b, await tools.a.b === 1]"
        found = json.loads(await here.value(code, namespaces=("a", "b-c")))
        assert found[:3] == [["a", "b-c"], True, False]
        assert found[4] == "function"
        assert "catalog.tools.list" in (await here.fails("Object.keys(tools.a)", namespaces=("a",))).message


async def test_calls_run_at_once_and_no_more_than_may() -> None:
    running, most, all_in = 0, 0, asyncio.Event()

    async def busy(identity: int, _op: str, args: bytes) -> bytes:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 4:
            all_in.set()
        await all_in.wait()
        await asyncio.sleep(0)
        running -= 1
        return protocol.value(identity, args)

    async with box() as here:
        code = "(await Promise.all(Array.from({length: 20}, (_, n) => tools.a.b({n})))).map((one) => one.args.n)"
        assert json.loads(await here.value(code, answer=busy)) == list(range(20))
        assert most == 4


async def test_a_program_that_is_killed_from_outside_costs_one_error() -> None:
    called = asyncio.Event()

    async def forever(_identity: int, _op: str, _args: bytes) -> bytes:
        called.set()
        await asyncio.Event().wait()
        return b""

    async with box(execution_timeout=5) as here, asyncio.TaskGroup() as group:
        failing = group.create_task(here.fails("await tools.a.b()", answer=forever))
        await called.wait()
        assert here.busy is not None
        os.kill(here.busy.pid, signal.SIGKILL)
        assert "SIGKILL" in (await failing).message
        assert await here.value("1") == b"1"


async def test_an_execution_that_is_cancelled_leaves_no_process() -> None:
    called = asyncio.Event()

    async def forever(_identity: int, _op: str, _args: bytes) -> bytes:
        called.set()
        await asyncio.Event().wait()
        return b""

    async with box(execution_timeout=5) as here:
        task = asyncio.create_task(here.run("await tools.a.b()", answer=forever))
        await called.wait()
        busy = here.busy
        assert busy is not None
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await busy.clear()
        assert not running(busy.pid)
        assert await here.value("1") == b"1"


async def test_more_programs_than_may_run_wait_and_more_than_may_wait_are_refused() -> None:
    go, running = asyncio.Event(), asyncio.Event()

    async def gate(identity: int, _op: str, args: bytes) -> bytes:
        running.set()
        await go.wait()
        return protocol.value(identity, args)

    async with box(execution_timeout=5) as here, asyncio.TaskGroup() as group:
        tasks = [group.create_task(here.value("(await tools.a.b()).name", answer=gate)) for _ in range(3)]
        await running.wait()
        assert (here.pool.running, here.pool.waiting) == (1, here.limits.max_waiting)
        with pytest.raises(BusyError) as busy:
            await here.run("1")
        assert busy.value.waiting == 2
        go.set()
        assert [await task for task in tasks] == [b'"a.b"'] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_a_sandbox_gets_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARION_TEST_SECRET", "s")

    async def look(identity: int, _op: str, _args: bytes) -> bytes:
        assert here.busy is not None
        names = {one.partition("=")[0] for one in told(here.busy.pid).split("\0") if one}
        return protocol.value(identity, json.dumps(sorted(names)).encode())

    async with box() as here:
        assert set(json.loads(await here.value("await tools.a.b()", answer=look))) == set(deno._ENVIRONMENT)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_a_sandbox_can_write_no_file_not_even_deno_itself() -> None:
    async def look(identity: int, _op: str, _args: bytes) -> bytes:
        assert here.busy is not None
        (line,) = [one for one in limits_of(here.busy.pid).splitlines() if one.startswith("Max file size")]
        return protocol.value(identity, json.dumps(line.split()[3:5]).encode())

    async with box() as here:
        assert json.loads(await here.value("await tools.a.b()", answer=look)) == ["0", "0"]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
async def test_no_sandbox_outlives_a_gateway_that_was_killed() -> None:
    """The program never comes back to its event loop, so it cannot notice by itself."""
    program = textwrap.dedent("""
        import asyncio, os, signal
        from arion_tds.codemode import deno, limits, run, protocol
        from arion_tds.model.gateway import CodeMode

        async def main():
            settings = limits.of(CodeMode())
            engine = deno.DenoEngine(deno.find(), settings)
            busy, idle = await engine.sandbox(), await engine.sandbox()
            async def answer(identity, op, args):
                print(busy.pid, idle.pid, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)  # the call was sent before the loop began: give it that time
            endless = "void tools.a.b(); for (;;);"
            await run.Execution(busy, answer, settings).run(run.prepare(endless), [])
        asyncio.run(main())
    """)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    async with asyncio.timeout(15):
        busy, idle = (await process.stdout.readline()).decode().split()
        await process.wait()
        while running(int(busy)) or running(int(idle)):  # noqa: ASYNC110 - other processes set no events
            await asyncio.sleep(0.01)


def limits_of(pid: int) -> str:
    """The kernel's limits of the process."""
    return pathlib.Path(f"/proc/{pid}/limits").read_text()


def told(pid: int) -> str:
    """The environment that the process was started with."""
    return pathlib.Path(f"/proc/{pid}/environ").read_text()


def running(pid: int) -> bool:
    """Whether the process is there and not only waiting to be buried."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_every_module_of_node_leads_nowhere() -> None:
    """The list is Deno's own: a module that a later version adds must be added to imports.json."""
    process = await asyncio.create_subprocess_exec(
        *(deno.find(), "eval", 'import m from "node:module"; console.log(JSON.stringify(m.builtinModules))'),
        stdout=asyncio.subprocess.PIPE,
        env=deno._ENVIRONMENT,
    )
    output, _ = await process.communicate()
    names = {f"node:{name.removeprefix('node:')}" for name in json.loads(output)}
    mapped = json.loads((deno._CHILD / "imports.json").read_text())["imports"]
    assert names - mapped.keys() == set()
