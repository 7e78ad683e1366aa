"""`arion-tds openapi FILE`: what a document becomes, before it is pushed: tools, warnings, skipped operations."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

from arion_tds.model.problem import Problem
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.openapi.binding import Binding
from arion_tds.openapi.expand import expand
from arion_tds.openapi.job import Expansion
from arion_tds.openapi.limits import Limits


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("openapi", help="show the tools that an OpenAPI document becomes")
    parser.add_argument("file", metavar="FILE", help="JSON or YAML; - reads standard input")
    parser.add_argument("--namespace", default="api", help="namespace of the tools (default: api)")
    parser.add_argument("--path-prefix", default=None, help="replaces the path of the document's first server")
    parser.add_argument("--include", action="append", default=[], metavar="OPERATION", help="only these; repeatable")
    parser.add_argument("--exclude", action="append", default=[], metavar="OPERATION", help="not these; repeatable")
    parser.add_argument("--skip-unsupported", action="store_true", help="leave out what is not supported")
    parser.add_argument("--output", choices=("loose", "strict", "off"), default="loose", help="response schemas")
    parser.add_argument("--json", action="store_true", help='{"tools": […], "skipped": […], "warnings": […]}')
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the expansion. Status 1 when the document would be refused."""
    try:
        text = sys.stdin.buffer.read() if chosen.file == "-" else pathlib.Path(chosen.file).read_bytes()
    except OSError as error:
        print(f"{chosen.file}: {error.strerror or error}", file=sys.stderr)
        return 1
    source = OpenApiSource(
        namespace=chosen.namespace,
        document=text,
        cluster="cluster",
        path_prefix=chosen.path_prefix,
        skip_unsupported=chosen.skip_unsupported,
        include=tuple(chosen.include),
        exclude=tuple(chosen.exclude),
    )
    expansion = expand(source, Limits(), chosen.output)
    if chosen.json:
        print(json.dumps(_values(expansion), indent=2, ensure_ascii=False))
    else:
        _table(expansion)
    for problem in expansion.problems:
        print(f"refused: {problem}", file=sys.stderr)
    return 1 if expansion.problems else 0


def _values(expansion: Expansion) -> dict[str, Any]:
    found: dict[str, Any] = {
        "tools": [_tool(tool) for tool in expansion.tools],
        "skipped": [_problem(one) for one in expansion.skipped],
        "warnings": [_problem(one) for one in expansion.warnings],
    }
    if expansion.problems:
        found["problems"] = [_problem(one) for one in expansion.problems]
    return found


def _tool(tool: Tool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": tool.qualified,
        "operation": _operation(tool),
        "description": tool.description,
        "inputSchema": tool.input_schema.value(),
    }
    if tool.output_schema is not None:
        shown["outputSchema"] = tool.output_schema.value()
    return shown


def _problem(one: Problem) -> dict[str, str]:
    return {"where": one.where, "why": one.why}


def _operation(tool: Tool) -> str:
    binding = getattr(tool.backend, "binding", None)
    if not isinstance(binding, Binding):
        return ""
    path = "".join(part if isinstance(part, str) else f"{{{part.argument}}}" for part in binding.path)
    return f"{binding.method} {path}"


def _table(expansion: Expansion) -> None:
    width = max((len(tool.qualified) for tool in expansion.tools), default=0)
    for tool in expansion.tools:
        arguments = tool.input_schema.value().get("properties", {})
        print(f"{tool.qualified:<{width}}  {_operation(tool)}  ({', '.join(arguments)})")
    for one in expansion.skipped:
        print(f"skipped: {one}")
    for one in expansion.warnings:
        print(f"warning: {one}")
    counts = f"{len(expansion.tools)} tools, {len(expansion.skipped)} skipped, {len(expansion.warnings)} warnings"
    print(counts, file=sys.stderr)
