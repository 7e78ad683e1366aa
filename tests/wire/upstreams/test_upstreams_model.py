"""Whatever is pushed, removed, announced, broken and mended in whatever order: in the end the newest is served.

The model is two dicts: what is published under each (scope, namespace), and the tools of each server. After the last
step every server is well and says that its list changed; then the gateway must come to what the model says by itself,
and hold no stream and no connection that it has no use for.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import Final

from aiohttp import web
from gateway_house import House, listener
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp_scripted import Asked, Reply, Scripted, tool
from upstream_house import CHANGED, ERAS, Stream, gateway, server, until

from arion_tds import freshness

SCOPES: Final = ("a/main", "b/main")
NAMESPACES: Final = ("one", "two")
TOOLS: Final = ("x", "y", "z")

places = st.tuples(st.sampled_from(SCOPES), st.sampled_from(NAMESPACES))
which = st.integers(0, len(ERAS) - 1)


@dataclasses.dataclass(frozen=True)
class Put:
    """Publish a server of that number; `text` makes another version of it."""

    place: tuple[str, str]
    number: int
    text: str


@dataclasses.dataclass(frozen=True)
class Remove:
    place: tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Change:
    """Other tools, announced or not."""

    number: int
    tools: frozenset[str]
    announced: bool


@dataclasses.dataclass(frozen=True)
class Break:
    """It refuses to list from now on, or (mended) does so no longer; `forgets`: it has lost its sessions too."""

    number: int
    broken: bool
    forgets: bool


@dataclasses.dataclass(frozen=True)
class Pause:
    """Let things happen."""

    turns: int


Step = Put | Remove | Change | Break | Pause
steps = st.lists(
    st.one_of(
        st.builds(Put, places, which, st.sampled_from(("p", "q"))),
        st.builds(Remove, places),
        st.builds(Change, which, st.frozensets(st.sampled_from(TOOLS)), st.booleans()),
        st.builds(Break, which, st.booleans(), st.booleans()),
        st.builds(Pause, st.integers(1, 30)),
    ),
    min_size=3,
    max_size=14,
)


class Upstream:
    """A scripted server with its stream, as the steps have left it."""

    def __init__(self, era: str) -> None:
        self.scripted = Scripted(era)
        self.stream = Stream(self.scripted)
        self.scripted.tools = [tool("x")]

    async def _fail(self, asked: Asked) -> Reply:
        del asked
        return web.Response(status=503)

    def set(self, *, broken: bool, forgets: bool) -> None:
        if forgets:
            self.scripted.sessions.clear()
        if broken:
            self.scripted.on["tools/list"] = self._fail
        else:
            self.scripted.on.pop("tools/list", None)

    async def announce(self) -> None:
        """To whom listens now. A stream that is closing has nobody at its other end."""
        for asked, response in list(self.stream.open):
            with contextlib.suppress(ConnectionError):
                await asked.send(response, CHANGED)

    @property
    def tools(self) -> set[str]:
        return {one["name"] for one in self.scripted.tools}


async def play(script: list[Step]) -> None:
    """One example."""
    upstreams = [Upstream(era) for era in ERAS]
    published: dict[tuple[str, str], int] = {}
    async with contextlib.AsyncExitStack() as stack:
        for one in upstreams:
            await stack.enter_async_context(one.scripted.serving())
        here = await stack.enter_async_context(gateway(listener(), listener("b")))
        for step in script:
            await _do(step, here, upstreams, published)
        for one in upstreams:
            one.set(broken=False, forgets=False)
            await one.announce()

        def settled() -> bool:
            return all(_served(here, scope) == _wanted(scope, upstreams, published) for scope in SCOPES)

        await until(settled)
        used = {upstreams[number].scripted.url for number in published.values()}
        await until(lambda: set(here.gateway.freshness._lookouts) == used)
        await until(lambda: {one.url for one in here.gateway.upstreams.status()} == used)
        await until(lambda: all(len(one.stream.open) == (one.scripted.url in used) for one in upstreams))
        await until(lambda: not len(here.gateway.problems))
        assert here.gateway.freshness._first == {}


async def _do(step: Step, here: House, upstreams: list[Upstream], published: dict[tuple[str, str], int]) -> None:
    match step:
        case Put(place, number, text):
            published[place] = number
            spec = server(place[1], upstreams[number].scripted, description=text)
            await here.plane.put("McpDynamicServer", "/".join(place), spec)
        case Remove(place):
            published.pop(place, None)
            here.plane.remove("McpDynamicServer", "/".join(place))
        case Change(number, tools, announced):
            upstreams[number].scripted.tools = [tool(name) for name in sorted(tools)]
            if announced:
                await upstreams[number].announce()
        case Break(number, broken, forgets):
            upstreams[number].set(broken=broken, forgets=forgets)
        case Pause(turns):
            for _ in range(turns):
                await asyncio.sleep(0.001)


def _served(here: House, scope: str) -> set[str]:
    (catalog,) = [one for one in here.gateway.catalogs if one.scope == scope]
    return set(catalog.published.view.qualified)


def _wanted(scope: str, upstreams: list[Upstream], published: dict[tuple[str, str], int]) -> set[str]:
    return {
        f"{namespace}.{name}"
        for (where, namespace), number in published.items()
        if where == scope
        for name in upstreams[number].tools
    }


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None)
@given(script=steps)
def test_in_the_end_the_newest_of_everything_is_served_and_nothing_is_left_over(script: list[Step]) -> None:
    quiet, freshness.QUIET = freshness.QUIET, 0.01  # type: ignore[misc]
    try:
        asyncio.run(play(script))
    finally:
        freshness.QUIET = quiet  # type: ignore[misc]
