"""The sample weather service answers what the demo catalog promises, the same every time."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
from aiohttp.test_utils import TestClient, TestServer

import control_plane_example
from arion_tds.pb import mcp_gateway_pb2 as pb
from control_plane_example import documents, sample_service

CATALOG = Path(control_plane_example.__file__).parent / "catalog"
CALLS = {
    "weather.get_forecast": ("GET", "/v1/forecast/Z%C3%BCrich?days=14&units=imperial", None),
    "weather.get_current": ("GET", "/v1/current/osaka", None),
    "weather.list_alerts": ("GET", "/v1/alerts?region=NO", None),
    "weather.submit_observation": ("POST", "/v1/observations", {"city": "Lima", "temperature": 19.5, "note": "shade"}),
    "climate.get_monthly_normals": ("GET", "/v1/climate/Nairobi/7", None),
}


async def test_answers_match_the_output_schemas_of_the_catalog_and_repeat() -> None:
    async with TestClient(TestServer(sample_service.app())) as client:
        for path in CATALOG.glob("*.yaml"):
            found = documents.read(path.read_text("utf-8"))
            assert isinstance(found, list)
            for document in (one for one in found if one.kind == "McpTool"):
                tool = pb.Tool.FromString(document.held.payload)
                method, url, body = CALLS[f"{tool.namespace}.{tool.name}"]
                answers = []
                for _ in range(2):
                    async with client.request(method, url, json=body) as response:
                        assert response.status in {200, 201}
                        answers.append(await response.json())
                assert answers[0] == answers[1]
                jsonschema_rs.validator_for(json.loads(tool.output_schema.inline_string)).validate(answers[0])


@pytest.mark.parametrize(
    ("method", "url", "body", "status", "sentence"),
    [
        ("GET", "/v1/forecast/Atlantis", None, 404, "unknown city 'Atlantis'"),
        ("GET", "/v1/forecast/Lima?days=15", None, 400, "days must be a whole number from 1 to 14"),
        ("GET", "/v1/forecast/Lima?days=x", None, 400, "days must be a whole number"),
        ("GET", "/v1/current/Lima?units=kelvin", None, 400, "units must be metric or imperial"),
        ("GET", "/v1/climate/Lima/13", None, 400, "month must be"),
        ("POST", "/v1/observations", {"city": "Lima"}, 422, "needs a city and a temperature"),
        ("POST", "/v1/observations", {"city": "Atlantis", "temperature": 1}, 422, "unknown city"),
        ("POST", "/v1/observations", [1], 422, "needs a city"),
    ],
)
async def test_what_cannot_be_answered_says_why(
    method: str, url: str, body: object, status: int, sentence: str
) -> None:
    async with (
        TestClient(TestServer(sample_service.app())) as client,
        client.request(method, url, json=body) as response,
    ):
        assert response.status == status
        assert sentence in (await response.json())["error"]
