"""One MCP server with all of the suite's fixture tools: `python -m conformance.fixture_upstream --port N`.

In: calls that the gateway passes on. Out: what the suite wants to see from the tools of those names: those of
fixture_mcp_server, and those that fixture_service answers over REST, with the schemas of catalog/tools.yaml.
`--handshake`: a server as they were before 2026-07-28. Started by upstream.
"""

from __future__ import annotations

import argparse
import base64
import json
import pathlib
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

import mcp_types as types
import uvicorn
import yaml
from mcp import MCPError
from mcp.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

from conformance.fixture_mcp_server import TOOLS, Context, Handler, Params, Result, said
from conformance.fixture_service import PNG, WAV

CATALOG: Final = pathlib.Path(__file__).with_name("catalog") / "tools.yaml"
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Fixture:
    """The tools, one of which comes and goes."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._schemas = _schemas()
        self._more = False
        self._plain: dict[str, Handler] = {
            "test_simple_text": self._text,
            "test_image_content": self._image,
            "test_audio_content": self._audio,
            "test_embedded_resource": self._document,
            "test_error_handling": self._error,
            "test_trigger_tool_change": self._change,
            "test_x_mcp_header": self._echo,
            "json_schema_2020_12_tool": self._text,
        }

    @property
    def tools(self) -> dict[str, Handler]:
        """By name."""
        return {**TOOLS, **self._plain, **({"test_extra_tool": self._text} if self._more else {})}

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """All of them."""
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name, description=made.__doc__, input_schema=self._schemas.get(name, {"type": "object"})
                )
                for name, made in self.tools.items()
            ]
        )

    async def call_tool(self, ctx: Context, params: Params) -> Result:
        """Run one."""
        handler = self.tools.get(params.name)
        if handler is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        return await handler(ctx, params)

    async def _text(self, _: Context, __: Params) -> Result:
        """Text."""
        return said("This is a simple text response for testing.")

    async def _image(self, _: Context, __: Params) -> Result:
        """A PNG."""
        return _block(types.ImageContent(data=base64.b64encode(PNG).decode(), mime_type="image/png"))

    async def _audio(self, _: Context, __: Params) -> Result:
        """A WAV."""
        return _block(types.AudioContent(data=base64.b64encode(WAV).decode(), mime_type="audio/wav"))

    async def _document(self, _: Context, __: Params) -> Result:
        """A resource."""
        text = types.TextResourceContents(uri="test://embedded-resource", mime_type="text/plain", text="Embedded.")
        return _block(types.EmbeddedResource(resource=text))

    async def _error(self, _: Context, __: Params) -> Result:
        """An error of the tool."""
        text = types.TextContent(text="This tool intentionally returns an error for testing")
        return types.CallToolResult(content=[text], is_error=True)

    async def _echo(self, _: Context, params: Params) -> Result:
        """Its arguments again."""
        return said(json.dumps(params.arguments))

    async def _change(self, _: Context, __: Params) -> Result:
        """One tool more, or one less."""
        self._more = not self._more
        await self.bus.publish(ToolsListChanged())
        return said("changed")


def _block(block: types.ContentBlock) -> types.CallToolResult:
    return types.CallToolResult(content=[block])


def _schemas() -> dict[str, dict[str, Any]]:
    """The input schemas that the REST tools have, by name."""
    specs = [document["spec"] for document in yaml.safe_load_all(CATALOG.read_text("utf-8"))]
    return {spec["name"]: json.loads(spec["input_schema"]["inline_string"]) for spec in specs if "input_schema" in spec}


def _before_2026(app: App) -> App:
    """The application as one that has never heard of the modern era."""

    async def older(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (b"mcp-protocol-version", b"2026-07-28") in scope["headers"]:
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"Bad Request: Unsupported protocol version"})
            return
        await app(scope, receive, send)

    return older


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--handshake", action="store_true", help="refuse 2026-07-28, as older servers do")
    options = parser.parse_args(arguments)
    fixture = Fixture()
    server = Server(
        "fixtures",
        version="1",
        on_list_tools=fixture.list_tools,
        on_call_tool=fixture.call_tool,
        on_subscriptions_listen=ListenHandler(fixture.bus),
    )
    app: App = server.streamable_http_app()
    uvicorn.run(
        _before_2026(app) if options.handshake else app, host="127.0.0.1", port=options.port, log_level="warning"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
