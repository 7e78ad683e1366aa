"""`arion-tds tokens [-c gateway.yaml] DOCUMENT …`: what a catalog costs a model's context, listed in three ways."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

from arion_tds import disclosure, offline
from arion_tds.cli import check
from arion_tds.codemode import guide, limits
from arion_tds.config import judging
from arion_tds.model.gateway import CodeMode
from arion_tds.model.tool import Tool
from arion_tds.registry.snapshot import Snapshot
from arion_tds.search import tokens
from arion_tds.server.settings import DEFAULT_FOUND_TOOLS

SHOWN: int = 10
"""Namespaces of the table, the dearest; `--json` has all."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Tokens of one scope: every definition listed; eager and own tools, and a search; the one tool of code mode."""

    scope: str
    tools: int
    full: int
    progressive: int
    search: int
    code_mode: int
    namespaces: dict[str, int]


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("tokens", help="count what the tools of documents cost a model's context")
    parser.add_argument("-c", "--config", metavar="FILE", help="gateway.yaml; documents are then judged by its rules")
    parser.add_argument("--json", action="store_true", help="the counts as JSON")
    parser.add_argument("documents", nargs="+", metavar="DOCUMENT", help="files or folders of arion-ctl documents")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the counts. Status 1 when a document would be refused: what it holds is not counted then."""
    world = offline.World() if chosen.config is None else check.world_of(judging.load(chosen.config))
    scopes: dict[tuple[str, str], Snapshot] = {}
    judged = offline.judge(check.files(chosen.documents), world, scopes)
    refused = [f"{one.where}: {problem}" for one in judged for problem in one.problems]
    costs = [_cost(scope, held) for (_, scope), held in sorted(scopes.items())]
    if chosen.json:
        exact = {"encoding": tokens.ENCODING, "exact": tokens.exact()}
        print(json.dumps({**exact, "scopes": [dataclasses.asdict(one) for one in costs]}, indent=2))
    else:
        _table(costs)
    for one in refused:
        print(f"refused: {one}", file=sys.stderr)
    return 1 if refused else 0


def _cost(scope: str, held: Snapshot) -> Cost:
    found: list[Tool] = [tool for space in held.namespaces.values() for tool in space.tools.values()]
    counts = tokens.count([tokens.text(tool) for tool in found])
    spaces: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for tool, count in zip(found, counts, strict=True):
        spaces[tool.namespace] = spaces.get(tool.namespace, 0) + count
        sizes[tool.namespace] = sizes.get(tool.namespace, 0) + 1
    eager = sum(count for tool, count in zip(found, counts, strict=True) if tool.eager)
    own = _definitions([json.loads(one) for one in disclosure.definitions(disclosure.DEFAULT_CAP).values()])
    text = guide.description(limits.of(CodeMode()), dict(sorted(sizes.items())), held.toolkits)
    execute = {"name": "execute", "description": text, "inputSchema": guide.input_schema()}
    return Cost(
        scope=scope,
        tools=len(found),
        full=sum(counts),
        progressive=own + eager,
        search=round(min(DEFAULT_FOUND_TOOLS, len(found)) * sum(counts) / max(len(found), 1)),
        code_mode=_definitions([execute]),
        namespaces=dict(sorted(spaces.items(), key=lambda item: (-item[1], item[0]))),
    )


def _definitions(values: Sequence[dict[str, Any]]) -> int:
    return sum(
        tokens.count(
            [
                f"{one['name']}\n{one['description']}\n{json.dumps(one['inputSchema'], separators=(',', ':'))}"
                for one in values
            ]
        )
    )


def _table(costs: Sequence[Cost]) -> None:
    for cost in costs:
        print(f"{cost.scope}: {cost.tools} tools")
        _line("every tool listed", cost.full, cost)
        _line("progressive disclosure", cost.progressive, cost)
        _line(f"  and a search of {min(DEFAULT_FOUND_TOOLS, cost.tools)}", cost.progressive + cost.search, cost)
        _line("code mode", cost.code_mode, cost)
        for name, count in list(cost.namespaces.items())[:SHOWN]:
            print(f"    {name:<30}{count:>12,}")
        if len(cost.namespaces) > SHOWN:
            print(f"    and {len(cost.namespaces) - SHOWN} more namespaces (--json shows all)")
    how = "exact" if tokens.exact() else "estimated: install arion-tds[tokens] for exact counts"
    print(f"tokens of {tokens.ENCODING}, {how}; the tools of MCP servers are not known here", file=sys.stderr)


def _line(title: str, count: int, cost: Cost) -> None:
    saved = "" if count >= cost.full else f"{100 * (1 - count / cost.full):7.1f} % saved"
    print(f"  {title:<32}{count:>12,}{saved}")
