"""A control-plane document (arion-ctl's envelope) to the resource that it would be delivered as.

In: one parsed YAML or JSON document. Out: kind, id, fleet and payload bytes, or every mistake with its path.
Called by the offline check, which then judges the payload with table.decode.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from google.protobuf.message import Message

from arion_tds.decode import protojson
from arion_tds.errors import meant
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.model.problem import Problem
from arion_tds.pb import mcp_gateway_pb2 as pb

API_VERSION: Final = "ctl.arion.io/v1alpha1"
DEFAULT_FLEET: Final = "arion"

_KINDS: Final[dict[str, tuple[Kind, type[Message]]]] = {
    "McpTool": (Kind.TOOL, pb.Tool),
    "McpOpenApiSource": (Kind.SOURCE, pb.OpenApiToolSource),
    "McpDynamicServer": (Kind.SERVER, pb.DynamicMcpServer),
    "McpToolkit": (Kind.TOOLKIT, pb.Toolkit),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """The resource of one document: delivered to every gateway of `fleet` that consumes the id's scope."""

    kind: Kind
    id: ResourceId
    fleet: str
    payload: bytes


def document(envelope: object, where: str = "") -> tuple[Document | None, list[Problem]]:
    """The document, or None with every problem; their paths go on from `where`."""
    problems: list[Problem] = []
    prefix = f"{where}." if where else ""
    if not isinstance(envelope, dict):
        return None, [Problem(where, "must be a mapping with apiVersion, kind, metadata and spec")]
    _unknown(envelope, {"apiVersion", "kind", "metadata", "spec"}, prefix, problems)
    if envelope.get("apiVersion") != API_VERSION:
        problems.append(Problem(f"{prefix}apiVersion", f"is {envelope.get('apiVersion')!r}: must be {API_VERSION!r}"))
    said = envelope.get("kind")
    known = _KINDS.get(said) if isinstance(said, str) else None
    if known is None:
        problems.append(Problem(f"{prefix}kind", f"is {said!r}: must be one of {', '.join(_KINDS)}"))
    named = _metadata(envelope.get("metadata"), f"{prefix}metadata", problems)
    if known is None:
        return None, problems
    kind, made = known
    message = made()
    protojson.fill(envelope.get("spec"), message, f"{prefix}spec", problems)
    if problems or named is None:
        return None, problems
    name, fleet = named
    return Document(kind, name, fleet, message.SerializeToString(deterministic=True)), []


def _unknown(block: dict[object, object], known: set[str], prefix: str, problems: list[Problem]) -> None:
    problems += [Problem(f"{prefix}{key}", f"unknown field{meant(key, known)}") for key in block if key not in known]


def _metadata(block: object, where: str, problems: list[Problem]) -> tuple[ResourceId, str] | None:
    if not isinstance(block, dict):
        problems.append(Problem(where, "must be a mapping with name (and fleet)"))
        return None
    _unknown(block, {"name", "fleet"}, f"{where}.", problems)
    fleet = block.get("fleet", DEFAULT_FLEET)
    if not isinstance(fleet, str) or not fleet:
        problems.append(Problem(f"{where}.fleet", f"is {fleet!r}: must be a text, {DEFAULT_FLEET!r} when left out"))
        return None
    name = block.get("name")
    parts = name.split("/", 2) if isinstance(name, str) else []
    if len(parts) < 3 or not all(parts):
        why = f"is {name!r}: must be a full resource ID, <server>/<config>/<name>, without an empty part"
        problems.append(Problem(f"{where}.name", why))
        return None
    return ResourceId(f"{parts[0]}/{parts[1]}", parts[2]), fleet
