"""Control-plane documents judged as the gateway will judge them, without a gateway: decode, expand, own, collide.

In: the text of arion-ctl documents. Out: one `Judged` per document. Called by `arion-tds check` and
`arion-tds tokens`. MCP servers are not asked: their URL and rules are judged, their tools are not known here.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import yaml

from arion_tds.decode import document as documents
from arion_tds.decode import table
from arion_tds.decode.document import Document
from arion_tds.decode.rules import INLINE_ONLY, DataRules
from arion_tds.errors import one_line
from arion_tds.model.backend import JsonBody, OperationBackend, RestBackend
from arion_tds.model.change import Change, PutServer, PutSource, PutTool, PutToolkit
from arion_tds.model.names import Naming
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.openapi.expand import expand
from arion_tds.openapi.limits import Limits, Output
from arion_tds.registry.reduce import Rules, reduce
from arion_tds.registry.snapshot import EMPTY, Snapshot

_PLAIN: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "title", "description", "$schema", "$defs", "examples"}
)
"""Members of a schema whose properties are all that it knows of."""


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """One document: where it stands (file and position), what it is, why it would be refused, what to warn about."""

    where: str
    name: str
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tools: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the documents will meet: the config's rules, or the defaults. None: not known, not judged."""

    rules: DataRules = INLINE_ONLY
    limits: Limits = dataclasses.field(default_factory=Limits)
    output: Output = "loose"
    naming: dict[str, Naming] = dataclasses.field(default_factory=dict)
    code_mode: frozenset[str] = frozenset()
    clusters: frozenset[str] | None = None
    scopes: frozenset[str] | None = None
    fleet: str | None = None


def judge(
    files: Iterable[pathlib.Path], world: World, scopes: dict[tuple[str, str], Snapshot] | None = None
) -> list[Judged]:
    """Judge every document of the files together, in order, as one push to an empty gateway.

    `scopes`, if given, then holds what is served, by fleet and scope.
    """
    found: list[Judged] = []
    scopes = {} if scopes is None else scopes
    for path in files:
        parsed = _documents(path)
        if isinstance(parsed, str):
            found.append(Judged(str(path), "", (parsed,)))
            continue
        for position, envelope in enumerate(parsed):
            where = f"{path}[{position}]" if len(parsed) > 1 else str(path)
            document, problems = documents.document(envelope)
            if document is None:
                found.append(Judged(where, "", tuple(map(str, problems))))
            else:
                found.append(_judge(where, document, world, scopes))
    return found


def _documents(path: pathlib.Path) -> Sequence[Any] | str:
    try:
        text = path.read_bytes()
        parsed = [json.loads(text)] if path.suffix == ".json" else list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    except OSError as error:
        return error.strerror or str(error)
    except (ValueError, yaml.YAMLError) as error:
        return f"cannot be read: {one_line(error)}"
    whole = parsed[0] if len(parsed) == 1 and isinstance(parsed[0], list) else parsed
    return [one for one in whole if one is not None] or "holds no document"


def _judge(where: str, document: Document, world: World, scopes: dict[tuple[str, str], Snapshot]) -> Judged:
    name = f"{document.kind.short} {document.id}"
    decoded = table.decode(document.kind, document.id, document.payload, world.rules)
    if decoded.value is None:
        why = decoded.problem.why if decoded.problem is not None else "cannot be decoded"
        return Judged(where, name, (why,), decoded.warnings)
    change, problems, warnings = _change(decoded.value, world)
    warnings = [*decoded.warnings, *warnings, *_elsewhere(document, world)]
    if change is None:
        return Judged(where, name, tuple(problems), tuple(warnings))
    scope = document.id.scope
    rules = Rules(naming=world.naming.get(scope, Naming.QUALIFIED), code_mode=scope in world.code_mode)
    outcome = reduce(scopes.get((document.fleet, scope), EMPTY), [change], rules)
    scopes[document.fleet, scope] = outcome.snapshot
    (verdict,) = outcome.verdicts
    warnings += verdict.warnings
    if verdict.problem is not None:
        return Judged(where, name, (verdict.problem.why,), tuple(warnings))
    tools = change.tools if isinstance(change, PutSource) else (change.tool,) if isinstance(change, PutTool) else ()
    for tool in tools:
        warnings += _unknown_arguments(tool)
    return Judged(where, name, (), (*warnings, *_unknown_clusters(tools, world)), len(tools))


def _change(value: table.Value, world: World) -> tuple[Change | None, list[str], list[str]]:
    if isinstance(value, Tool):
        return PutTool(value), [], []
    if isinstance(value, McpServer):
        return PutServer(value, ()), [], ["its tools are known only once it is asked"]
    if not isinstance(value, OpenApiSource):
        return PutToolkit(value), [], []
    expansion = expand(value, world.limits, world.output)
    if expansion.problems:
        return None, [str(one) for one in expansion.problems], []
    left_out = [f"skipped: {one}" for one in expansion.skipped] + [str(one) for one in expansion.warnings]
    return PutSource(value, expansion.tools), [], left_out


def _elsewhere(document: Document, world: World) -> list[str]:
    if world.fleet is not None and document.fleet != world.fleet:
        return [f"fleet {document.fleet!r} is not the config's node.cluster {world.fleet!r}: it has no effect there"]
    scope = document.id.scope
    if world.scopes is not None and scope not in world.scopes:
        there = ", ".join(map(repr, sorted(world.scopes)[:10])) or "none"
        return [f"no listener of the config serves {scope!r} (it has {there}): it has no effect there"]
    return []


def _unknown_arguments(tool: Tool) -> list[str]:
    """Of a REST tool: names that its schema, one with nothing but plain properties, does not have."""
    backend = tool.backend
    schema = json.loads(tool.input_schema.text) if isinstance(backend, RestBackend) else {}
    if not isinstance(backend, RestBackend) or "properties" not in schema or not schema.keys() <= _PLAIN:
        return []
    if not isinstance(schema.get("additionalProperties", False), bool):
        return []
    used = [("path", one.path) for one in backend.path.variables()]
    used += [("query_params", one.source) for one in backend.query]
    if isinstance(backend.body, JsonBody):
        used.append(("body_json", backend.body.source))
    elif backend.body is not None:
        used += [("body_template", one.path) for one in backend.body.variables()]
    return [
        f"rest_backend.{field} names {path[0]!r}, which is not a property of input_schema"
        for field, path in dict.fromkeys(used)
        if path[0] not in schema["properties"]
    ]


def _unknown_clusters(tools: Sequence[Tool], world: World) -> list[str]:
    if world.clusters is None:
        return []
    named = {tool.backend.cluster for tool in tools if isinstance(tool.backend, RestBackend | OperationBackend)}
    return [f"cluster {name!r} is not in the config: calls will fail" for name in sorted(named - world.clusters)]
