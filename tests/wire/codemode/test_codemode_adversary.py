"""Programs that mean harm: each ends with its error within its limit, and the next one runs as if nothing had been."""

from __future__ import annotations

import asyncio

import pytest
from codemode_box import STALL, box

from arion_tds.codemode.outcome import Code, Failure, Success

pytest.importorskip("deno", reason="the extra code-mode is not installed")

TIMEOUT, MEMORY, OUTPUT, CALLS = Code.TIMEOUT, Code.MEMORY, Code.OUTPUT, Code.HOST_CALLS
RUNTIME, RESULT, SYNTAX, ENGINE = Code.RUNTIME, Code.RESULT, Code.SYNTAX, Code.ENGINE

HARMFUL: dict[str, tuple[str, set[Code]]] = {
    # time
    "a loop without end": ("while (true) {}", {TIMEOUT}),
    "microtasks without end": ("const f = () => Promise.resolve().then(f); await f()", {TIMEOUT, MEMORY}),
    "a promise that nobody resolves": ("await new Promise(() => {})", {TIMEOUT}),
    "backtracking": ("/^(a+)+$/.test('a'.repeat(40) + 'b')", {TIMEOUT}),
    "native loops": ("const a = Array.from({length: 1e5}, Math.random); for (;;) a.sort()", {TIMEOUT, MEMORY}),
    "squares of squares": ("let n = 3n; for (;;) n = n * n", {TIMEOUT, RUNTIME, MEMORY}),
    "a getter without end": ("({get a() { for (;;); }})", {TIMEOUT}),
    "a toJSON without end": ("({toJSON() { for (;;); }})", {TIMEOUT}),
    "keys without end": ("new Proxy({}, {ownKeys() { for (;;); }})", {TIMEOUT}),
    "an end that waits": ("setInterval(() => {}, 1); await new Promise(() => {})", {TIMEOUT}),
    "code beside the function": ("return 1 } while (true) {} {", {TIMEOUT}),
    # memory
    "strings": ("const a = []; for (;;) a.push('x'.repeat(1000) + a.length)", {MEMORY}),
    "a map": ("const m = new Map(); for (let i = 0; ; i++) m.set({i}, [i])", {MEMORY}),
    "objects in objects": ("let o = {}; for (;;) o = {o, a: [1, 2, 3]}", {MEMORY}),
    "buffers": ("const a = []; for (;;) a.push(new Uint8Array(16 << 20).fill(1))", {MEMORY}),
    "one large array": ("new Array(2 ** 27).fill(1.5)", {MEMORY, RUNTIME, TIMEOUT}),
    "timers": ("for (let i = 0; i < 1e8; i++) setTimeout(() => i, 1e6)", {MEMORY, TIMEOUT}),
    "promises": ("const a = []; for (;;) a.push(new Promise((r) => a.push(r)))", {MEMORY}),
    "doubling": ("let s = 'x'; for (;;) s += s", {RUNTIME, MEMORY}),
    "clones": ("const a = [new ArrayBuffer(8 << 20)]; for (;;) a.push(structuredClone(a[0]))", {MEMORY, TIMEOUT}),
    # output
    "a large value": ("'x'.repeat(5e6)", {OUTPUT}),
    "a huge value": ("'x'.repeat(5e7)", {OUTPUT, MEMORY}),
    "console without end": ("for (;;) console.log('x'.repeat(1000))", {OUTPUT}),
    "one long line": ("console.log('x'.repeat(1e6))", {OUTPUT}),
    "empty lines": ("for (;;) console.log('')", {OUTPUT, TIMEOUT}),
    # host calls
    "calls one by one": ("for (;;) await tools.a.b()", {CALLS}),
    "calls all at once": ("await Promise.all(Array.from({length: 1000}, () => tools.a.b()))", {CALLS}),
    "calls that are caught": ("for (;;) try { await tools.a.b() } catch {}", {CALLS}),
    "searches": ("for (;;) await catalog.tools.search('x')", {CALLS}),
    "a large argument": ("await tools.a.b({x: 'x'.repeat(3e6)})", {RUNTIME}),
    # values that cannot be
    "a circle": ("const a = {}; a.a = a; a", {RESULT}),
    "a depth": ("let a = []; for (let i = 0; i < 2e5; i++) a = [a]; a", {RESULT, RUNTIME, ENGINE}),
    "a depth that JSON can write": ("let a = []; for (let i = 0; i < 3000; i++) a = [a]; a", {RESULT, ENGINE}),
    "a promise inside": ("({a: [Promise.resolve(1)]})", {RESULT}),
    "a getter that throws": ("({get a() { throw new Error('no') }})", {RESULT}),
    "a tool": ("tools.a.b", {RESULT}),
    # recursion and errors
    "recursion": ("const f = () => f() + 1; f()", {RUNTIME}),
    "a long message": ("throw new Error('x'.repeat(1e6))", {RUNTIME}),
    "a strange error": ("throw {get message() { throw 1 }, get name() { for (;;); }}", {TIMEOUT, RUNTIME}),
    "no error": ("throw undefined", {RUNTIME}),
    "an error whose name is no text": ("throw {name: Symbol('x'), message: {}}", {RUNTIME}),
    "no code": ("const a = ;", {SYNTAX}),
    # ways out
    "the file system": ("await import('node:fs').then((fs) => fs.readFileSync('/etc/passwd'))", {RUNTIME}),
    "processes": ("await import('node:child_process').then((c) => c.execSync('id'))", {RUNTIME}),
    "the network": ("await import('node:net').then((n) => n.connect(80, '127.0.0.1'))", {RUNTIME, ENGINE}),
    "threads": ("await import('node:worker_threads').then((w) => new w.Worker('for(;;);', {eval: true}))", {RUNTIME}),
    "a module from elsewhere": ("await import('https://esm.sh/lodash')", {RUNTIME}),
    "a package": ("await import('npm:lodash')", {RUNTIME}),
    "another package": ("await import('jsr:@std/path')", {RUNTIME}),
    "a file": ("await import('file:///etc/passwd')", {RUNTIME}),
    "a file as text": ("await import('file:///etc/passwd', {with: {type: 'text'}})", {RUNTIME}),
    "an import of the module": (
        "return 1 }\nimport p from 'file:///etc/passwd' with {type: 'text'}\nvoid {p",
        {SYNTAX},
    ),
    "fetch": ("await fetch('http://127.0.0.1/')", {RUNTIME}),
    "a worker": ("new Worker('data:application/javascript,for(;;);', {type: 'module'})", {RUNTIME}),
    "web assembly": ("new WebAssembly.Memory({initial: 60000})", {RUNTIME}),
    "Deno": ("Deno.readTextFileSync('/etc/passwd')", {RUNTIME}),
    "Deno through a constructor": ("(() => {}).constructor('return Deno')().exit(0)", {RUNTIME}),
    "waiting without a loop": ("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)", {RUNTIME}),
    "the end of the process": ("await import('node:process').then((p) => p.exit(0))", {RUNTIME, ENGINE}),
    # what the bridge needs, taken away
    "toJSON for everything": ("Object.prototype.toJSON = () => { for (;;); }; await tools.a.b()", {TIMEOUT}),
    "no promises": ("Promise.prototype.then = () => { throw 1 }; await tools.a.b(); throw 2", {RUNTIME, TIMEOUT}),
    "no maps": (
        "for (const k of Object.getOwnPropertyNames(Map.prototype)) delete Map.prototype[k]; throw 1",
        {RUNTIME},
    ),
}


@pytest.mark.parametrize("name", HARMFUL)
async def test_harm_ends_with_its_error_and_the_next_program_runs(name: str) -> None:
    code, expected = HARMFUL[name]
    async with box() as here:
        started = asyncio.get_running_loop().time()
        outcome = await here.run(code)
        took = asyncio.get_running_loop().time() - started
        assert isinstance(outcome, Failure), outcome.value[:300]
        assert outcome.code in expected, outcome.message[:300]
        assert len(outcome.message) < 6000
        assert "worker.js" not in outcome.message
        assert took < here.limits.execution_timeout + 3
        assert await here.run("1 + 1") == Success(value=b"2")
        assert here.stall < STALL


HARMLESS: dict[str, tuple[str, bytes]] = {
    "eval": ("eval('1 + 1')", b"2"),
    "new Function": ("new Function('return 1 + 1')()", b"2"),
    "Deno is not there": ("(() => {}).constructor('return typeof Deno + typeof process')()", b'"undefinedundefined"'),
    "JSON taken away": ("JSON.stringify = JSON.parse = () => 7; (await tools.a.b()).op", b'"tool"'),
    "globals taken away": ("Promise = Map = Object = TextEncoder = tools = catalog = console = null; 3", b"3"),
    "Array.prototype poisoned": ("Array.prototype.push = Array.prototype.map = () => 7; await tools.a.b(); 4", b"4"),
    "Object.prototype poisoned": (
        "Object.prototype.id = 99; Object.prototype.t = 'done'; (await tools.a.b()).op",
        b'"tool"',
    ),
    "a name that is no own property": ("(await tools.__proto__.constructor()).args.name", b'"__proto__.constructor"'),
    "keys that are special": (
        '(await tools.a.b(JSON.parse(\'{"__proto__": 1, "constructor": 2}\'))).args.args',
        b'{"__proto__":1,"constructor":2}',
    ),
    "a timer that goes on": ("setInterval(() => {}, 1); 5", b"5"),
    "catching what is thrown": ("try { throw new Error('x') } catch (error) { error.message }\nreturn 6", b"6"),
    "a strange name": ("(await tools.call('ns.a\\nb\u2028\"c', {})).args.name", '"ns.a\\nb\u2028\\"c"'.encode()),
    "half a character": ("'\\ud800'.length", b"1"),
}


@pytest.mark.parametrize("name", HARMLESS)
async def test_what_is_odd_but_harmless_works(name: str) -> None:
    code, value = HARMLESS[name]
    async with box() as here:
        assert await here.value(code) == value


async def test_a_rejection_that_nobody_waits_for_is_told_and_ends_nothing() -> None:
    async with box() as here:
        outcome = await here.run("Promise.reject(new Error('lost')); await new Promise((r) => setTimeout(r, 20)); 1")
        assert outcome == Success(value=b"1", console=("[error] not awaited, and failed: lost",))


async def test_calls_that_nobody_waits_for_are_cancelled_and_said() -> None:
    async def never(_identity: int, _op: str, _args: bytes) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with box() as here:
        outcome = await here.run("tools.a.b(); tools.a.b(); 1", answer=never)
        assert isinstance(outcome, Success)
        assert outcome.hint == "2 host calls were not awaited and have been cancelled"


async def test_half_a_character_in_a_value_is_replaced() -> None:
    async with box() as here:
        assert await here.value("['\\ud800', 'a\\\\ud800', '\\ud83d\\ude00', '\\udc00\\udc00']") == (
            '["\ufffd","a\\\\ud800","\U0001f600","\ufffd\ufffd"]'.encode()
        )
