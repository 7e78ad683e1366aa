"""`execute` around the sandbox: its text, its arguments, its results, with an engine that a test scripts."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from arion_tds import executing, schema
from arion_tds.codemode.engine import StartError
from arion_tds.codemode.outcome import Code, Failure, Success
from arion_tds.executing import Executor, Parts
from arion_tds.metrics import Metrics
from arion_tds.model.backend import McpBackend
from arion_tds.model.context import CallContext
from arion_tds.model.gateway import CodeMode
from arion_tds.model.names import Naming
from arion_tds.model.rbac import Permission, Rbac
from arion_tds.model.result import CallResult, RpcError, text_block
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit
from arion_tds.server.settings import Allows, ExtraTool, Found, SearchAsk
from arion_tds.view import Entry, Published, View, entry

ADMINS = Rbac(deny=False, permissions=(Permission("role", "admin"),))


def nobody(rbac: Rbac | None) -> bool:
    return rbac is None


def admin(_rbac: Rbac | None) -> bool:
    return True


def tool(qualified: str, rbac: Rbac | None = None, text: str = "t") -> Tool:
    namespace, _, name = qualified.partition(".")
    backend = McpBackend("up", name)
    empty = schema.EMPTY_OBJECT
    return Tool(namespace=namespace, name=name, description=text, input_schema=empty, backend=backend, rbac=rbac)


class Echo:
    """Search finds nothing, calls say what they were called with."""

    def __init__(self) -> None:
        self.contexts: list[CallContext] = []

    async def search(self, view: View, ask: SearchAsk, allows: Allows) -> Found:
        del view, ask, allows
        return Found(hits=[], total=0, ranking="name")

    async def call(
        self, view: View, entry: Entry, arguments: dict[str, Any], context: CallContext
    ) -> CallResult | RpcError:
        assert view.qualified[entry.tool.qualified] is entry
        self.contexts.append(context)
        return CallResult(content=text_block(json.dumps(arguments)))


class Player:
    """An engine whose sandboxes play lines; it stops making them when there are none left."""

    def __init__(self, *scripts: list[bytes]) -> None:
        self.scripts = list(scripts)
        self.sent: list[Any] = []

    async def sandbox(self) -> Playing:
        if not self.scripts:
            raise StartError("no more")
        return Playing(self, self.scripts.pop(0))

    async def close(self) -> None: ...


class Playing:
    """A sandbox that plays lines."""

    def __init__(self, engine: Player, lines: list[bytes]) -> None:
        self.engine = engine
        self.lines = lines
        self.alive = True
        self.moved = asyncio.Event()

    def watch(self) -> None: ...

    async def send(self, frame: bytes) -> None:
        self.engine.sent.append(json.loads(frame))
        self.moved.set()

    async def receive(self) -> bytes:
        if len(self.lines) == 1:  # the last line waits for every answer
            while len(self.engine.sent) < 2 and b'"wait":true' in self.lines[0]:
                self.moved.clear()
                await self.moved.wait()
        if not self.lines:
            await asyncio.Event().wait()
        return self.lines.pop(0)

    async def clear(self) -> None:
        self.alive = False


class House:
    def __init__(self, executor: Executor, published: Published, ports: Echo) -> None:
        self.executor = executor
        self.published = published
        self.ports = ports
        self.tool: ExtraTool

    def put(self, *come: Tool, gone: tuple[Tool, ...] = (), kits: dict[str, Toolkit] | None = None) -> None:
        entries = [entry(one, Naming.QUALIFIED) for one in come]
        held = self.published.view.toolkits if kits is None else kits
        self.published.publish(self.published.view.replace(gone, entries, held, eager_only=False, counted=True))

    def text(self, allows: Callable[[Rbac | None], bool] = nobody) -> str:
        assert self.tool.describe is not None
        found: str = json.loads(self.tool.describe(self.published.view, allows))["description"]
        return found

    async def run(self, **arguments: Any) -> tuple[bool, dict[str, Any]]:
        """Whether it is an error, and the structured content."""
        context = CallContext(request_id="r1", traceparent="00-1", params={"_meta": b"{}"}, allows=nobody)
        result = await self.tool.handler(self.published.view, arguments, context)
        assert isinstance(result, CallResult)
        assert result.structured is not None
        return result.is_error, json.loads(result.structured)


@contextlib.asynccontextmanager
async def house(*scripts: list[bytes], **mode: Any) -> AsyncIterator[House]:
    ports, published, engine = Echo(), Published("a/main", Naming.QUALIFIED), Player(*scripts)
    made = CodeMode(max_concurrent_executions=1, **mode)
    parts = Parts(published, ports, ports, lambda _limits: engine)
    executor = Executor("a", made, parts, Metrics(), asyncio.get_running_loop().time)
    here = House(executor, published, ports)
    async with asyncio.timeout(5), executor.running() as config:
        assert not config.catalog
        (here.tool,) = config.extra_tools.values()
        yield here


async def test_the_text_counts_what_the_caller_may_see_as_it_comes_and_goes() -> None:
    async with house() as here:
        one, two, hidden = tool("a.one"), tool("a.two"), tool("vault.open", ADMINS)
        here.put(one, two, hidden)
        assert here.text().endswith("Namespaces (tools): a (2)")
        assert here.text(admin).endswith("Namespaces (tools): a (2), vault (1)")
        here.put(tool("vault.open"), gone=(hidden,))
        assert here.text().endswith("Namespaces (tools): a (2), vault (1)")
        here.put(gone=(one, two))
        assert here.text().endswith("Namespaces (tools): vault (1)")


async def test_the_list_changes_with_counts_and_toolkits_and_for_whom_they_are() -> None:
    async with house() as here:
        one, hidden = tool("a.one"), tool("vault.open", ADMINS)
        here.put(one)
        assert (here.published.view.list_revision, here.published.view.list_change.concerns(nobody)) == (1, True)
        here.put(tool("a.one", text="other words"), gone=(one,))
        assert here.published.view.list_revision == 1
        here.put(hidden)
        change = here.published.view.list_change
        assert (here.published.view.list_revision, change.concerns(nobody), change.concerns(admin)) == (2, False, True)
        here.put(kits={"k": Toolkit(name="k", description="d", instructions="i", tools=("a.one", "a.two"))})
        assert (here.published.view.list_revision, here.published.view.list_change.concerns(nobody)) == (3, True)


async def test_tools_that_were_there_before_are_counted() -> None:
    ports, published = Echo(), Published("a/main", Naming.QUALIFIED)
    entries = [entry(tool("a.one"), Naming.QUALIFIED)]
    published.publish(published.view.replace([], entries, {}, eager_only=False, counted=True))
    census = executing.Census(published)
    assert census.visible(nobody) == {"a": 1}
    census.close()
    published.publish(published.view.replace([tool("a.one")], [], {}, eager_only=False, counted=True))
    assert census.visible(nobody) == {"a": 1}
    del ports


async def test_wrong_arguments_and_too_much_code_never_reach_a_sandbox() -> None:
    async with house() as here:
        for arguments in ({}, {"code": 7}, {"code": "1", "more": 1}, {"script": "1"}):
            error, found = await here.run(**arguments)
            assert (error, found["error"]["code"]) == (True, "invalid_arguments")
        error, found = await here.run(code="x" * 300_000)
        assert (found["error"]["code"], "256 KiB" in found["error"]["message"]) == ("code_too_large", True)


async def test_a_host_call_carries_the_request_and_its_caller_and_nothing_else() -> None:
    script = [
        b'{"t":"call","id":1,"op":"tool","args":{"name":"a.one","args":{"x":1}}}',
        b'{"t":"done","value":{"wait":true}}',
    ]
    async with house(script) as here:
        here.put(tool("a.one"))
        assert await here.run(code="1") == (False, {"result": {"wait": True}})
        (context,) = here.ports.contexts
        assert (context.request_id, context.traceparent, context.allows) == ("r1", "00-1", nobody)
        assert (context.params, context.param_headers, context.notify, context.session) == ({}, (), None, None)


async def test_a_sandbox_that_cannot_be_started_is_an_error_to_try_again() -> None:
    async with house() as here:
        error, found = await here.run(code="1")
        assert (error, found["error"]["code"], found["error"]["retryable"]) == (True, "engine_error", True)


async def test_a_full_house_says_when_to_come_again() -> None:
    async with house([], [], []) as here, asyncio.TaskGroup() as group:
        tasks = [group.create_task(here.run(code="1")) for _ in range(3)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert here.executor.status() == {"running": 1, "waiting": 2, "started": 2}
        error, found = await here.run(code="1")
        assert (error, found["error"]["code"], found["error"]["retryable"]) == (True, "overflow", True)
        assert "max_concurrent_executions" in found["error"]["message"]
        assert "try again in about 1 s" in found["error"]["message"]
        for task in tasks:
            task.cancel()


def test_a_result_is_text_for_the_model_and_the_same_as_data() -> None:
    result = executing.render(Success(value=b'"a\\nb"', console=("x", "y"), hint="h"))
    texts = [block["text"] for block in json.loads(result.content)]
    assert texts == ["a\nb", "Hint: h", "Console:\nx\ny"]
    assert json.loads(result.structured or b"") == {"result": "a\nb", "hint": "h", "console": ["x", "y"]}
    assert not result.is_error
    assert json.loads(executing.render(Success(value=b"[1]")).structured or b"") == {"result": [1]}


def test_an_error_is_a_sentence_and_its_fields() -> None:
    failure = Failure(code=Code.OUTPUT, message="too much", line=2, column=3, shape="{a: number}", preview='{"a"')
    result = executing.render(failure)
    (block,) = json.loads(result.content)
    assert block["text"] == 'output_limit at line 2, column 3: too much\nShape: {a: number}\nIt begins: {"a"'
    assert json.loads(result.structured or b"")["error"] == {
        "code": "output_limit",
        "message": "too much",
        "retryable": False,
        "line": 2,
        "column": 3,
        "shape": "{a: number}",
        "preview": '{"a"',
    }
    assert result.is_error
