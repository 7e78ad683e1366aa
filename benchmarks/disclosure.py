"""What progressive disclosure saves on 1,000 real tools, over MCP: `python -m benchmarks.disclosure [TOOLS]`.

Two listeners serve the same catalog: one lists it whole, one discloses it. Counted are the tokens that a model reads:
the list and, for queries that an agent wrote, answers of `search_tools`; and how often the right tool was in them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from arion_tds import schema
from arion_tds.model import names
from arion_tds.model.tool import Tool
from arion_tds.search import tokens
from benchmarks import rig
from benchmarks.search_data import DEFAULT_FOLDER, Labelled, labelled
from control_plane_example.mock import MockControlPlane

WHOLE, DISCLOSED = "whole", "disclosed"
QUERIES = "livemcp-agent"
"""The set whose queries are asked: its tools are all in the catalog."""


async def main(count: int) -> None:
    sets = {inner.name: inner for inner in labelled(DEFAULT_FOLDER)}
    catalog = dict(islice(dict(_good(sets)).items(), count))
    ports = {WHOLE: rig.free_port(), DISCLOSED: rig.free_port()}
    async with MockControlPlane() as plane:
        settings = rig.config(plane.address, listener=0, admin=rig.free_port())
        settings["listeners"] = [_listener(name, port) for name, port in ports.items()]
        async with rig.gateway(settings):
            await plane.connected()
            for scope in ports:
                for tool in catalog.values():
                    version = await plane.put("McpTool", f"{scope}/main/{tool.qualified}", _spec(tool))
                await plane.acked("McpTool", f"{scope}/main/{tool.qualified}", version, timeout=60)
            clients = {name: await rig.Client.connect(f"127.0.0.1:{port}") for name, port in ports.items()}
            for client in clients.values():
                await client.initialize()
            full = await listed(clients[WHOLE])
            own = await listed(clients[DISCLOSED])
            answers, found = await asked(clients[DISCLOSED], sets[QUERIES], set(catalog))
            for client in clients.values():
                client.close()
    mean = sum(answers) / len(answers)
    rig.report(
        "disclosure",
        tools=len(catalog),
        exact=tokens.exact(),
        every_tool_listed_tokens=full,
        disclosed_list_tokens=own,
        search_answer_tokens=round(mean),
        queries=len(answers),
        right_tool_in_the_answer=round(found / len(answers), 3),
        saved_percent=round(100 * (1 - (own + mean) / full), 1),
    )


def _good(sets: dict[str, Labelled]) -> Iterator[tuple[str, Tool]]:
    """Tools by qualified name, those of the queries first."""
    first = sets[QUERIES].tools.values()
    others = chain.from_iterable(inner.tools.values() for name, inner in sorted(sets.items()) if name != QUERIES)
    for tool in chain(first, others):
        good = isinstance(schema.parse(tool.input_schema.text), schema.Schema)
        if good and names.problem(tool.qualified) is None and tool.description:
            yield tool.qualified, tool


def _listener(name: str, port: int) -> dict[str, Any]:
    search = {"search": {}} if name == DISCLOSED else {}
    gateway = {"server_info": {"name": name, "version": "1"}, "tools_mode": {}, "tds": {"config_name": "main"}}
    return {"name": name, "address": f"127.0.0.1:{port}", "page_size": 1000, "mcp_gateway": {**gateway, **search}}


def _spec(tool: Tool) -> dict[str, Any]:
    return {
        "namespace": tool.namespace,
        "name": tool.name,
        "description": tool.description,
        "input_schema": {"inline_string": tool.input_schema.text.decode()},
        "rest_backend": {"method": "GET", "path": "/", "cluster": "none"},
    }


async def listed(client: rig.Client) -> int:
    """Tokens of every definition that tools/list gives."""
    total, cursor = 0, None
    while True:
        result = json.loads(await client.call("tools/list", {} if cursor is None else {"cursor": cursor}))["result"]
        total += sum(tokens.count([json.dumps(one, ensure_ascii=False) for one in result["tools"]]))
        cursor = result.get("nextCursor")
        if cursor is None:
            return total


async def asked(client: rig.Client, inner: Labelled, served: set[str]) -> tuple[list[int], int]:
    """Tokens of each answer of `search_tools`, and how many answers held a tool that the agent then used."""
    sizes: list[int] = []
    found = 0
    for query in inner.queries:
        right = {tool.qualified for key, tool in inner.tools.items() if key in query.relevant} & served
        if not right:
            continue
        body = await client.call("tools/call", {"name": "search_tools", "arguments": {"query": query.text}})
        (block,) = json.loads(body)["result"]["content"]
        sizes += tokens.count([block["text"]])
        found += any(one["name"] in right for one in json.loads(block["text"])["tools"])
    return sizes, found


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
