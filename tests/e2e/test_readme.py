"""What the README tells its reader to type, typed: its blocks as written, in a folder of its own, on free ports."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from e2e_processes import ROOT, eventually, with_ports
from e2e_reader import Reader

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not all(map(shutil.which, ("make", "curl", "sh"))), reason="needs make, curl and a shell"),
]

COPIED = ("scripts/demo.py", "examples/gateway.yaml")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path, "README.md", *COPIED)
    yield made
    for process in made.started:
        process.kill()


def several(text: str) -> list[Any]:
    """JSON values that follow each other."""
    found, decoder = [], json.JSONDecoder()
    while text := text.strip():
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


def copied(reader: Reader) -> None:
    """A checkout with the test's ports. Its virtual environment is there already: making one takes minutes."""
    for name in ("Makefile", "scripts", "examples", "control_plane_example"):
        source, target = ROOT / name, reader.folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    for name in COPIED:
        path = reader.folder / name
        path.write_text(with_ports(path.read_text("utf-8"), reader.ports), encoding="utf-8")
    (reader.folder / "pyproject.toml").touch()
    commands = reader.folder / ".venv" / "bin"
    commands.mkdir(parents=True)
    (commands / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    (commands / "python").chmod(0o755)
    (reader.folder / ".venv" / ".ready").touch()


async def test_make_demo_runs_and_every_command_that_it_prints_works(reader: Reader) -> None:
    copied(reader)
    (block,) = reader.block("Try it", "sh")
    demo, test = (line.partition("#")[0].strip() for line in block.splitlines())
    assert "pytest" in reader.type(f"{test} --dry-run")  # this very run

    process = reader.background(demo)
    printed = (await reader.says(process, "Ctrl-C ends it all.")).partition("In another terminal:")[2]
    search, call, program, take_away, look = re.findall(r"^  # .*\n((?:  .*\n)+)", printed, re.MULTILINE)
    assert json.loads(reader.type(search))["tools"][0]["name"] == "weather.get_forecast"
    called = json.loads(reader.type(call))
    assert "result" in called, f"{called}\n{process.log()}"
    assert called["result"]["structuredContent"]["city"] == "Osaka"
    found = json.loads(reader.type(program))["result"]["structuredContent"]["result"]
    assert [one["city"] for one in found] == ["Osaka", "Lima"]
    reader.type(take_away)

    async def gone() -> None:
        assert "Unknown tool" in reader.type(call)

    await eventually(gone, timeout=5)
    dump, problems = several(reader.type(look))
    assert [scope["scope"] for scope in dump["scopes"]] == [f"tenant-{name}-mcp/main" for name in "abc"]
    assert problems["problems"] == []

    os.killpg(process.child.pid, signal.SIGINT)  # as a terminal does at Ctrl-C

    async def ended() -> None:
        assert not process.survivors(), process.log()

    await eventually(ended)
    assert "ERROR   arion_tds" not in process.log(), process.log()


async def test_make_demo_names_the_address_that_somebody_has_and_leaves_a_running_demo_alone(reader: Reader) -> None:
    copied(reader)
    theirs = reader.folder / ".demo" / "catalog" / "mine.yaml"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    with socket.create_server(("127.0.0.1", reader.ports[4001])):
        said = reader.type("make demo 2>&1 || echo refused")
    assert f"127.0.0.1:{reader.ports[4001]} is taken" in said
    assert said.endswith("refused\n")
    assert "The gateway is ready" not in said
    assert theirs.exists()


async def test_the_config_the_pushed_tool_and_the_search_work_as_written(reader: Reader) -> None:
    (config,) = reader.block("Configure", "yaml")
    (reader.folder / "gateway.yaml").write_text(config, encoding="utf-8")
    assert "gateway.yaml: good" in reader.type("arion-tds check -c gateway.yaml")
    serve = re.match(r"# gateway\.yaml: (arion-tds serve .*)", config)
    assert serve is not None
    run_control_plane, push = reader.block("Push a tool", "sh")
    (document,) = reader.block("Push a tool", "yaml")
    in_folder = re.match(r"# (my-catalog/report\.yaml)\n", document)
    assert in_folder is not None
    (reader.folder / "my-catalog").mkdir()
    forecast = "tenant-a-weather.get_forecast.yaml"
    shutil.copy(ROOT / "control_plane_example" / "catalog" / forecast, reader.folder / "my-catalog")

    reader.background(f"exec {run_control_plane}")
    reader.background(f"exec python -m control_plane_example.sample_service --address 127.0.0.1:{reader.ports[4001]}")
    await reader.says(reader.background(f"exec {serve[1]}"), "first content of every type is in")

    (search,) = reader.block("Search", "sh")
    assert [tool["name"] for tool in json.loads(reader.type(search))["tools"]] == ["weather.get_forecast"]

    path = reader.folder / in_folder[1]
    path.write_text(document, encoding="utf-8")
    await reports(reader, wanted=True)
    path.rename(reader.folder / path.name)  # out of the folder: the tool goes
    await reports(reader, wanted=None)

    put, status, problems = (line.partition(" #")[0] for line in push.splitlines())
    assert "error" not in json.loads(reader.type(put))
    await reports(reader, wanted=True)
    streams = json.loads(reader.type(status))["streams"]  # one of each worker
    assert {stream["node"] for stream in streams} == {"gateway-1"}
    assert {stream["types"]["McpTool"]["nacked"] for stream in streams} == {0}
    assert json.loads(reader.type(problems))["problems"] == []


async def reports(reader: Reader, wanted: bool | None) -> None:
    """Until a call of the pushed tool is answered so by the service; None: until there is no such tool."""
    asked = {"name": "demo.report", "arguments": {"city": "Lima", "celsius": 19.5}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}

    async def look() -> None:
        url = f"http://127.0.0.1:{reader.ports[8080]}/mcp"
        async with aiohttp.ClientSession() as http, http.post(url, json=body) as response:
            answer = await response.json()
        known = "error" not in answer
        accepted = json.loads(answer["result"]["content"][0]["text"])["accepted"] if known else None
        assert accepted is wanted, answer

    await eventually(look)
