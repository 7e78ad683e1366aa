"""The Tool message to a Tool. The only decoder on a hot path: a control plane may push ten thousand at once."""

from __future__ import annotations

import math
import struct
import sys

from arion_tds.decode import backend as backends
from arion_tds.decode import schema
from arion_tds.decode.case import Case
from arion_tds.decode.rbac import rbac
from arion_tds.model import names
from arion_tds.model.backend import Backend, McpBackend
from arion_tds.model.tool import Tool
from arion_tds.pb import mcp_gateway_pb2 as pb
from arion_tds.schema import Schema


def split(message: pb.Tool, resource: str, case: Case) -> tuple[str, str]:
    """Namespace and name of a delivered tool; the resource name wins, the payload may only say where it splits.

    Two empty strings, with the reason in the Case, when the resource name has no two halves.
    """
    namespace, name = sys.intern(message.namespace), message.name
    if f"{namespace}.{name}" != resource:
        said = f"{namespace}.{name}"
        namespace, _, name = resource.partition(".")
        if namespace and name:
            case.warn("name", f"of the payload is {said!r}, not the resource name: {resource!r} is used")
    if not (namespace and name):
        case.refuse("name", f"{resource!r} is not namespace, dot and name")
        return "", ""
    return namespace, name


def tool(message: pb.Tool, namespace: str, name: str, resource: str, case: Case) -> Tool | None:
    """The tool of that namespace and name, or None with the reasons in the Case. `resource`: both, as it was named."""
    _name(f"{namespace}.{name}", case)
    description = case.required("description", message.description)
    inputs: Schema | None = schema.ANY_OBJECT
    if message.HasField("input_schema"):
        inputs = schema.input_schema(message.input_schema, "input_schema", case)
    outputs: Schema | None = None
    if message.HasField("output_schema"):
        outputs = schema.output_schema(message.output_schema, "output_schema", case)
    backend = _backend(message, name, case)
    rule = rbac(message.rbac, "rbac", case) if message.HasField("rbac") else None
    embedding = _embedding(message, case)
    eager = disclosed(message.disclosure_mode, "disclosure_mode", case)
    if case.problems or inputs is None or backend is None:
        return None
    return Tool(
        namespace=namespace,
        name=name,
        description=description,
        input_schema=inputs,
        backend=backend,
        output_schema=outputs,
        rbac=rule,
        embedding=embedding,
        eager=eager,
        qualified=resource,
    )


def disclosed(mode: int, field: str, case: Case) -> bool:
    """Whether the DisclosureMode is EAGER. An unknown mode counts as PROGRESSIVE, the default."""
    if mode not in {pb.PROGRESSIVE, pb.EAGER}:
        case.warn(field, f"is {mode}, which is unknown: PROGRESSIVE is used")
    return mode == pb.EAGER


def _name(qualified: str, case: Case) -> None:
    wrong = names.problem(qualified)
    if wrong is not None:
        case.refuse("name", f"cannot be served: {wrong}")
        return
    advice = names.advice(qualified)
    if advice is not None:
        case.warn("name", advice)


def _backend(message: pb.Tool, name: str, case: Case) -> Backend | None:
    match message.WhichOneof("upstream_backend"):
        case "rest_backend":
            return backends.rest(message.rest_backend, "rest_backend", case)
        case "mcp_server_backend":
            upstream = message.mcp_server_backend
            backends.transport(upstream.transport, "mcp_server_backend.transport", case)
            return McpBackend(backends.url(upstream.url, "mcp_server_backend.url", case), name)
        case "function_graph_backend":
            case.refuse("function_graph_backend", "is not supported: use rest_backend or mcp_server_backend")
        case _:
            case.refuse("upstream_backend", "is missing: set rest_backend or mcp_server_backend")
    return None


def _embedding(message: pb.Tool, case: Case) -> bytes | None:
    count = len(message.embedding)
    if not count:
        return None
    # Packed on the wire as it is kept here: copying the field into a message of its own and taking that one's bytes
    # costs a fiftieth of a Python list of numbers.
    alone = pb.Tool()
    alone.embedding.MergeFrom(message.embedding)
    packed = alone.SerializeToString()[-4 * count :]
    # The sum of 32-bit numbers is finite in 64 bits, unless one of them is not.
    if not math.isfinite(sum(struct.unpack(f"<{count}f", packed))):
        case.refuse("embedding", "holds a number that is not finite")
        return None
    if case.rules.dimensions is None:
        return None  # without embeddings nothing would ever read it
    if count != case.rules.dimensions:
        case.refuse("embedding", f"has {count} numbers: the gateway's embeddings have {case.rules.dimensions}")
        return None
    return packed
