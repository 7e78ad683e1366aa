"""What a model reads about `execute`: how to write a program, and what there is to call. Pure.

In: limits, visible namespaces with their counts, toolkits. Out: the tool's description. Called by executing whenever
one of them has changed. It is paid for in every conversation, so it is short, and every list in it is cut to a budget.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from arion_tds.codemode.limits import Limits, size
from arion_tds.model.toolkit import Toolkit

NAMESPACES: Final = 1500
"""Characters that the list of namespaces may take."""

TOOLKITS: Final = 4000
"""Characters that all toolkits may take together, instructions included."""

_LEAST: Final = 80
"""Characters of instructions that every toolkit may have, so that none is only a name."""

CODE: Final = "TypeScript: the body of an async function. End it with `return value`, or with an expression."
"""The description of the argument `code`."""

_LINES: Final = (
    "Run a TypeScript program that calls tools. You get the value of its `return` or last expression, and its console.",
    "It is the body of an async function: `await` works everywhere; there are no imports, no network, no files.",
    'Find: `await catalog.tools.search("what to do", {{namespace?, limit?}})` → '
    "{{tools: [{{name, description, signature?}}], total}}",
    "Read: `await catalog.tools.describe(name)` → {{name, description, signature, inputSchema, outputSchema?}}",
    "Also: `catalog.namespaces()`, `catalog.tools.list({{namespace?, limit?, cursor?}})`, `catalog.toolkits.list()`, "
    "`catalog.toolkits.get(name)`",
    "Call: `await tools.<namespace>.<name>(args)` or `tools.call(name, args)` → the data itself. A failure throws an "
    "Error with code, message, retryable, status.",
    'Example: `const {{tools: [first]}} = await catalog.tools.search("weather"); const all = await '
    'Promise.all(["Oslo", "Lima"].map(city => tools.call(first.name, {{city}}))); return all`',
    "Return little: filter and join in the program. Limits: {timeout:g} s, {calls} host calls ({parallel} at a time), "
    "{output} of output, {memory} of memory.",
    "Namespaces (tools): {namespaces}",
)


def description(limits: Limits, namespaces: Mapping[str, int], toolkits: Mapping[str, Toolkit]) -> str:
    """The description of `execute` for a caller who sees these namespaces."""
    text = "\n".join(_LINES).format(
        timeout=limits.execution_timeout,
        calls=limits.max_host_calls,
        parallel=limits.max_concurrent_tool_calls,
        output=size(limits.max_output_bytes),
        memory=size(limits.memory_limit_bytes),
        namespaces=_namespaces(namespaces),
    )
    return f"{text}\n{_toolkits(toolkits)}" if toolkits else text


def input_schema() -> dict[str, object]:
    """The input schema of `execute`."""
    return {
        "type": "object",
        "properties": {"code": {"type": "string", "description": CODE}},
        "required": ["code"],
        "additionalProperties": False,
    }


def _namespaces(counts: Mapping[str, int]) -> str:
    parts: list[str] = []
    room = NAMESPACES
    for name in sorted(counts):
        part = f"{name if re.fullmatch(r'[A-Za-z0-9_$.-]+', name) else json.dumps(name)} ({counts[name]})"
        room -= len(part) + 2
        if room < 0:
            parts.append(f"and {len(counts) - len(parts)} more: see catalog.namespaces()")
            break
        parts.append(part)
    return ", ".join(parts) or "none yet"


def _toolkits(kits: Mapping[str, Toolkit]) -> str:
    lines = ["Toolkits, sets of tools for one job; `catalog.toolkits.get(name)` has the whole text and the signatures:"]
    share = max(_LEAST, TOOLKITS // len(kits))
    room = TOOLKITS
    for position, name in enumerate(sorted(kits)):
        line = _cut(f"- {name}: {_flat(kits[name].description)} {_flat(kits[name].instructions)}".rstrip(), share)
        room -= len(line)
        if room < 0:
            lines.append(f"- and {len(kits) - position} more: see catalog.toolkits.list()")
            break
        lines.append(line)
    return "\n".join(lines)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
