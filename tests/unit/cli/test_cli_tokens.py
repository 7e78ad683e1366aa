"""What a catalog costs a context, from its documents."""

from __future__ import annotations

import json
import pathlib

import pytest

from arion_tds.cli.main import main
from arion_tds.search import tokens

CONFIG = """
control_plane: {address: 127.0.0.1:50051}
listeners:
  - name: a
    address: 127.0.0.1:0
    tool_names: bare
    mcp_gateway:
      server_info: {name: a, version: "1"}
      tools_mode: {}
      tds: {config_name: main}
"""


def documents(folder: pathlib.Path, count: int, *, eager: int = 0) -> None:
    for number in range(count):
        mode = "EAGER" if number < eager else "PROGRESSIVE"
        schema = {"type": "object", "properties": {"what": {"type": "string", "description": "say " * 50}}}
        (folder / f"{number:04}.json").write_text(
            json.dumps(
                {
                    "apiVersion": "ctl.arion.io/v1alpha1",
                    "kind": "McpTool",
                    "metadata": {"name": f"a/main/space{number % 12}.tool_{number}"},
                    "spec": {
                        "namespace": f"space{number % 12}",
                        "name": f"tool_{number}",
                        "description": "does something",
                        "input_schema": {"inline_string": json.dumps(schema)},
                        "rest_backend": {"method": "GET", "path": "/", "cluster": "c"},
                        "disclosure_mode": mode,
                    },
                }
            )
        )


def counted(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["tokens", "--json", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["encoding"] == "o200k_base"
    assert found["exact"] == tokens.exact()
    (scope,) = found["scopes"]
    assert isinstance(scope, dict)
    return scope


def test_the_counts_are_those_of_the_definitions(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(tmp_path, 24, eager=1)
    found = counted(capsys, str(tmp_path))
    spaces = found["namespaces"]
    assert isinstance(spaces, dict)
    assert (found["scope"], found["tools"], len(spaces)) == ("a/main", 24, 12)
    full, progressive, code = found["full"], found["progressive"], found["code_mode"]
    assert isinstance(full, int)
    assert isinstance(progressive, int)
    assert isinstance(code, int)
    assert full == sum(spaces.values())
    assert 24 * 60 < full < 24 * 120
    assert found["search"] == round(5 * full / 24)
    documents(tmp_path, 24, eager=0)
    without = counted(capsys, str(tmp_path))["progressive"]
    assert isinstance(without, int)
    assert 60 < progressive - without < 120  # the eager tool
    assert without < 400
    assert code < 600


def test_the_table_says_what_is_saved(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(tmp_path, 24)
    config = tmp_path / "gateway.yml"
    config.write_text(CONFIG)
    assert main(["tokens", "-c", str(config), *map(str, sorted(tmp_path.glob("*.json")))]) == 0
    said = capsys.readouterr()
    assert "a/main: 24 tools" in said.out
    assert "% saved" in said.out
    assert "and 2 more namespaces" in said.out
    assert "tokens of o200k_base" in said.err


def test_what_would_be_refused_is_said_and_not_counted(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(tmp_path, 2)
    (tmp_path / "bad.yaml").write_text("kind: Nothing")
    assert main(["tokens", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "a/main: 2 tools" in said.out
    assert "refused: " in said.err
    assert "bad.yaml" in said.err
