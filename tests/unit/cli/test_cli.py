"""The command line: sentences and exit codes, never a traceback."""

import json
import pathlib
import sys

import pytest

from arion_tds.cli.main import main

CONFIG = """
control_plane: {address: 127.0.0.1:50051}
listeners:
  - name: a
    address: 127.0.0.1:0
    mcp_gateway:
      server_info: {name: a, version: "1"}
      tools_mode: {}
      tds: {config_name: main}
"""
TOOL = """
apiVersion: ctl.arion.io/v1alpha1
kind: McpTool
metadata: {name: a/main/ns.%s}
spec:
  namespace: ns
  name: %s
  description: says hello
  rest_backend: {method: %s, path: /x, cluster: c}
"""
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "t", "version": "1"},
    "paths": {
        "/things/{id}": {
            "get": {
                "operationId": "getThing",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "ok"}},
            },
            "trace": {"operationId": "traceThing", "responses": {}},
        }
    },
}


def test_check_says_that_a_config_is_good(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(CONFIG)
    assert main(["check", "-c", str(path)]) == 0
    assert "good: 1 listener" in capsys.readouterr().out


def test_check_lists_every_mistake_and_fails(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(CONFIG.replace("tools_mode: {}", "").replace("control_plane", "controlplane"))
    assert main(["check", "-c", str(path)]) == 1
    said = capsys.readouterr().err
    assert "controlplane: unknown key" in said
    assert "listeners[0].mcp_gateway" in said
    assert "mistakes: nothing was started" in said


def test_check_judges_documents_as_one_push(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "1.yaml").write_text(TOOL % ("hello", "hello", "GET"))
    (tmp_path / "2.yaml").write_text(TOOL % ("bad", "bad", "FETCH"))
    (tmp_path / "3.json").write_text(
        json.dumps(
            {
                "apiVersion": "ctl.arion.io/v1alpha1",
                "kind": "McpOpenApiSource",
                "metadata": {"name": "a/main/ns"},
                "spec": {"namespace": "ns", "cluster": "c", "spec": {"inline_string": json.dumps(DOCUMENT)}},
            }
        )
    )
    assert main(["check", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "1.yaml: Tool a/main/ns.hello: good" in out
    assert "2.yaml: Tool a/main/ns.bad" in err
    assert "FETCH" in err
    assert "TRACE" in err.upper()  # the source: one unsupported operation


def test_a_namespace_with_two_owners_is_refused_offline(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "1.yaml").write_text(TOOL % ("hello", "hello", "GET"))
    (tmp_path / "2.yaml").write_text(
        "apiVersion: ctl.arion.io/v1alpha1\nkind: McpDynamicServer\nmetadata: {name: a/main/ns}\n"
        "spec: {namespace: ns, description: d, transport: StreamableHttp, url: 'http://h/mcp'}\n"
    )
    assert main(["check", str(tmp_path)]) == 1
    assert "'ns'" in capsys.readouterr().err


def test_check_with_a_config_warns_of_clusters_that_it_lacks(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(CONFIG)
    (tmp_path / "tool.yaml").write_text(TOOL % ("hello", "hello", "GET"))
    assert main(["check", "-c", str(path), str(tmp_path / "tool.yaml")]) == 0
    assert "cluster 'c' is not in the config" in capsys.readouterr().out


def test_check_with_a_config_warns_of_documents_that_none_of_its_listeners_gets(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, document = tmp_path / "gateway.yaml", TOOL % ("hello", "hello", "GET")
    path.write_text(CONFIG)
    (tmp_path / "scope.yaml").write_text(document.replace("a/main", "b/main"))
    (tmp_path / "fleet.yaml").write_text(document.replace("ns.hello}", "ns.hello, fleet: other}"))
    assert main(["check", "-c", str(path), str(tmp_path / "scope.yaml"), str(tmp_path / "fleet.yaml")]) == 0
    scope, fleet = (line for line in capsys.readouterr().out.splitlines() if "no effect" in line)
    assert scope.endswith(
        "warning: no listener of the config serves 'b/main' (it has 'a/main'): it has no effect there"
    )
    assert fleet.endswith("warning: fleet 'other' is not the config's node.cluster 'arion': it has no effect there")


@pytest.mark.parametrize(
    ("backend", "says"),
    [
        ("path: '/{{city}}/{{cite}}'", "path names 'cite'"),
        (
            'path: /x, body_template: {inline_string: \'{"a": {{city.name}}, "b": {{ctiy}}}\'}',
            "body_template names 'ctiy'",
        ),
        ("path: /x, body_json: place", "body_json names 'place'"),
        ("path: /x, query_params: [{name: q, source: city}, {name: r, source: days}]", "query_params names 'days'"),
    ],
)
def test_check_warns_of_arguments_that_the_input_schema_does_not_have(
    backend: str, says: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tool.yaml"
    document = (TOOL % ("hello", "hello", "GET")).replace("path: /x", backend)
    path.write_text(document)
    assert main(["check", str(path)]) == 0
    assert "warning" not in capsys.readouterr().out, "without a schema any argument may come"
    for schema, warned in (
        ('{"type": "object", "properties": {"city": {}}}', 1),
        ('{"type": "object", "properties": {"city": {}}, "allOf": [{}]}', 0),
        ('{"type": "object", "properties": {"city": {}}, "additionalProperties": {"type": "string"}}', 0),
    ):
        path.write_text(f"{document}  input_schema: {{inline_string: '{schema}'}}\n")
        assert main(["check", str(path)]) == 0
        out = capsys.readouterr().out
        assert out.count("warning") == warned, out
        assert not warned or f"rest_backend.{says}, which is not a property of input_schema" in out


def test_check_of_a_folder_without_documents_is_not_good(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "readme.txt").touch()
    assert main(["check", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"{tmp_path}: holds no document (*.yaml, *.yml, *.json)\n"


def test_yaml_that_is_none_is_said_with_its_line(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("a: [1\nb: }")
    for command in (["check", "-c", str(path)], ["check", str(path)], ["openapi", str(path)]):
        assert main(command) == 1
        said = capsys.readouterr().err
        assert "line 2, column 2" in said
        assert "byte string" not in said


def test_check_warns_of_code_mode_without_its_engine(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(CONFIG.replace("tools_mode", "code_mode"))
    monkeypatch.setitem(sys.modules, "deno", None)
    assert main(["check", "-c", str(path)]) == 0
    said = capsys.readouterr().out
    assert (
        "warning: would not start on this machine: code_mode needs the sandbox engine, which is not installed" in said
    )


def test_check_warns_of_files_that_are_not_on_this_machine(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gateway.yaml"
    jwt = "jwt: {providers: {p: {issuer: i, local_jwks: {filename: /no/jwks.json}}}}"
    path.write_text(
        CONFIG.replace("    mcp_gateway:", f"    {jwt}\n    mcp_gateway:")
        + "  - name: b\n    address: 127.0.0.1:0\n    tls: {cert_file: /no/tls.crt, key_file: /no/tls.key}\n"
        + "    mcp_gateway: {server_info: {name: b, version: '1'}, tools_mode: {}}\n"
        + "clusters: [{name: c, endpoints: ['https://h:1'], tls: {ca_file: /no/ca.pem}}]\n"
    )
    assert main(["check", "-c", str(path)]) == 0
    warned = [line for line in capsys.readouterr().out.splitlines() if "would not start on this machine" in line]
    assert len(warned) == 3
    for file in ("/no/jwks.json", "/no/tls.crt", "/no/ca.pem"):
        assert sum(file in line for line in warned) == 1


def test_openapi_shows_what_a_document_becomes(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "doc.json"
    path.write_text(json.dumps(DOCUMENT))
    assert main(["openapi", str(path)]) == 1
    assert "refused:" in capsys.readouterr().err
    assert main(["openapi", str(path), "--namespace", "shop", "--skip-unsupported", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [tool["name"] for tool in shown["tools"]] == ["shop.getThing"]
    assert shown["tools"][0]["operation"] == "GET /things/{id}"
    assert shown["tools"][0]["inputSchema"]["required"] == ["id"]
    assert len(shown["skipped"]) == 1
    assert main(["openapi", str(path), "--skip-unsupported"]) == 0
    assert "shop" not in capsys.readouterr().out


def test_a_file_that_is_not_there_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["openapi", "/nowhere.json"], ["check", "/nowhere.yaml"], ["serve", "-c", "/nowhere.yaml"]):
        assert main(command) == 1
        assert "No such file" in capsys.readouterr().err
