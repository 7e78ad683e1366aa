import datetime

from envoy.config.core.v3 import base_pb2 as _base_pb2
from envoy.config.route.v3 import route_components_pb2 as _route_components_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DisclosureMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROGRESSIVE: _ClassVar[DisclosureMode]
    EAGER: _ClassVar[DisclosureMode]
PROGRESSIVE: DisclosureMode
EAGER: DisclosureMode

class McpGateway(_message.Message):
    __slots__ = ("server_info", "tools", "search", "tds", "dynamic_mcp_servers", "upstream_timeout", "max_upstream_response_bytes", "tools_mode", "code_mode", "open_api_tool_sources")
    SERVER_INFO_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    SEARCH_FIELD_NUMBER: _ClassVar[int]
    TDS_FIELD_NUMBER: _ClassVar[int]
    DYNAMIC_MCP_SERVERS_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    MAX_UPSTREAM_RESPONSE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_MODE_FIELD_NUMBER: _ClassVar[int]
    CODE_MODE_FIELD_NUMBER: _ClassVar[int]
    OPEN_API_TOOL_SOURCES_FIELD_NUMBER: _ClassVar[int]
    server_info: ServerInfo
    tools: _containers.RepeatedCompositeFieldContainer[Tool]
    search: ToolSearch
    tds: TdsSpecifier
    dynamic_mcp_servers: _containers.RepeatedCompositeFieldContainer[DynamicMcpServer]
    upstream_timeout: _duration_pb2.Duration
    max_upstream_response_bytes: int
    tools_mode: ToolsMode
    code_mode: CodeMode
    open_api_tool_sources: _containers.RepeatedCompositeFieldContainer[OpenApiToolSource]
    def __init__(self, server_info: _Optional[_Union[ServerInfo, _Mapping]] = ..., tools: _Optional[_Iterable[_Union[Tool, _Mapping]]] = ..., search: _Optional[_Union[ToolSearch, _Mapping]] = ..., tds: _Optional[_Union[TdsSpecifier, _Mapping]] = ..., dynamic_mcp_servers: _Optional[_Iterable[_Union[DynamicMcpServer, _Mapping]]] = ..., upstream_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_upstream_response_bytes: _Optional[int] = ..., tools_mode: _Optional[_Union[ToolsMode, _Mapping]] = ..., code_mode: _Optional[_Union[CodeMode, _Mapping]] = ..., open_api_tool_sources: _Optional[_Iterable[_Union[OpenApiToolSource, _Mapping]]] = ...) -> None: ...

class ServerInfo(_message.Message):
    __slots__ = ("name", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class TdsSpecifier(_message.Message):
    __slots__ = ("config_name",)
    CONFIG_NAME_FIELD_NUMBER: _ClassVar[int]
    config_name: str
    def __init__(self, config_name: _Optional[str] = ...) -> None: ...

class ToolsMode(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CodeMode(_message.Message):
    __slots__ = ("execution_timeout", "max_host_calls", "max_concurrent_executions", "max_output_bytes", "memory_limit_bytes", "engine_artifact_path", "toolkits", "max_concurrent_tool_calls")
    EXECUTION_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    MAX_HOST_CALLS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_EXECUTIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ENGINE_ARTIFACT_PATH_FIELD_NUMBER: _ClassVar[int]
    TOOLKITS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    execution_timeout: _duration_pb2.Duration
    max_host_calls: int
    max_concurrent_executions: int
    max_output_bytes: int
    memory_limit_bytes: int
    engine_artifact_path: str
    toolkits: _containers.RepeatedCompositeFieldContainer[Toolkit]
    max_concurrent_tool_calls: int
    def __init__(self, execution_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_host_calls: _Optional[int] = ..., max_concurrent_executions: _Optional[int] = ..., max_output_bytes: _Optional[int] = ..., memory_limit_bytes: _Optional[int] = ..., engine_artifact_path: _Optional[str] = ..., toolkits: _Optional[_Iterable[_Union[Toolkit, _Mapping]]] = ..., max_concurrent_tool_calls: _Optional[int] = ...) -> None: ...

class Tool(_message.Message):
    __slots__ = ("namespace", "name", "description", "input_schema", "output_schema", "rest_backend", "function_graph_backend", "mcp_server_backend", "rbac", "embedding", "disclosure_mode")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    INPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    REST_BACKEND_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_GRAPH_BACKEND_FIELD_NUMBER: _ClassVar[int]
    MCP_SERVER_BACKEND_FIELD_NUMBER: _ClassVar[int]
    RBAC_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    DISCLOSURE_MODE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    description: str
    input_schema: _base_pb2.DataSource
    output_schema: _base_pb2.DataSource
    rest_backend: RestBackend
    function_graph_backend: FunctionGraphBackend
    mcp_server_backend: McpServerBackend
    rbac: ToolRbac
    embedding: _containers.RepeatedScalarFieldContainer[float]
    disclosure_mode: DisclosureMode
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., description: _Optional[str] = ..., input_schema: _Optional[_Union[_base_pb2.DataSource, _Mapping]] = ..., output_schema: _Optional[_Union[_base_pb2.DataSource, _Mapping]] = ..., rest_backend: _Optional[_Union[RestBackend, _Mapping]] = ..., function_graph_backend: _Optional[_Union[FunctionGraphBackend, _Mapping]] = ..., mcp_server_backend: _Optional[_Union[McpServerBackend, _Mapping]] = ..., rbac: _Optional[_Union[ToolRbac, _Mapping]] = ..., embedding: _Optional[_Iterable[float]] = ..., disclosure_mode: _Optional[_Union[DisclosureMode, str]] = ...) -> None: ...

class RestBackend(_message.Message):
    __slots__ = ("method", "path", "query_params", "cluster", "body_template", "body_json", "upstream_policy")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    QUERY_PARAMS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    BODY_TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    BODY_JSON_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_POLICY_FIELD_NUMBER: _ClassVar[int]
    method: str
    path: str
    query_params: _containers.RepeatedCompositeFieldContainer[QueryParam]
    cluster: str
    body_template: _base_pb2.DataSource
    body_json: str
    upstream_policy: HttpUpstreamPolicy
    def __init__(self, method: _Optional[str] = ..., path: _Optional[str] = ..., query_params: _Optional[_Iterable[_Union[QueryParam, _Mapping]]] = ..., cluster: _Optional[str] = ..., body_template: _Optional[_Union[_base_pb2.DataSource, _Mapping]] = ..., body_json: _Optional[str] = ..., upstream_policy: _Optional[_Union[HttpUpstreamPolicy, _Mapping]] = ...) -> None: ...

class QueryParam(_message.Message):
    __slots__ = ("name", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    source: str
    def __init__(self, name: _Optional[str] = ..., source: _Optional[str] = ...) -> None: ...

class HttpUpstreamPolicy(_message.Message):
    __slots__ = ("authority", "timeout", "retry_policy")
    AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    authority: str
    timeout: _duration_pb2.Duration
    retry_policy: _route_components_pb2.RetryPolicy
    def __init__(self, authority: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., retry_policy: _Optional[_Union[_route_components_pb2.RetryPolicy, _Mapping]] = ...) -> None: ...

class FunctionGraphBackend(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class McpServerBackend(_message.Message):
    __slots__ = ("transport", "url")
    class TransportUpstream(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        Sse: _ClassVar[McpServerBackend.TransportUpstream]
        StreamableHttp: _ClassVar[McpServerBackend.TransportUpstream]
    Sse: McpServerBackend.TransportUpstream
    StreamableHttp: McpServerBackend.TransportUpstream
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    transport: McpServerBackend.TransportUpstream
    url: str
    def __init__(self, transport: _Optional[_Union[McpServerBackend.TransportUpstream, str]] = ..., url: _Optional[str] = ...) -> None: ...

class DynamicMcpServer(_message.Message):
    __slots__ = ("namespace", "description", "transport", "url", "cache_duration", "rbac", "tool_disclosure_mode")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    CACHE_DURATION_FIELD_NUMBER: _ClassVar[int]
    RBAC_FIELD_NUMBER: _ClassVar[int]
    TOOL_DISCLOSURE_MODE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    description: str
    transport: McpServerBackend.TransportUpstream
    url: str
    cache_duration: _duration_pb2.Duration
    rbac: ToolRbac
    tool_disclosure_mode: DisclosureMode
    def __init__(self, namespace: _Optional[str] = ..., description: _Optional[str] = ..., transport: _Optional[_Union[McpServerBackend.TransportUpstream, str]] = ..., url: _Optional[str] = ..., cache_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., rbac: _Optional[_Union[ToolRbac, _Mapping]] = ..., tool_disclosure_mode: _Optional[_Union[DisclosureMode, str]] = ...) -> None: ...

class OpenApiToolSource(_message.Message):
    __slots__ = ("spec", "namespace", "cluster", "upstream_policy", "rbac", "tool_disclosure_mode", "path_prefix", "skip_unsupported_operations", "include_operations", "exclude_operations")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_POLICY_FIELD_NUMBER: _ClassVar[int]
    RBAC_FIELD_NUMBER: _ClassVar[int]
    TOOL_DISCLOSURE_MODE_FIELD_NUMBER: _ClassVar[int]
    PATH_PREFIX_FIELD_NUMBER: _ClassVar[int]
    SKIP_UNSUPPORTED_OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    spec: _base_pb2.DataSource
    namespace: str
    cluster: str
    upstream_policy: HttpUpstreamPolicy
    rbac: ToolRbac
    tool_disclosure_mode: DisclosureMode
    path_prefix: str
    skip_unsupported_operations: bool
    include_operations: _containers.RepeatedScalarFieldContainer[str]
    exclude_operations: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, spec: _Optional[_Union[_base_pb2.DataSource, _Mapping]] = ..., namespace: _Optional[str] = ..., cluster: _Optional[str] = ..., upstream_policy: _Optional[_Union[HttpUpstreamPolicy, _Mapping]] = ..., rbac: _Optional[_Union[ToolRbac, _Mapping]] = ..., tool_disclosure_mode: _Optional[_Union[DisclosureMode, str]] = ..., path_prefix: _Optional[str] = ..., skip_unsupported_operations: _Optional[bool] = ..., include_operations: _Optional[_Iterable[str]] = ..., exclude_operations: _Optional[_Iterable[str]] = ...) -> None: ...

class ToolRbac(_message.Message):
    __slots__ = ("action", "permissions")
    class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ALLOW: _ClassVar[ToolRbac.Action]
        DENY: _ClassVar[ToolRbac.Action]
    ALLOW: ToolRbac.Action
    DENY: ToolRbac.Action
    ACTION_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    action: ToolRbac.Action
    permissions: _containers.RepeatedCompositeFieldContainer[Permission]
    def __init__(self, action: _Optional[_Union[ToolRbac.Action, str]] = ..., permissions: _Optional[_Iterable[_Union[Permission, _Mapping]]] = ...) -> None: ...

class Permission(_message.Message):
    __slots__ = ("jwt_header", "jwt_claim")
    JWT_HEADER_FIELD_NUMBER: _ClassVar[int]
    JWT_CLAIM_FIELD_NUMBER: _ClassVar[int]
    jwt_header: JwtHeaderMatcher
    jwt_claim: JwtClaimMatcher
    def __init__(self, jwt_header: _Optional[_Union[JwtHeaderMatcher, _Mapping]] = ..., jwt_claim: _Optional[_Union[JwtClaimMatcher, _Mapping]] = ...) -> None: ...

class JwtHeaderMatcher(_message.Message):
    __slots__ = ("field", "value")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    field: str
    value: str
    def __init__(self, field: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class JwtClaimMatcher(_message.Message):
    __slots__ = ("field", "value")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    field: str
    value: str
    def __init__(self, field: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class ToolSearch(_message.Message):
    __slots__ = ("max_allowable_results", "embeddings")
    MAX_ALLOWABLE_RESULTS_FIELD_NUMBER: _ClassVar[int]
    EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    max_allowable_results: int
    embeddings: RemoteEmbeddings
    def __init__(self, max_allowable_results: _Optional[int] = ..., embeddings: _Optional[_Union[RemoteEmbeddings, _Mapping]] = ...) -> None: ...

class RemoteEmbeddings(_message.Message):
    __slots__ = ("cluster", "model_id", "path", "timeout", "dimensions", "max_batch_size")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    model_id: str
    path: str
    timeout: _duration_pb2.Duration
    dimensions: int
    max_batch_size: int
    def __init__(self, cluster: _Optional[str] = ..., model_id: _Optional[str] = ..., path: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., dimensions: _Optional[int] = ..., max_batch_size: _Optional[int] = ...) -> None: ...

class Toolkit(_message.Message):
    __slots__ = ("name", "description", "instructions", "tools")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    instructions: str
    tools: _containers.RepeatedCompositeFieldContainer[ToolkitToolRef]
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., instructions: _Optional[str] = ..., tools: _Optional[_Iterable[_Union[ToolkitToolRef, _Mapping]]] = ...) -> None: ...

class ToolkitToolRef(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...
