"""One wire message of each type, written by hand from the contract: pins every field number and name."""

from __future__ import annotations

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message

from arion_tds.pb import mcp_gateway_pb2 as pb

RBAC = """
    08 01                                       # action: DENY
    12 08  0a 06 0a 01 66 12 01 76              # permissions: jwt_header {field: f, value: v}
    12 08  12 06 0a 01 67 12 01 77              # permissions: jwt_claim {field: g, value: w}
"""  # 22 bytes
RBAC_JSON = {
    "action": "DENY",
    "permissions": [
        {"jwt_header": {"field": "f", "value": "v"}},
        {"jwt_claim": {"field": "g", "value": "w"}},
    ],
}

TOOL = f"""
    0a 02 6e 73                                 # namespace: ns
    12 01 74                                    # name: t
    1a 01 64                                    # description: d
    22 04 1a 02 7b 7d                           # input_schema: inline_string
    2a 03 0a 01 70                              # output_schema: filename
    32 3f                                       # rest_backend, 63 bytes
      0a 03 47 45 54                            #   method: GET
      12 02 2f 78                               #   path: /x
      1a 06 0a 01 71 12 01 61                   #   query_params: name q, source a
      22 01 63                                  #   cluster: c
      2a 03 22 01 78                            #   body_template: environment_variable
      32 24                                     #   upstream_policy, 36 bytes
        0a 01 68                                #     authority: h
        12 02 08 01                             #     timeout: 1 s
        1a 1b                                   #     retry_policy, 27 bytes
          0a 03 35 78 78                        #       retry_on: 5xx
          12 02 08 03                           #       num_retries: 3
          1a 02 08 02                           #       per_try_timeout: 2 s
          3a 02 f7 03                           #       retriable_status_codes: 503
          42 08 0a 02 08 01 12 02 08 05         #       retry_back_off: 1 s to 5 s
    4a 16 {RBAC}                                # rbac, 22 bytes
    52 08 00 00 00 3f 00 00 80 be               # embedding, packed: 0.5, -0.25
    58 01                                       # disclosure_mode: EAGER
"""
TOOL_JSON = {
    "namespace": "ns",
    "name": "t",
    "description": "d",
    "input_schema": {"inline_string": "{}"},
    "output_schema": {"filename": "p"},
    "rest_backend": {
        "method": "GET",
        "path": "/x",
        "query_params": [{"name": "q", "source": "a"}],
        "cluster": "c",
        "body_template": {"environment_variable": "x"},
        "upstream_policy": {
            "authority": "h",
            "timeout": "1s",
            "retry_policy": {
                "retry_on": "5xx",
                "num_retries": 3,
                "per_try_timeout": "2s",
                "retriable_status_codes": [503],
                "retry_back_off": {"base_interval": "1s", "max_interval": "5s"},
            },
        },
    },
    "rbac": RBAC_JSON,
    "embedding": [0.5, -0.25],
    "disclosure_mode": "EAGER",
}

MCP_TOOL = """
    12 01 74                                    # name: t
    42 06 08 01 12 02 2f 75                     # mcp_server_backend: transport StreamableHttp, url /u
"""
MCP_TOOL_JSON = {"name": "t", "mcp_server_backend": {"transport": "StreamableHttp", "url": "/u"}}

GRAPH_TOOL = """
    3a 00                                       # function_graph_backend
"""

JSON_BODY_TOOL = """
    32 03 3a 01 62                              # rest_backend: body_json b
"""

SOURCE = f"""
    0a 04 12 02 7b 7d                           # spec: inline_bytes
    12 02 6e 73                                 # namespace: ns
    1a 01 63                                    # cluster: c
    22 03 0a 01 68                              # upstream_policy: authority h
    2a 16 {RBAC}                                # rbac
    30 01                                       # tool_disclosure_mode: EAGER
    3a 03 2f 76 31                              # path_prefix: /v1
    40 01                                       # skip_unsupported_operations
    4a 01 61                                    # include_operations: a
    52 01 62                                    # exclude_operations: b
"""
SOURCE_JSON = {
    "spec": {"inline_bytes": "e30="},
    "namespace": "ns",
    "cluster": "c",
    "upstream_policy": {"authority": "h"},
    "rbac": RBAC_JSON,
    "tool_disclosure_mode": "EAGER",
    "path_prefix": "/v1",
    "skip_unsupported_operations": True,
    "include_operations": ["a"],
    "exclude_operations": ["b"],
}

SERVER = f"""
    0a 02 6e 73                                 # namespace: ns
    12 01 64                                    # description: d
    18 01                                       # transport: StreamableHttp
    22 02 2f 75                                 # url: /u
    2a 02 08 3c                                 # cache_duration: 60 s
    32 16 {RBAC}                                # rbac
    38 01                                       # tool_disclosure_mode: EAGER
"""
SERVER_JSON = {
    "namespace": "ns",
    "description": "d",
    "transport": "StreamableHttp",
    "url": "/u",
    "cache_duration": "60s",
    "rbac": RBAC_JSON,
    "tool_disclosure_mode": "EAGER",
}

TOOLKIT = """
    0a 01 6b                                    # name: k
    12 01 64                                    # description: d
    1a 01 69                                    # instructions: i
    22 06 0a 01 6e 12 01 61                     # tools: namespace n, name a
    22 06 0a 01 6e 12 01 62                     # tools: namespace n, name b
"""
TOOLKIT_JSON = {
    "name": "k",
    "description": "d",
    "instructions": "i",
    "tools": [{"namespace": "n", "name": "a"}, {"namespace": "n", "name": "b"}],
}

GATEWAY = """
    0a 06 0a 01 61 12 01 31                     # server_info: name a, version 1
    12 03 12 01 74                              # tools: name t
    1a 16                                       # search, 22 bytes
      08 05                                     #   max_allowable_results: 5
      12 12                                     #   embeddings, 18 bytes
        0a 01 63                                #     cluster: c
        12 01 6d                                #     model_id: m
        1a 02 2f 65                             #     path: /e
        22 02 08 01                             #     timeout: 1 s
        28 08                                   #     dimensions: 8
        30 10                                   #     max_batch_size: 16
    22 03 0a 01 6d                              # tds: config_name m
    2a 04 0a 02 6e 73                           # dynamic_mcp_servers: namespace ns
    32 02 08 05                                 # upstream_timeout: 5 s
    38 80 08                                    # max_upstream_response_bytes: 1024
    4a 18                                       # code_mode, 24 bytes
      0a 02 08 02                               #   execution_timeout: 2 s
      10 0a                                     #   max_host_calls: 10
      18 02                                     #   max_concurrent_executions: 2
      20 80 08                                  #   max_output_bytes: 1024
      28 80 10                                  #   memory_limit_bytes: 2048
      32 01 70                                  #   engine_artifact_path: p
      3a 03 0a 01 6b                            #   toolkits: name k
      40 04                                     #   max_concurrent_tool_calls: 4
    52 03 1a 01 63                              # open_api_tool_sources: cluster c
"""
GATEWAY_JSON = {
    "server_info": {"name": "a", "version": "1"},
    "tools": [{"name": "t"}],
    "search": {
        "max_allowable_results": 5,
        "embeddings": {
            "cluster": "c",
            "model_id": "m",
            "path": "/e",
            "timeout": "1s",
            "dimensions": 8,
            "max_batch_size": 16,
        },
    },
    "tds": {"config_name": "m"},
    "dynamic_mcp_servers": [{"namespace": "ns"}],
    "upstream_timeout": "5s",
    "max_upstream_response_bytes": "1024",
    "code_mode": {
        "execution_timeout": "2s",
        "max_host_calls": 10,
        "max_concurrent_executions": 2,
        "max_output_bytes": "1024",
        "memory_limit_bytes": "2048",
        "engine_artifact_path": "p",
        "toolkits": [{"name": "k"}],
        "max_concurrent_tool_calls": 4,
    },
    "open_api_tool_sources": [{"cluster": "c"}],
}

TOOLS_MODE = """
    42 00                                       # tools_mode
"""


def wire(text: str) -> bytes:
    return bytes.fromhex("".join(line.split("#")[0] for line in text.splitlines()))


@pytest.mark.parametrize(
    ("made", "text", "expected"),
    [
        (pb.Tool, TOOL, TOOL_JSON),
        (pb.Tool, MCP_TOOL, MCP_TOOL_JSON),
        (pb.Tool, GRAPH_TOOL, {"function_graph_backend": {}}),
        (pb.Tool, JSON_BODY_TOOL, {"rest_backend": {"body_json": "b"}}),
        (pb.OpenApiToolSource, SOURCE, SOURCE_JSON),
        (pb.DynamicMcpServer, SERVER, SERVER_JSON),
        (pb.Toolkit, TOOLKIT, TOOLKIT_JSON),
        (pb.McpGateway, GATEWAY, GATEWAY_JSON),
        (pb.McpGateway, TOOLS_MODE, {"tools_mode": {}}),
    ],
    ids=["tool", "mcp tool", "graph tool", "json body", "source", "server", "toolkit", "gateway", "tools mode"],
)
def test_hand_written_wire_bytes_read_as_the_contract_says_and_are_written_back_equal(
    made: type[Message], text: str, expected: dict[str, object]
) -> None:
    message = made.FromString(wire(text))

    assert json_format.MessageToDict(message, preserving_proto_field_name=True) == expected
    assert message.SerializeToString(deterministic=True) == wire(text)
    assert json_format.ParseDict(expected, made()) == message


def test_every_field_of_the_contract_stands_in_a_golden_message() -> None:
    shown = {
        pb.Tool: {*TOOL_JSON, *MCP_TOOL_JSON, "function_graph_backend"},
        pb.OpenApiToolSource: set(SOURCE_JSON),
        pb.DynamicMcpServer: set(SERVER_JSON),
        pb.Toolkit: set(TOOLKIT_JSON),
        pb.McpGateway: {*GATEWAY_JSON, "tools_mode"},
    }
    for message, fields in shown.items():
        assert {field.name for field in message.DESCRIPTOR.fields} == fields
