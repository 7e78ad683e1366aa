"""A wrong tool is pushed to real processes, and the command line says why it is not there and what to do."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest
import yaml
from e2e_processes import Demo, eventually

pytestmark = pytest.mark.e2e

FORECAST = "weather.get_forecast"
ADMIN = 9901


async def typed(demo: Demo, *arguments: str) -> tuple[int, str, str]:
    """Status, output and errors of `arion-tds …`, as a person would type it."""
    address = demo.url(ADMIN, "")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arion_tds", *arguments, "--admin", address),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_a_wrong_tool_is_explained_corrected_and_called_from_the_command_line(demo: Demo) -> None:
    await demo.ready()
    good = demo.catalog / f"tenant-a-{FORECAST}.yaml"
    document = yaml.safe_load(good.read_text("utf-8"))
    document["metadata"]["name"] = "tenant-a-mcp/main/weather.get_tides"
    document["spec"] |= {"name": "get_tides"}
    document["spec"]["rest_backend"]["method"] = "FETCH"
    wrong = demo.catalog / "tides.yaml"
    wrong.write_text(yaml.safe_dump(document), encoding="utf-8")

    async def rejected() -> None:
        status, out, _ = await typed(demo, "explain", "weather.get_tides")
        assert status == 1
        assert "weather.get_tides  in tenant-a-mcp/main: rejected" in out
        assert "FETCH" in out
        assert "next: correct the resource and push it again" in out

    await eventually(rejected)
    status, out, _ = await typed(demo, "problems", "--json")
    assert [one["name"] for one in json.loads(out)["problems"]] == ["tenant-a-mcp/main/weather.get_tides"]

    document["spec"]["rest_backend"]["method"] = "GET"
    wrong.write_text(yaml.safe_dump(document), encoding="utf-8")

    async def served() -> None:
        assert (await typed(demo, "explain", "weather.get_tides"))[0] == 0

    await eventually(served)
    arguments = json.dumps({"city": "Osaka", "days": 1})
    status, out, err = await typed(demo, "call", FORECAST, arguments, "--scope", "tenant-a-mcp/main")
    assert status == 0, err
    assert json.loads(out)["city"] == "Osaka"
    status, out, _ = await typed(demo, "status")
    assert status == 0
    assert "tenant-a-mcp/main" in out
