"""How sources and servers become tools: the adapters between ingest and the two that do the work.

In: an OpenApiSource or McpServer. Out: `Derived`. Built by app; called by ingest and by freshness.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from arion_tds.backends.mcp import discovery
from arion_tds.backends.mcp.address import shown
from arion_tds.backends.mcp.listing import Listing
from arion_tds.backends.mcp.pool import Upstreams
from arion_tds.expansion import Expander
from arion_tds.model.derived import Derived
from arion_tds.model.problem import Problem
from arion_tds.model.result import CallFailure
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource


async def expand(expander: Expander, source: OpenApiSource) -> Derived:
    """The tools of a document, or everything that is wrong with it; skipped operations and warnings are left-outs."""
    found = await expander.expand(source)
    if found.problems:
        return Derived(problem=_sentences(found.problems))
    return Derived(found.tools, left_out=tuple(str(one) for one in (*found.skipped, *found.warnings)))


async def discover(
    upstreams: Upstreams, server: McpServer, deadline: float, listed: Callable[[str, tuple[bytes, ...]], None] | None
) -> Derived:
    """The tools that a server lists within `deadline` seconds, or why there are none; bad ones are left-outs.

    `listed` is told the server's URL and what it listed, as it wrote it.
    """
    try:
        async with asyncio.timeout(deadline):
            listing = await upstreams.list_tools(server.url)
    except TimeoutError:
        why = f"MCP server {shown(server.url)}: no tool list within {deadline:g} s (discovery_timeout)"
        return Derived(problem=why)
    if isinstance(listing, CallFailure):
        return Derived(problem=listing.message)
    if listed is not None:
        listed(server.url, listing.tools)
    tools, left_out = await discovery.discover(server, listing)
    return Derived(tools, left_out=tuple(str(one) for one in left_out))


async def remember(server: McpServer, listed: tuple[bytes, ...]) -> Derived:
    """The tools of a server that listed these in an earlier life of the gateway."""
    tools, left_out = await discovery.discover(server, Listing(listed))
    return Derived(tools, left_out=tuple(str(one) for one in left_out), remembered=True)


def _sentences(problems: Iterable[Problem]) -> str:
    return "; ".join(str(one) for one in problems)
