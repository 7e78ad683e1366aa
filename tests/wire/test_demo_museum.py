"""The demo's OpenAPI document against the demo's museum: each operation's tool is called for real."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

import control_plane_example
from arion_tds.backends.clusters import Clusters
from arion_tds.model.cluster import Cluster
from arion_tds.model.context import CallContext, Limits
from arion_tds.model.http import HttpResponse
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.openapi import request, respond
from arion_tds.openapi.binding import Binding
from arion_tds.openapi.expand import expand
from arion_tds.openapi.limits import Limits as DocumentLimits
from arion_tds.pb import mcp_gateway_pb2 as pb
from control_plane_example import documents, sample_service

CATALOG = f"{control_plane_example.__path__[0]}/catalog/tenant-a-museum.yaml"
CONTEXT = CallContext(request_id="r", traceparent="00-" + "1" * 32 + "-" + "2" * 16 + "-01")


@pytest.fixture
async def clusters() -> AsyncIterator[Clusters]:
    app: web.Application = sample_service.app()
    async with TestServer(app) as server:
        made = Clusters({"museum": Cluster(name="museum", endpoints=(f"http://127.0.0.1:{server.port}",))})
        yield made
        await made.close()


def tools() -> dict[str, Tool]:
    with open(CATALOG, encoding="utf-8") as file:
        (document,) = documents.read(file.read())
    source = pb.OpenApiToolSource.FromString(document.held.payload)
    found = expand(
        OpenApiSource(namespace="museum", document=source.spec.inline_string.encode(), cluster="museum"),
        DocumentLimits(),
    )
    assert not found.problems
    assert not found.warnings
    return {tool.name: tool for tool in found.tools}


async def call(clusters: Clusters, tool: Tool, **arguments: Any) -> tuple[Any, bool]:
    binding = tool.backend.binding  # type: ignore[union-attr]
    assert isinstance(binding, Binding)
    assert tool.input_schema.mismatch(arguments) is None
    built = request.build(binding, arguments)
    answer = await clusters.send("museum", built, tool.backend.policy, Limits(5.0, 1 << 20), CONTEXT)  # type: ignore[arg-type, union-attr]
    assert isinstance(answer, HttpResponse), answer
    result = respond.respond(binding, tool.output_schema, answer)
    return (None if result.structured is None else json.loads(result.structured)), result.is_error


async def test_every_operation_answers_as_its_document_says(clusters: Clusters) -> None:
    museum = tools()
    assert sorted(museum) == [
        "buyTickets",
        "getExhibition",
        "getOpeningHours",
        "getTicket",
        "listExhibitions",
        "returnTicket",
    ]
    hours, _ = await call(clusters, museum["getOpeningHours"], **{"from": "2030-05-05", "days": 2})
    assert [day["opens"] for day in hours["hours"]] == ["10:00", None]
    shown, _ = await call(clusters, museum["listExhibitions"], open=True, theme="science")
    assert [one["id"] for one in shown["exhibitions"]] == ["tides"]
    assert (await call(clusters, museum["getExhibition"], id="night"))[0]["title"] == "Maps of the Night"
    assert (await call(clusters, museum["getExhibition"], id="../hours"))[1]
    bought, _ = await call(clusters, museum["buyTickets"], kind="child", day="2030-05-05", count=2)
    assert bought["price"] == 13.0
    assert (await call(clusters, museum["getTicket"], id=bought["id"]))[0] == bought
    assert await call(clusters, museum["returnTicket"], id=bought["id"]) == (None, False)
    assert (await call(clusters, museum["returnTicket"], id=bought["id"]))[1]
