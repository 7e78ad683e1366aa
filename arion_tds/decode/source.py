"""The OpenApiToolSource message to an OpenApiSource. The document itself is judged where it is expanded."""

from __future__ import annotations

from arion_tds.decode import datasource, policy
from arion_tds.decode.case import Case
from arion_tds.decode.rbac import rbac
from arion_tds.decode.tool import disclosed
from arion_tds.model import names
from arion_tds.model.policy import DEFAULT_POLICY
from arion_tds.model.source import OpenApiSource
from arion_tds.pb import mcp_gateway_pb2 as pb


def source(message: pb.OpenApiToolSource, namespace: str, case: Case) -> OpenApiSource | None:
    """The source of that namespace, or None with the reasons in the Case."""
    judge_namespace(namespace, case)
    document: bytes | None = None
    if message.HasField("spec"):
        document = datasource.data(message.spec, "spec", case)
    else:
        case.refuse("spec", "is missing: it is required")
    cluster = case.required("cluster", message.cluster)
    chosen = DEFAULT_POLICY
    if message.HasField("upstream_policy"):
        chosen = policy.http_policy(message.upstream_policy, "upstream_policy", case)
    rule = rbac(message.rbac, "rbac", case) if message.HasField("rbac") else None
    eager = disclosed(message.tool_disclosure_mode, "tool_disclosure_mode", case)
    for field, entries in (
        ("include_operations", message.include_operations),
        ("exclude_operations", message.exclude_operations),
    ):
        for at, entry in enumerate(entries):
            case.required(f"{field}[{at}]", entry)
    if case.problems or document is None:
        return None
    return OpenApiSource(
        namespace=namespace,
        document=document,
        cluster=cluster,
        policy=chosen,
        rbac=rule,
        eager=eager,
        path_prefix=message.path_prefix if message.HasField("path_prefix") else None,
        skip_unsupported=message.skip_unsupported_operations,
        include=tuple(message.include_operations),
        exclude=tuple(message.exclude_operations),
    )


def judge_namespace(namespace: str, case: Case) -> None:
    """Refuse a namespace under which no tool could have a valid name; warn of one that MCP advises against."""
    if not case.required("namespace", namespace):
        return
    wrong = names.problem(namespace)
    if wrong is not None:
        case.refuse("namespace", f"cannot be served: {wrong}")
        return
    advice = names.advice(namespace)
    if advice is not None:
        case.warn("namespace", advice)
