"""The DynamicMcpServer message to an McpServer."""

from __future__ import annotations

from arion_tds.decode import backend, policy
from arion_tds.decode.case import Case
from arion_tds.decode.rbac import rbac
from arion_tds.decode.source import judge_namespace
from arion_tds.decode.tool import disclosed
from arion_tds.model.server import McpServer
from arion_tds.pb import mcp_gateway_pb2 as pb


def server(message: pb.DynamicMcpServer, namespace: str, case: Case) -> McpServer | None:
    """The server of that namespace, or None with the reasons in the Case."""
    judge_namespace(namespace, case)
    backend.transport(message.transport, "transport", case)
    url = backend.url(message.url, "url", case)
    cache_duration: float | None = None
    if message.HasField("cache_duration"):
        cache_duration = policy.seconds(message.cache_duration, "cache_duration", case)
    rule = rbac(message.rbac, "rbac", case) if message.HasField("rbac") else None
    eager = disclosed(message.tool_disclosure_mode, "tool_disclosure_mode", case)
    if case.problems:
        return None
    return McpServer(
        namespace=namespace,
        description=message.description,
        url=url,
        cache_duration=cache_duration,
        rbac=rule,
        eager=eager,
    )
