"""Code mode of one listener: the tool `execute`, which is all that such a listener lists.

In: a program, the View that the request took, who asks. Out: a tool result with the program's value, or why there is
none. Built by app for a gateway in code mode; called by the front like any tool of the gateway itself (`ExtraTool`).
Joins the sandbox (codemode) with the View, search and calls: a host call goes the way that `tools/call` goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import msgspec

from arion_tds.codemode import guide, run
from arion_tds.codemode import limits as limiting
from arion_tds.codemode.bridge import Bridge, Page
from arion_tds.codemode.engine import Engine, StartError
from arion_tds.codemode.limits import Limits, size
from arion_tds.codemode.outcome import Code, Failure, Outcome, Success
from arion_tds.codemode.pool import BusyError, Pool
from arion_tds.metrics import Metrics
from arion_tds.model.context import CallContext
from arion_tds.model.gateway import CodeMode
from arion_tds.model.rbac import Rbac
from arion_tds.model.result import CallResult, RpcError
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit
from arion_tds.server import spans
from arion_tds.server.settings import Allows, CallPort, ExtraTool, MethodsConfig, SearchAsk, SearchPort
from arion_tds.view import Published, View

EXECUTE: Final = "execute"
_ON_LOOP: Final = 16 << 10  # characters of code that are read in a few milliseconds
_DESCRIPTIONS: Final = 64
_encode = msgspec.json.Encoder().encode


class Census:
    """How many tools each namespace has under each policy, kept as the View changes and not counted anew."""

    def __init__(self, published: Published) -> None:
        """Counts what is there and listens until `close`."""
        self._counts: dict[tuple[str, Rbac | None], int] = {}
        self.edition = 0
        for entry in published.view.tools.values():
            self._add(entry.tool, 1)
        self._stop = published.listen(self._published)

    def close(self) -> None:
        """Stop listening."""
        self._stop()

    def _published(self, old: View, new: View) -> None:
        for name in new.touched:
            before, after = old.tools.get(name), new.tools.get(name)
            if before is not None:
                self._add(before.tool, -1)
            if after is not None:
                self._add(after.tool, 1)
        self.edition += 1

    def _add(self, tool: Tool, count: int) -> None:
        group = (tool.namespace, tool.rbac)
        left = self._counts.get(group, 0) + count
        if left:
            self._counts[group] = left
        else:
            del self._counts[group]

    def visible(self, allows: Allows) -> dict[str, int]:
        """Visible tools by namespace, in name order."""
        found: dict[str, int] = {}
        for (namespace, rbac), count in self._counts.items():
            if rbac is None or allows(rbac):
                found[namespace] = found.get(namespace, 0) + count
        return dict(sorted(found.items()))


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What programs are about, what their host calls go through, and what runs them."""

    published: Published
    finder: SearchPort
    calls: CallPort
    engine: Callable[[Limits], Engine]


class _Host:
    """The catalog as one caller sees it for the length of one execution."""

    def __init__(self, parts: Parts, view: View, namespaces: Mapping[str, int], context: CallContext) -> None:
        self._parts = parts
        self._view = view
        self._namespaces = namespaces
        self._allows = context.allows
        # A host call is a call of its own: nothing of the request's params, headers or streams goes with it.
        self._context = CallContext(
            request_id=context.request_id,
            traceparent=context.traceparent,
            allows=context.allows,
            subject=context.subject,
            tracestate=context.tracestate,
            span=context.span,
        )

    def namespaces(self) -> Mapping[str, int]:
        return self._namespaces

    def toolkits(self) -> Mapping[str, Toolkit]:
        return self._view.toolkits

    def find(self, name: str) -> Tool | None:
        entry = self._view.find(name)
        if entry is None or not (entry.tool.rbac is None or self._allows(entry.tool.rbac)):
            return None
        return entry.tool

    def hides(self, name: str) -> bool:
        return self._view.find(name) is not None and self.find(name) is None

    async def search(self, query: str, namespaces: tuple[str, ...] | None, limit: int, offset: int) -> Page:
        ask = SearchAsk(query=query, namespaces=namespaces, limit=limit, offset=offset)
        found = await self._parts.finder.search(self._view, ask, self._allows)
        return Page([(entry.tool, float(score)) for entry, score in found.hits], found.total)

    async def call(self, tool: Tool, arguments: dict[str, Any]) -> CallResult | RpcError:
        entry = self._view.qualified[tool.qualified]
        return await spans.within(self._parts.calls, self._view, entry, arguments, self._context)


class Executor:
    """`execute` of one listener. `running` starts and ends its sandboxes."""

    def __init__(
        self, listener: str, mode: CodeMode, parts: Parts, metrics: Metrics, clock: Callable[[], float]
    ) -> None:
        """`clock` gives seconds."""
        self._limits = limiting.of(mode)
        self._parts = parts
        self._clock = clock
        self._outcomes = {
            outcome: metrics.executions.labels(listener, outcome) for outcome in ("ok", *(code.value for code in Code))
        }
        self._seconds = metrics.execution_seconds.labels(listener)
        self._pool: Pool | None = None
        self._census: Census | None = None
        self._described: OrderedDict[object, bytes] = OrderedDict()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[MethodsConfig]:
        """What the front serves, for as long as the block runs."""
        self._census = Census(self._parts.published)
        self._pool = Pool(self._parts.engine(self._limits), self._limits)
        self._pool.fill()
        tool = ExtraTool(b"", b"", self.execute, self.describe)
        try:
            yield MethodsConfig(extra_tools={EXECUTE: tool}, catalog=False)
        finally:
            self._census.close()
            await self._pool.close()

    def status(self) -> dict[str, int]:
        """Executions that run and wait, and sandboxes started so far."""
        pool = self._pool
        return {} if pool is None else {"running": pool.running, "waiting": pool.waiting, "started": pool.started}

    def describe(self, view: View, allows: Allows) -> bytes:
        """The tool's definition for this caller."""
        census = self._census
        if census is None:
            return b""
        namespaces = census.visible(allows) if view.restricted else None
        key = (census.edition, None if namespaces is None else tuple(namespaces.items()))
        found = self._described.get(key)
        if found is None:
            if namespaces is None:
                namespaces = census.visible(allows)
            text = guide.description(self._limits, namespaces, view.toolkits)
            found = _encode({"name": EXECUTE, "description": text, "inputSchema": guide.input_schema()})
            self._described[key] = found
            if len(self._described) > _DESCRIPTIONS:
                self._described.popitem(last=False)
        return found

    async def execute(self, view: View, arguments: dict[str, Any], context: CallContext) -> CallResult:
        """Run the program of the arguments and render what became of it."""
        started = self._clock()
        outcome = await self._outcome(view, arguments, context)
        self._outcomes["ok" if isinstance(outcome, Success) else outcome.code.value].inc()
        self._seconds.observe(self._clock() - started)
        return render(outcome)

    async def _outcome(self, view: View, arguments: dict[str, Any], context: CallContext) -> Outcome:
        code = arguments.get("code")
        if not isinstance(code, str) or len(arguments) != 1:
            return Failure(code=Code.ARGUMENTS, message="execute takes one argument: `code`, a string of TypeScript")
        limits, pool, census = self._limits, self._pool, self._census
        if len(code.encode("utf-8", "replace")) > limits.max_code_bytes:
            why = f"the code is larger than {size(limits.max_code_bytes)}: have tools fetch the data, do not paste it"
            return Failure(code=Code.CODE_SIZE, message=why)
        if pool is None or census is None:
            return Failure(code=Code.ENGINE, message="the gateway is not running", retryable=True)
        namespaces = census.visible(context.allows)
        program = run.prepare(code) if len(code) <= _ON_LOOP else await asyncio.to_thread(run.prepare, code)
        bridge = Bridge(_Host(self._parts, view, namespaces, context))
        try:
            async with pool.turn():
                sandbox = await pool.take()
                try:
                    return await run.Execution(sandbox, bridge.answer, limits).run(program, list(namespaces))
                finally:
                    pool.discard(sandbox)
        except BusyError as busy:
            why = (
                f"{limits.max_concurrent_executions} programs run (max_concurrent_executions) and {busy.waiting} wait: "
                f"try again in about {max(1.0, busy.retry_after):.0f} s"
            )
            return Failure(code=Code.BUSY, message=why, retryable=True)
        except StartError as error:
            return Failure(code=Code.ENGINE, message=f"no sandbox could be started: {error}", retryable=True)


def render(outcome: Outcome) -> CallResult:
    """The tool result: text for the model, and the same as structured content."""
    if isinstance(outcome, Success):
        texts = [_readable(outcome.value)]
        structured: dict[str, object] = {"result": msgspec.Raw(outcome.value)}
        if outcome.hint is not None:
            texts.append(f"Hint: {outcome.hint}")
            structured["hint"] = outcome.hint
    else:
        texts = [_sentence(outcome)]
        structured = {"error": _error(outcome)}
    if outcome.console:
        texts.append("Console:\n" + "\n".join(outcome.console))
        structured["console"] = outcome.console
    content = _encode([{"type": "text", "text": text} for text in texts])
    return CallResult(content=content, structured=_encode(structured), is_error=isinstance(outcome, Failure))


def _readable(value: bytes) -> str:
    """A string as itself, anything else as JSON."""
    if value.startswith(b'"'):
        return str(msgspec.json.decode(value))
    return value.decode()


def _sentence(failure: Failure) -> str:
    place = "" if failure.line is None else f" at line {failure.line}, column {failure.column}"
    parts = [f"{failure.code.value}{place}: {failure.message}"]
    if failure.shape is not None:
        parts.append(f"Shape: {failure.shape}")
    if failure.preview is not None:
        parts.append(f"It begins: {failure.preview}")
    return "\n".join(parts)


def _error(failure: Failure) -> dict[str, object]:
    found: dict[str, object] = {
        "code": failure.code.value,
        "message": failure.message,
        "retryable": failure.retryable,
        "line": failure.line,
        "column": failure.column,
        "name": failure.name,
        "tool_code": failure.tool_code,
        "status": failure.status,
        "shape": failure.shape,
        "preview": failure.preview,
    }
    return {key: value for key, value in found.items() if value is not None}
