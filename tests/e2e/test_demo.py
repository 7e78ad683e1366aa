"""The main road with real processes: what `make demo` starts, and what its reader is told to try."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from e2e_processes import Demo, eventually

pytestmark = pytest.mark.e2e

FORECAST = "weather.get_forecast"
FORECAST_ID = f"tenant-a-mcp/main/{FORECAST}"
FILE = f"tenant-a-{FORECAST}.yaml"
A, B, ADMIN, CONTROL_PLANE = 8080, 8081, 9901, 50052


async def search(demo: Demo, tenant: int, query: str) -> list[str]:
    answer = await demo.post(tenant, "/mcp/search", {"query": query})
    return [tool["name"] for tool in answer["tools"]]


async def call(demo: Demo, tenant: int, name: str, arguments: dict[str, Any]) -> Any:
    """A call as curl would make it: without a session."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    return await demo.post(tenant, "/mcp", body)


async def listed(demo: Demo, tenant: int) -> list[str]:
    answer = await demo.post(tenant, "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    return [tool["name"] for tool in answer["result"]["tools"]]


async def forecast_of(demo: Demo, city: str) -> Any:
    answer = await call(demo, A, FORECAST, {"city": city, "days": 2})
    assert answer["result"]["isError"] is False, answer
    return answer["result"]["structuredContent"]


def rewrite(demo: Demo, **spec: Any) -> None:
    """Change the spec in the forecast's file."""
    path = demo.catalog / FILE
    document = yaml.safe_load(path.read_text("utf-8"))
    document["spec"] |= spec
    path.write_text(yaml.safe_dump(document), encoding="utf-8")


async def nacks(demo: Demo) -> list[Any]:
    (stream,) = (await demo.get(CONTROL_PLANE, "/status"))["streams"]
    found: list[Any] = stream["types"]["McpTool"]["nacks"]
    return found


async def test_a_pushed_tool_is_found_called_and_gone_when_its_file_is_and_the_other_tenant_never_saw_it(
    demo: Demo,
) -> None:
    await demo.ready()
    assert (await search(demo, A, "forecast"))[0] == FORECAST
    before = await listed(demo, A)
    theirs = await listed(demo, B)
    assert "climate__get_monthly_normals" in theirs
    assert not [name for name in theirs if "forecast" in name]

    answer = await forecast_of(demo, "Osaka")
    assert (answer["city"], answer["country"], len(answer["days"])) == ("Osaka", "JP", 2)
    refused = await call(demo, B, FORECAST, {"city": "Osaka"})
    assert refused["error"]["message"] == f"Unknown tool: {FORECAST}"

    (demo.catalog / FILE).unlink()

    async def gone() -> None:
        assert FORECAST not in await listed(demo, A)

    await eventually(gone, timeout=5)
    assert FORECAST not in await search(demo, A, "forecast")
    assert (await call(demo, A, FORECAST, {"city": "Osaka"}))["error"]["message"] == f"Unknown tool: {FORECAST}"
    assert await listed(demo, A) == [name for name in before if name != FORECAST]
    assert await listed(demo, B) == theirs
    assert "get_forecast" not in json.dumps(await demo.post(B, "/mcp/search", {"query": "", "limit": 100}))


async def test_a_bad_file_is_refused_by_name_on_both_sides_and_the_old_version_still_serves(demo: Demo) -> None:
    await demo.ready()
    good = (demo.catalog / FILE).read_text("utf-8")

    (demo.catalog / FILE).write_text(good + "\n- [", encoding="utf-8")  # no YAML

    async def the_file_is_faulty() -> None:
        assert list((await demo.get(CONTROL_PLANE, "/status"))["file_faults"]) == [FILE]

    await eventually(the_file_is_faulty)
    assert await nacks(demo) == []  # it never left the control plane
    assert (await forecast_of(demo, "Lima"))["city"] == "Lima"

    (demo.catalog / FILE).write_text(good, encoding="utf-8")
    rewrite(demo, input_schema={"inline_string": '{"type": "object", "properties": {"city": {"type": "town"}}}'})

    async def refused() -> tuple[list[Any], list[Any]]:
        found = await nacks(demo), (await demo.get(ADMIN, "/problems"))["problems"]
        assert [len(side) for side in found] == [1, 1], demo.logs()
        return found

    (nack,), (problem,) = await eventually(refused)
    assert nack["names"] == [FORECAST_ID]
    assert "town" in nack["reason"]
    assert (problem["name"], problem["state"]) == (FORECAST_ID, "rejected")
    assert "town" in problem["reason"]
    assert (await forecast_of(demo, "Lima"))["city"] == "Lima"

    rewrite(demo, input_schema={"inline_string": '{"type": "object"}'}, description="Taken again")

    async def taken() -> None:
        assert (await demo.get(ADMIN, "/problems"))["problems"] == []
        (tool, *_) = (await demo.post(A, "/mcp/search", {"query": FORECAST}))["tools"]
        assert tool["description"] == "Taken again"

    await eventually(taken)


async def test_without_its_control_plane_the_gateway_serves_on_and_agrees_again_when_it_is_back(demo: Demo) -> None:
    await demo.ready()
    before = (await demo.get(ADMIN, "/readyz"))["control_plane"]
    assert before["connected"] is True
    demo.processes["control_plane"].kill()

    async def is_lost() -> Any:
        state = await demo.get(ADMIN, "/readyz")
        assert state["control_plane"]["connected"] is False
        return state

    lost = await eventually(is_lost)
    assert lost["ready"] is True
    assert (await forecast_of(demo, "Bergen"))["city"] == "Bergen"
    aged = (await demo.get(ADMIN, "/readyz"))["control_plane"]
    assert aged["last_response_age_seconds"] > before["last_response_age_seconds"]
    assert aged["last_error"]

    (demo.catalog / FILE).unlink()  # while nobody looks
    rewritten = demo.catalog / "tenant-a-weather.get_current.yaml"
    rewritten.write_text(rewritten.read_text("utf-8").replace("Current weather", "Weather at this moment"), "utf-8")
    demo.start_control_plane()

    async def agrees() -> None:
        assert (await demo.get(ADMIN, "/readyz"))["control_plane"]["connected"] is True
        answer = await demo.post(A, "/mcp/search", {"query": "weather.get_current"})
        assert answer["tools"][0]["description"].startswith("Weather at this moment")
        assert FORECAST not in await listed(demo, A)

    await eventually(agrees)
    now = (await demo.get(ADMIN, "/readyz"))["control_plane"]
    assert now["last_response_age_seconds"] <= now["connected_for_seconds"]
    assert await nacks(demo) == []


OPENAPI = """
openapi: 3.1.0
info: {title: weather, version: "1"}
paths:
  /v1/current/{city}:
    get:
      operationId: current
      parameters: [{name: city, in: path, required: true, schema: {type: string}}]
      responses: {"200": {description: the weather now}}
"""


async def test_told_to_stop_every_process_ends_with_status_0_and_leaves_no_child(demo: Demo) -> None:
    await demo.ready()
    document = {
        "apiVersion": "ctl.arion.io/v1alpha1",
        "kind": "McpOpenApiSource",
        "metadata": {"name": "tenant-b-mcp/main/api"},
        "spec": {"spec": {"inline_string": OPENAPI}, "namespace": "api", "cluster": "weather_api"},
    }
    # Its expansion starts a worker process, which must not outlive the gateway.
    (demo.catalog / "tenant-b-api.json").write_text(json.dumps(document), encoding="utf-8")

    async def expanded() -> None:
        assert "api__current" in await listed(demo, B), demo.logs()

    await eventually(expanded)
    answer = await call(demo, B, "api.current", {"city": "Cairo"})
    assert json.loads(answer["result"]["content"][0]["text"])["city"] == "Cairo"

    for name in ("gateway", "service", "control_plane"):
        process = demo.processes[name]
        assert process.stop() == 0, process.log()
        assert not process.survivors()
        assert "Traceback" not in process.log(), process.log()
