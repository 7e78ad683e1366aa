"""Every message of proto/ once more, for betterproto2: by hand from the .proto file, on envoy_data_plane's classes.

What protoc made of that file and what stands here know nothing of each other. `ALL`: message name → class. Used by
test_encoders.
"""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import sys
import warnings
from typing import Any, Final

import betterproto2 as wire
from betterproto2 import TYPE_ENUM as ENUM
from betterproto2 import TYPE_FLOAT as FLOAT
from betterproto2 import TYPE_MESSAGE as MESSAGE
from betterproto2 import TYPE_STRING as STRING
from betterproto2 import TYPE_UINT32 as UINT32
from betterproto2 import TYPE_UINT64 as UINT64

with warnings.catch_warnings():
    # The generated classes use a pydantic spelling that newer versions of pydantic warn about.
    warnings.simplefilter("ignore")
    from envoy_data_plane.envoy.config.core.v3 import DataSource
    from envoy_data_plane.envoy.config.route.v3 import RetryPolicy
    from envoy_data_plane.google.protobuf import Duration

message = dataclasses.dataclass(eq=False, repr=False)


def one(number: int, kind: str, group: str | None = None) -> Any:
    """A field that can be absent: a message, an `optional`, or one of a oneof (`group`)."""
    return wire.field(number, kind, optional=True, group=group)


def many(number: int, kind: str) -> Any:
    """A repeated field."""
    return wire.field(number, kind, repeated=True)


def span(number: int) -> Any:
    """A google.protobuf.Duration as a timedelta."""
    return wire.field(number, MESSAGE, unwrap=lambda: Duration, optional=True)


class DisclosureMode(wire.Enum):
    PROGRESSIVE = 0
    EAGER = 1


class Transport(wire.Enum):
    SSE = 0
    STREAMABLE_HTTP = 1


class Action(wire.Enum):
    ALLOW = 0
    DENY = 1


@message
class ServerInfo(wire.Message):
    name: str = wire.field(1, STRING)
    version: str = wire.field(2, STRING)


@message
class TdsSpecifier(wire.Message):
    config_name: str = wire.field(1, STRING)


@message
class ToolsMode(wire.Message):
    pass


@message
class FunctionGraphBackend(wire.Message):
    pass


@message
class QueryParam(wire.Message):
    name: str = wire.field(1, STRING)
    source: str = wire.field(2, STRING)


@message
class HttpUpstreamPolicy(wire.Message):
    authority: str | None = one(1, STRING)
    timeout: datetime.timedelta | None = span(2)
    retry_policy: RetryPolicy | None = one(3, MESSAGE)


@message
class RestBackend(wire.Message):
    method: str = wire.field(1, STRING)
    path: str = wire.field(2, STRING)
    query_params: list[QueryParam] = many(3, MESSAGE)
    cluster: str = wire.field(4, STRING)
    body_template: DataSource | None = one(5, MESSAGE, "body")
    upstream_policy: HttpUpstreamPolicy | None = one(6, MESSAGE)
    body_json: str | None = one(7, STRING, "body")


@message
class McpServerBackend(wire.Message):
    transport: Transport = wire.field(1, ENUM, default_factory=lambda: Transport(0))
    url: str = wire.field(2, STRING)


@message
class JwtHeaderMatcher(wire.Message):
    field: str = wire.field(1, STRING)
    value: str = wire.field(2, STRING)


@message
class JwtClaimMatcher(wire.Message):
    field: str = wire.field(1, STRING)
    value: str = wire.field(2, STRING)


@message
class Permission(wire.Message):
    jwt_header: JwtHeaderMatcher | None = one(1, MESSAGE, "permission_type")
    jwt_claim: JwtClaimMatcher | None = one(2, MESSAGE, "permission_type")


@message
class ToolRbac(wire.Message):
    action: Action = wire.field(1, ENUM, default_factory=lambda: Action(0))
    permissions: list[Permission] = many(2, MESSAGE)


@message
class Tool(wire.Message):
    namespace: str = wire.field(1, STRING)
    name: str = wire.field(2, STRING)
    description: str = wire.field(3, STRING)
    input_schema: DataSource | None = one(4, MESSAGE)
    output_schema: DataSource | None = one(5, MESSAGE)
    rest_backend: RestBackend | None = one(6, MESSAGE, "upstream_backend")
    function_graph_backend: FunctionGraphBackend | None = one(7, MESSAGE, "upstream_backend")
    mcp_server_backend: McpServerBackend | None = one(8, MESSAGE, "upstream_backend")
    rbac: ToolRbac | None = one(9, MESSAGE)
    embedding: list[float] = many(10, FLOAT)
    disclosure_mode: DisclosureMode = wire.field(11, ENUM, default_factory=lambda: DisclosureMode(0))


@message
class DynamicMcpServer(wire.Message):
    namespace: str = wire.field(1, STRING)
    description: str = wire.field(2, STRING)
    transport: Transport = wire.field(3, ENUM, default_factory=lambda: Transport(0))
    url: str = wire.field(4, STRING)
    cache_duration: datetime.timedelta | None = span(5)
    rbac: ToolRbac | None = one(6, MESSAGE)
    tool_disclosure_mode: DisclosureMode = wire.field(7, ENUM, default_factory=lambda: DisclosureMode(0))


@message
class OpenApiToolSource(wire.Message):
    spec: DataSource | None = one(1, MESSAGE)
    namespace: str = wire.field(2, STRING)
    cluster: str = wire.field(3, STRING)
    upstream_policy: HttpUpstreamPolicy | None = one(4, MESSAGE)
    rbac: ToolRbac | None = one(5, MESSAGE)
    tool_disclosure_mode: DisclosureMode = wire.field(6, ENUM, default_factory=lambda: DisclosureMode(0))
    path_prefix: str | None = one(7, STRING)
    skip_unsupported_operations: bool = wire.field(8, wire.TYPE_BOOL)
    include_operations: list[str] = many(9, STRING)
    exclude_operations: list[str] = many(10, STRING)


@message
class ToolkitToolRef(wire.Message):
    namespace: str = wire.field(1, STRING)
    name: str = wire.field(2, STRING)


@message
class Toolkit(wire.Message):
    name: str = wire.field(1, STRING)
    description: str = wire.field(2, STRING)
    instructions: str = wire.field(3, STRING)
    tools: list[ToolkitToolRef] = many(4, MESSAGE)


@message
class RemoteEmbeddings(wire.Message):
    cluster: str = wire.field(1, STRING)
    model_id: str = wire.field(2, STRING)
    path: str = wire.field(3, STRING)
    timeout: datetime.timedelta | None = span(4)
    dimensions: int = wire.field(5, UINT32)
    max_batch_size: int | None = one(6, UINT32)


@message
class ToolSearch(wire.Message):
    max_allowable_results: int | None = one(1, UINT32)
    embeddings: RemoteEmbeddings | None = one(2, MESSAGE)


@message
class CodeMode(wire.Message):
    execution_timeout: datetime.timedelta | None = span(1)
    max_host_calls: int = wire.field(2, UINT32)
    max_concurrent_executions: int = wire.field(3, UINT32)
    max_output_bytes: int = wire.field(4, UINT64)
    memory_limit_bytes: int = wire.field(5, UINT64)
    engine_artifact_path: str | None = one(6, STRING)
    toolkits: list[Toolkit] = many(7, MESSAGE)
    max_concurrent_tool_calls: int = wire.field(8, UINT32)


@message
class McpGateway(wire.Message):
    server_info: ServerInfo | None = one(1, MESSAGE)
    tools: list[Tool] = many(2, MESSAGE)
    search: ToolSearch | None = one(3, MESSAGE)
    tds: TdsSpecifier | None = one(4, MESSAGE)
    dynamic_mcp_servers: list[DynamicMcpServer] = many(5, MESSAGE)
    upstream_timeout: datetime.timedelta | None = span(6)
    max_upstream_response_bytes: int | None = one(7, UINT64)
    tools_mode: ToolsMode | None = one(8, MESSAGE, "mode")
    code_mode: CodeMode | None = one(9, MESSAGE, "mode")
    open_api_tool_sources: list[OpenApiToolSource] = many(10, MESSAGE)


ALL: Final[dict[str, type[wire.Message]]] = {
    name: found
    for name, found in inspect.getmembers(sys.modules[__name__], inspect.isclass)
    if issubclass(found, wire.Message) and found.__module__ == __name__
}
