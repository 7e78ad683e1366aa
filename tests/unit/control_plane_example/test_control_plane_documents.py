"""Documents: what is taken, and the sentence for what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from envoy.config.listener.v3 import listener_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2

import control_plane_example
from arion_tds.pb import mcp_gateway_pb2 as pb
from control_plane_example import documents
from control_plane_example.documents import Document, Fault, Key

CATALOG = Path(control_plane_example.__file__).parent / "catalog"


def envelope(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiVersion": "ctl.arion.io/v1alpha1",
        "kind": "McpTool",
        "metadata": {"name": "tenant-a-mcp/main/weather.get"},
        "spec": {"namespace": "weather", "name": "get", "description": "d"},
    }
    return {name: value for name, value in {**made, **changes}.items() if value is not None}


def taken(text: str) -> list[Document]:
    found = documents.read(text)
    assert not isinstance(found, Fault), found
    return found


def refused(text: str) -> str:
    found = documents.read(text)
    assert isinstance(found, Fault), found
    return found.text


def test_a_tool_becomes_its_wire_bytes_under_its_full_id() -> None:
    (document,) = taken(json.dumps(envelope()))
    assert document.kind == "McpTool"
    assert document.key == Key("arion", documents.PREFIX + "Tool", "tenant-a-mcp/main/weather.get")
    assert pb.Tool.FromString(document.held.payload) == pb.Tool(namespace="weather", name="get", description="d")


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        ("McpOpenApiSource", {"namespace": "petstore", "spec": {"filename": "p.json"}}, pb.OpenApiToolSource),
        ("McpDynamicServer", {"namespace": "github", "transport": "StreamableHttp"}, pb.DynamicMcpServer),
        ("McpToolkit", {"name": "kit", "tools": [{"namespace": "a", "name": "b"}]}, pb.Toolkit),
    ],
)
def test_every_kind_has_its_message(kind: str, spec: dict[str, Any], message: Any) -> None:
    (document,) = taken(json.dumps(envelope(kind=kind, spec=spec)))
    assert document.key.type_url == documents.PREFIX + message.DESCRIPTOR.name
    assert message.FromString(document.held.payload).ByteSize() > 0


def test_envoys_own_messages_keep_their_typed_configs() -> None:
    connections = (
        "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
    )
    router = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
    filters = [{"name": "router", "typed_config": {"@type": router}}]
    manager = {"@type": connections, "stat_prefix": "in", "http_filters": filters}
    spec = {"name": "front", "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}]}
    (document,) = taken(json.dumps(envelope(kind="Listener", metadata={"name": "front"}, spec=spec)))
    assert document.key == Key("arion", "type.googleapis.com/envoy.config.listener.v3.Listener", "front")
    packed = listener_pb2.Listener.FromString(document.held.payload).filter_chains[0].filters[0].typed_config
    read = http_connection_manager_pb2.HttpConnectionManager.FromString(packed.value)
    assert (packed.type_url, read.http_filters[0].typed_config.type_url) == (connections, router)


def test_both_spellings_of_fields_say_the_same() -> None:
    snake = envelope(spec={"name": "t", "rest_backend": {"body_json": "a", "query_params": [{"name": "q"}]}})
    camel = envelope(spec={"name": "t", "restBackend": {"bodyJson": "a", "queryParams": [{"name": "q"}]}})
    assert taken(json.dumps(snake)) == taken(json.dumps(camel))


def test_both_spellings_of_one_field_in_one_place_are_refused_wherever_that_is() -> None:
    spec = {"rest_backend": {"upstream_policy": {"retry_policy": {"retry_on": "5xx", "retryOn": "reset"}}}}
    assert "spec.rest_backend.upstream_policy.retry_policy has both 'retry_on' and 'retryOn'" in refused(
        json.dumps(envelope(spec=spec))
    )


def test_a_stream_of_yaml_a_json_object_and_a_json_list_are_read() -> None:
    one, two = envelope(), envelope(metadata={"name": "a/b/c", "fleet": "edge"})
    stream = f"---\n{json.dumps(one)}\n---\n{json.dumps(two)}\n"
    assert len(taken(stream)) == len(taken(json.dumps([one, two]))) == 2
    assert taken(json.dumps(two))[0].key.fleet == "edge"


def test_the_version_is_the_content() -> None:
    yaml_text = (CATALOG / "tenant-b-climate.get_monthly_normals.yaml").read_text("utf-8")
    (first,) = taken(yaml_text)
    assert taken(yaml_text)[0].held == first.held
    assert taken(yaml_text.replace("rain days", "wet days"))[0].held.version != first.held.version


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"status": {}}, "unknown field 'status'"),
        ({"metadata": {"name": "a/b/c", "labels": {}}}, "unknown field metadata.labels"),
        ({"apiVersion": "v1"}, "apiVersion must be ctl.arion.io/v1alpha1, not 'v1'"),
        ({"kind": "Tool"}, "kind must be one of McpTool"),
        ({"kind": ["McpTool"]}, "kind must be one of McpTool"),
        ({"metadata": None}, "metadata must be an object"),
        ({"metadata": {}}, "metadata.name must be a string"),
        ({"metadata": {"name": "weather.get"}}, "not a full resource id"),
        ({"metadata": {"name": "a//weather.get"}}, "not a full resource id"),
        ({"metadata": {"name": "a/b/c", "fleet": ""}}, "metadata.fleet must be a string"),
        ({"spec": None}, "spec must be an object, not nothing"),
        ({"spec": {"nmae": "x"}}, 'has no field named "nmae"'),
        ({"spec": {"name": 3}}, "spec is not a Tool"),
        ({"spec": {"disclosure_mode": "NEVER"}}, "spec is not a Tool"),
        ({"spec": {"rest_backend": {}, "function_graph_backend": {}}}, "oneof"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], sentence: str) -> None:
    made = envelope()
    made.update(changes)
    made = {name: value for name, value in made.items() if value is not None}
    assert sentence in refused(json.dumps(made))


def test_a_name_twice_in_one_input_is_refused_but_not_in_two_fleets_or_kinds() -> None:
    assert "document 2: McpTool tenant-a-mcp/main/weather.get (fleet arion) stands twice" in refused(
        json.dumps([envelope(), envelope()])
    )
    other = envelope(metadata={"name": "tenant-a-mcp/main/weather.get", "fleet": "edge"})
    kit = envelope(kind="McpToolkit", spec={"name": "weather.get"})
    assert len(taken(json.dumps([envelope(), other, kit]))) == 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no document"),
        ("# nothing\n---\n", "no document"),
        ("[1, 2", "not valid JSON"),
        ('{"kind": "a", "kind": "b"}', "key 'kind' stands twice"),
        ("kind: a\nkind: b\n", "key 'kind' stands twice in one mapping, line 2"),
        ("kind: [a\n", "not valid YAML"),
        ("just text", "must be an object"),
        ("!!python/object/apply:os.system [ls]", "not valid YAML"),
        ("[" * 100_000, "nest"),
        ("{a: [" * 100_000, "not valid JSON"),
        ("- " * 100_000, "nest"),
        ("a: &a [1, 2, 3, *a]", "more than"),
        (
            "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(
                f"{after}: &{after} [{','.join([f'*{before}'] * 10)}]\n"
                for before, after in zip("abcdefgh", "bcdefghi", strict=True)
            ),
            "more than",
        ),
    ],
)
def test_text_that_holds_no_documents_is_refused_in_bounded_time(text: str, sentence: str) -> None:
    assert sentence in refused(text)


def test_dates_and_merge_keys_have_no_meaning_of_their_own() -> None:
    text = json.dumps(envelope(spec={"description": "D"})).replace('"D"', "2026-01-31")
    assert pb.Tool.FromString(taken(f"--- {text}")[0].held.payload).description == "2026-01-31"
    assert "unknown field" in refused("a: &a {kind: McpTool}\n<<: *a\n")


def test_the_demo_catalog_is_sound() -> None:
    tools: dict[str, pb.Tool] = {}
    for path in sorted(CATALOG.glob("*.yaml")):
        for document in taken(path.read_text("utf-8")):
            if document.kind != "McpTool":
                continue
            tool = pb.Tool.FromString(document.held.payload)
            assert document.key.name.split("/", 2)[2] == f"{tool.namespace}.{tool.name}"
            assert tool.rest_backend.cluster == "weather_api"
            for schema in (tool.input_schema, tool.output_schema):
                assert json.loads(schema.inline_string)["type"] == "object"
            tools[document.key.name] = tool
    assert sorted(tools) == [
        "tenant-a-mcp/main/weather.get_current",
        "tenant-a-mcp/main/weather.get_forecast",
        "tenant-a-mcp/main/weather.list_alerts",
        "tenant-a-mcp/main/weather.submit_observation",
        "tenant-b-mcp/main/climate.get_monthly_normals",
        "tenant-c-mcp/main/weather.get_current",
        "tenant-c-mcp/main/weather.get_forecast",
        "tenant-c-mcp/main/weather.list_alerts",
    ]
