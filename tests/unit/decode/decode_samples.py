"""Good messages of each type, for tests to bend, and short ways to decode them."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.message import Message

from arion_tds.decode.rules import INLINE_ONLY, DataRules
from arion_tds.decode.table import Decoded, decode
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit
from arion_tds.pb import mcp_gateway_pb2 as pb

SCOPE = "gw/main"


def rest_tool() -> pb.Tool:
    made = pb.Tool(namespace="weather", name="get_forecast", description="Forecast of a city")
    made.input_schema.inline_string = '{"type":"object","properties":{"city":{"type":"string"}}}'
    made.rest_backend.method = "GET"
    made.rest_backend.path = "/v1/cities/{{city}}"
    made.rest_backend.cluster = "weather_api"
    return made


def mcp_tool() -> pb.Tool:
    made = pb.Tool(namespace="notes", name="add", description="Add a note")
    made.mcp_server_backend.transport = pb.McpServerBackend.StreamableHttp
    made.mcp_server_backend.url = "http://notes.test/mcp"
    return made


def source() -> pb.OpenApiToolSource:
    made = pb.OpenApiToolSource(namespace="pets", cluster="pets_api")
    made.spec.inline_string = '{"openapi":"3.1.0"}'
    return made


def server() -> pb.DynamicMcpServer:
    return pb.DynamicMcpServer(
        namespace="notes", transport=pb.McpServerBackend.StreamableHttp, url="https://notes.test/mcp"
    )


def toolkit() -> pb.Toolkit:
    return pb.Toolkit(
        name="trip",
        description="Plan a trip",
        instructions="Look at the weather first.",
        tools=[
            pb.ToolkitToolRef(namespace="weather", name="get_forecast"),
            pb.ToolkitToolRef(namespace="maps", name="route"),
        ],
    )


def deliver(message: Message, name: str, rules: DataRules = INLINE_ONLY) -> Decoded:
    """Decode the message as the resource `gw/main/<name>`."""
    kinds = {pb.Tool: Kind.TOOL, pb.OpenApiToolSource: Kind.SOURCE, pb.DynamicMcpServer: Kind.SERVER}
    kind = kinds.get(type(message), Kind.TOOLKIT)
    return decode(kind, ResourceId(SCOPE, name), message.SerializeToString(), rules)


def rest(bend: Callable[[pb.Tool], object] = lambda _: None, rules: DataRules = INLINE_ONLY) -> Decoded:
    """Decode the good REST tool after `bend` has changed it."""
    made = rest_tool()
    bend(made)
    return deliver(made, "weather.get_forecast", rules)


def why(decoded: Decoded) -> str:
    """The reason of a refusal, which must be one and must name the resource in full."""
    assert decoded.value is None
    assert decoded.problem is not None
    assert decoded.problem.where.startswith(f"{SCOPE}/")
    return decoded.problem.why


def a_tool(decoded: Decoded) -> Tool:
    assert isinstance(decoded.value, Tool), decoded.problem
    return decoded.value


def a_source(decoded: Decoded) -> OpenApiSource:
    assert isinstance(decoded.value, OpenApiSource), decoded.problem
    return decoded.value


def a_server(decoded: Decoded) -> McpServer:
    assert isinstance(decoded.value, McpServer), decoded.problem
    return decoded.value


def a_toolkit(decoded: Decoded) -> Toolkit:
    assert isinstance(decoded.value, Toolkit), decoded.problem
    return decoded.value
