"""The mcp_gateway block of a config: good ones become a Gateway, bad ones name every mistake with its path."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from arion_tds.decode.gateway import gateway
from arion_tds.decode.rules import DataRules
from arion_tds.model.gateway import CodeMode, Embeddings, Gateway, Search

WHERE = "listeners[0].mcp_gateway"
RULES = DataRules(
    any_file=True,
    any_environment=True,
    read_file=lambda path: b'{"type":"object","title":"%s"}' % path.encode(),
    read_environment=lambda name: f'{{"type":"object","title":"{name}"}}',
)

SMALL = """
server_info: {name: tenant-a-mcp, version: 1.0.0}
tools_mode: {}
"""

TOOL = """
- namespace: weather
  name: get_forecast
  description: Forecast of a city
  rest_backend: {method: GET, path: "/v1/{{city}}", cluster: weather_api}
"""


def block(text: str = "", **more: object) -> dict[str, Any]:
    return {**yaml.safe_load(SMALL), **(yaml.safe_load(text) or {}), **more}


def good(value: object) -> Gateway:
    made, problems, _ = gateway(value, RULES, WHERE)
    assert problems == []
    assert made is not None
    return made


def mistakes(value: object) -> list[str]:
    made, problems, _ = gateway(value, RULES, WHERE)
    assert made is None
    assert all(problem.where.startswith(WHERE) for problem in problems)
    return [f"{problem.where.removeprefix(WHERE).removeprefix('.')}: {problem.why}" for problem in problems]


def test_the_smallest_gateway_has_a_name_a_version_and_a_mode() -> None:
    assert good(block()) == Gateway(name="tenant-a-mcp", version="1.0.0")


def test_a_gateway_with_tds_consumes_the_scope_of_its_two_names() -> None:
    assert good(block("tds: {config_name: main}")).scope == "tenant-a-mcp/main"


def test_both_spellings_of_proto_json_are_read() -> None:
    snake = good(block("{upstream_timeout: 2.5s, max_upstream_response_bytes: 1024, tds: {config_name: main}}"))
    camel = good(
        yaml.safe_load(
            "{serverInfo: {name: tenant-a-mcp, version: 1.0.0}, toolsMode: {}, upstreamTimeout: 2.5s,"
            " maxUpstreamResponseBytes: '1024', tds: {configName: main}}"
        )
    )
    assert snake == camel
    assert (snake.upstream_timeout, snake.max_response_bytes) == (2.5, 1024)


def test_static_resources_go_through_the_decoders_of_delivered_ones() -> None:
    made = good(
        block(
            f"""
            tools: {yaml.safe_load(TOOL)}
            open_api_tool_sources: [{{namespace: pets, cluster: pets_api, spec: {{filename: pets.json}}}}]
            dynamic_mcp_servers: [{{namespace: notes, url: "http://n.test/mcp", transport: StreamableHttp}}]
            """
        )
    )
    assert [tool.qualified for tool in made.tools] == ["weather.get_forecast"]
    assert [(source.namespace, source.document) for source in made.sources] == [
        ("pets", b'{"type":"object","title":"pets.json"}')
    ]
    assert [server.url for server in made.servers] == ["http://n.test/mcp"]


def test_static_data_sources_may_read_files_and_variables() -> None:
    (tool,) = yaml.safe_load(TOOL)
    tool |= {"input_schema": {"filename": "a.json"}, "output_schema": {"environment_variable": "OUT"}}
    (made,) = good(block(tools=[tool])).tools
    assert made.input_schema.text == b'{"type":"object","title":"a.json"}'
    assert made.output_schema is not None
    assert made.output_schema.text == b'{"type":"object","title":"OUT"}'


def test_search_and_embeddings_have_their_defaults() -> None:
    assert good(block("search: {}")).search == Search()
    made = good(block("search: {max_allowable_results: 7, embeddings: {cluster: c, model_id: m, dimensions: 3}}"))
    assert made.search == Search(
        max_allowable_results=7, embeddings=Embeddings(cluster="c", model_id="m", dimensions=3)
    )


def test_a_static_embedding_must_have_the_length_of_the_gateways_own_embeddings() -> None:
    (tool,) = yaml.safe_load(TOOL)
    tool["embedding"] = [1, 2]
    assert mistakes(block("search: {embeddings: {cluster: c, model_id: m, dimensions: 3}}", tools=[tool])) == [
        "tools[0].embedding: has 2 numbers: the gateway's embeddings have 3"
    ]


def test_code_mode_takes_zero_as_the_default() -> None:
    value = block("code_mode: {max_host_calls: 0, max_output_bytes: '5', execution_timeout: 2s}")
    del value["tools_mode"]
    assert good(value).code_mode == CodeMode(execution_timeout=2.0, max_output_bytes=5)


def test_code_mode_brings_its_toolkits() -> None:
    value = block(
        "code_mode: {toolkits: [{name: k, description: d, instructions: i,"
        " tools: [{namespace: a, name: b}, {namespace: a, name: c}]}]}"
    )
    del value["tools_mode"]
    assert [kit.tools for kit in good(value).toolkits] == [("a.b", "a.c")]


def test_an_engine_artifact_is_ignored_with_a_warning() -> None:
    value = block("code_mode: {engine_artifact_path: /x}")
    del value["tools_mode"]
    assert gateway(value, RULES, WHERE)[2] == [
        f"{WHERE}.code_mode.engine_artifact_path: is not used by this gateway: ignored"
    ]


def test_warnings_of_static_tools_carry_their_path() -> None:
    (tool,) = yaml.safe_load(TOOL)
    tool["name"] = "get/forecast"
    (warning,) = gateway(block(tools=[tool]), RULES, WHERE)[2]
    assert warning.startswith(f"{WHERE}.tools[0].name: name 'weather.get/forecast' has characters")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tools_mode: null", [": needs a mode: write `tools_mode: {}` or `code_mode: {}`"]),
        ("code_mode: {}", ["code_mode: cannot stand beside tools_mode: only one of them may be set"]),
        ("server_info: {}", ["server_info.name: is empty", "server_info.version: is empty"]),
        ("server_info: null", ["server_info.name: is empty", "server_info.version: is empty"]),
        ("server_info: {name: 5, version: v}", ["server_info.name: does not fit the field: expected string"]),
        ("tds: {}", ["tds.config_name: is empty"]),
        ("tds: {config_name: a/b}", ["tds.config_name: is 'a/b': with tds it is a part of resource IDs"]),
        (
            "{tds: {config_name: a}, server_info: {name: a/b, version: v}}",
            ["server_info.name: is 'a/b': with tds it is a part of resource IDs"],
        ),
        ("upstream_timeout: 0s", ["upstream_timeout: is 0 s: it must be more than zero"]),
        ("upstream_timeout: -1s", ["upstream_timeout: is -1 s: it must be more than zero"]),
        ("upstream_timeout: 15", ["upstream_timeout: does not fit the field: Duration JSON value not a string"]),
        ("upstream_timeout: 1 minute", ["upstream_timeout: does not fit the field: "]),
        ("max_upstream_response_bytes: 0", ["max_upstream_response_bytes: is 0"]),
        ("max_upstream_response_bytes: -5", ["max_upstream_response_bytes: does not fit the field: "]),
        ("search: {max_allowable_results: 0}", ["search.max_allowable_results: is 0"]),
        (
            "search: {embeddings: {path: x, max_batch_size: 0, timeout: 0s}}",
            [
                "search.embeddings.timeout: is 0 s",
                "search.embeddings.path: is 'x': it must start with '/'",
                "search.embeddings.cluster: is empty",
                "search.embeddings.model_id: is empty",
                "search.embeddings.dimensions: is 0 or missing",
                "search.embeddings.max_batch_size: is 0",
            ],
        ),
        ("tols: []", ["tols: unknown field: did you mean 'tools'?"]),
        ("5: x", ["5: unknown field"]),
        ("tools: {}", ["tools: must be a list, not a mapping"]),
        ("tools: [7]", ["tools[0]: must be a mapping, not a number"]),
        ("tools: [null]", ["tools[0]: must be a mapping, not null"]),
        ("toolsMode: {}", ["tools_mode: is written as tools_mode and as toolsMode: keep one of them"]),
    ],
)
def test_a_mistake_is_named_with_its_path(text: str, expected: list[str]) -> None:
    found = mistakes(block(text))
    assert len(found) == len(expected), found
    for one, beginning in zip(found, expected, strict=True):
        assert one.startswith(beginning)


@pytest.mark.parametrize("value", [None, [], "x", 5, True])
def test_a_block_that_is_no_mapping_is_one_mistake(value: object) -> None:
    (found,) = gateway(value, RULES, WHERE)[1]
    assert str(found).startswith(f"{WHERE}: must be a mapping, not ")


def test_code_mode_times_of_zero_are_refused() -> None:
    value = block("code_mode: {execution_timeout: 0s}")
    del value["tools_mode"]
    assert mistakes(value) == ["code_mode.execution_timeout: is 0 s: it must be more than zero"]


def test_mistakes_of_every_static_resource_are_named_at_once() -> None:
    value = block(
        """
        tools:
        - {namespace: a, name: b, description: d, rest_backend: {method: GET, path: /x, cluster: c}}
        - namespace: a
          descripton: d
          rest_backend: {method: BREW, path: x, cluster: c, upstream_policy: {timeout: 5}}
          mcp_server_backend: {url: "http://x/"}
          disclosure_mode: LAZY
        open_api_tool_sources: [{namespace: p}]
        dynamic_mcp_servers: [{namespace: "", url: /x}]
        """
    )
    assert mistakes(value) == [
        "tools[1].descripton: unknown field: did you mean 'description'?",
        "tools[1].rest_backend.upstream_policy.timeout: does not fit the field: "
        "Duration JSON value not a string: 5 at HttpUpstreamPolicy.timeout.",
        "tools[1].mcp_server_backend: cannot stand beside rest_backend: only one of them may be set",
        "tools[1].disclosure_mode: does not fit the field: Invalid enum value LAZY for enum type "
        "arion.extensions.filters.http.mcp.mcp_gateway.v3.DisclosureMode at Tool.disclosure_mode.",
        "tools[1].name: is empty: it is required",
        "tools[1].description: is empty: it is required",
        "tools[1].rest_backend.method: is 'BREW': not one of DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT",
        "tools[1].rest_backend.path: is 'x': it must start with '/'",
        "open_api_tool_sources[0].spec: is missing: it is required",
        "open_api_tool_sources[0].cluster: is empty: it is required",
        "dynamic_mcp_servers[0].namespace: is empty: it is required",
        "dynamic_mcp_servers[0].transport: is Sse (the default when unset): only StreamableHttp is served",
        "dynamic_mcp_servers[0].url: is '/x': not an absolute http or https URL with a host",
    ]


def test_a_name_or_namespace_of_two_static_resources_is_refused() -> None:
    rest = "rest_backend: {method: GET, path: /x, cluster: c}, description: d"
    value = block(
        f"""
        tools: [{{namespace: a.b, name: c, {rest}}}, {{namespace: a, name: b.c, {rest}}}]
        open_api_tool_sources:
        - {{namespace: a, cluster: c, spec: {{inline_string: x}}}}
        - {{namespace: p, cluster: c, spec: {{inline_string: x}}}}
        dynamic_mcp_servers: [{{namespace: p, url: "http://x/", transport: StreamableHttp}}]
        """
    )
    assert mistakes(value) == [
        "tools[1].name: is 'a.b.c', which tools[0].name has already taken",
        "open_api_tool_sources[0].namespace: is 'a', which tools[1].namespace has already taken",
        "dynamic_mcp_servers[0].namespace: is 'p', which open_api_tool_sources[1].namespace has already taken",
    ]


def test_a_toolkit_name_of_two_toolkits_is_refused() -> None:
    kit = {"name": "k", "tools": [{"namespace": "a", "name": "b"}, {"namespace": "a", "name": "c"}]}
    value = block(code_mode={"toolkits": [kit, kit]})
    del value["tools_mode"]
    assert mistakes(value) == ["code_mode.toolkits[1].name: is 'k', which code_mode.toolkits[0].name has already taken"]
