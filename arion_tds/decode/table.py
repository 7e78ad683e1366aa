"""The entry for delivered resources: kind, id and payload bytes to a value, or to the problem that rejects it.

Called by ingest for each resource of a delivery, and by the offline check. Pure: what a DataSource reads comes in as
rules. A resource is judged whole: the problem names every mistake in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from google.protobuf.message import DecodeError

from arion_tds.decode.case import Case
from arion_tds.decode.rules import DataRules
from arion_tds.decode.server import server
from arion_tds.decode.source import source
from arion_tds.decode.tool import split, tool
from arion_tds.decode.toolkit import toolkit
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.model.problem import Problem
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit
from arion_tds.pb import mcp_gateway_pb2 as pb

Value = Tool | OpenApiSource | McpServer | Toolkit


@dataclasses.dataclass(frozen=True, slots=True)
class Decoded:
    """One resource's verdict: exactly one of `value` and `problem` is set. `problem.where` is the full resource id."""

    value: Value | None
    problem: Problem | None
    warnings: tuple[str, ...] = ()


def decode(kind: Kind, id: ResourceId, payload: bytes, rules: DataRules) -> Decoded:  # noqa: A002 - what xDS calls it
    """Judge one delivered resource."""
    case = Case(rules)
    value: Value | None = None
    try:
        value = _value(kind, id.name, payload, case)
    except DecodeError:
        # Not the library's own words: they hold a Python type and no reason.
        case.refuse("", f"cannot be decoded as {kind.short}")
    warnings = tuple(sentence(warning) for warning in case.warnings) if case.warnings else ()
    if value is not None:
        return Decoded(value, None, warnings)
    return Decoded(None, Problem(str(id), reasons(case.problems)), warnings)


def reasons(problems: Sequence[Problem]) -> str:
    """All of them as one sentence."""
    return "; ".join(map(sentence, problems))


def sentence(problem: Problem) -> str:
    """The finding about a field of one resource: the field begins what the reason completes."""
    return f"{problem.where} {problem.why}" if problem.where else problem.why


def _value(kind: Kind, name: str, payload: bytes, case: Case) -> Value | None:
    match kind:
        case Kind.TOOL:
            message = pb.Tool.FromString(payload)
            namespace, local = split(message, name, case)
            return tool(message, namespace, local, name, case)
        case Kind.SOURCE:
            delivered = pb.OpenApiToolSource.FromString(payload)
            _differs(delivered.namespace, name, case)
            return source(delivered, name, case)
        case Kind.SERVER:
            dynamic = pb.DynamicMcpServer.FromString(payload)
            _differs(dynamic.namespace, name, case)
            return server(dynamic, name, case)
        case Kind.TOOLKIT:
            kit = pb.Toolkit.FromString(payload)  # its name is not compared: the contract warns for the others only
            return toolkit(kit, name, case)
        case Kind.CLUSTER | Kind.ENDPOINTS:
            case.refuse("", "is no part of a catalog")
            return None


def _differs(said: str, name: str, case: Case) -> None:
    if said != name:
        case.warn("namespace", f"of the payload is {said!r}, not the resource name: {name!r} is used")
