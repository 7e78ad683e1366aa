"""The MCP server behind the conformance suite's other tools: `python conformance/fixture_mcp_server.py --port N`.

In: calls that the gateway passes on. Out: what a REST service cannot answer: several content blocks, progress, log
messages, requests for input. It speaks 2026-07-28 with the official SDK. Started by run.py, found by the gateway as the
DynamicMcpServer of catalog/server.yaml.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import secrets
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning

Context = ServerRequestContext[Any]
Params = types.CallToolRequestParams
Result = types.CallToolResult | types.InputRequiredResult
Handler = Callable[[Context, Params], Awaitable[Result]]

PAUSE: Final = 0.05
"""Seconds between two notifications, as the suite asks for."""

KEY: Final = secrets.token_bytes(32)
PIXEL: Final = base64.b64encode(bytes.fromhex("474946383961010001000000ff002c00000000010001000002003b")).decode()


def said(text: str) -> types.CallToolResult:
    """A result of one text block."""
    return types.CallToolResult(content=[types.TextContent(text=text)])


def elicit(message: str, field: str, kind: str = "string") -> types.ElicitRequest:
    """Ask the user for one field."""
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return types.ElicitRequest.model_validate({"params": params})


def sample(text: str) -> types.CreateMessageRequest:
    """Ask the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=100))


def sealed(state: str) -> str:
    """The state with a mark that only this process can make."""
    return f"{state}.{hmac.new(KEY, state.encode(), hashlib.sha256).hexdigest()}"


def opened(given: str | None) -> str:
    """The state again; an error of the protocol when it was tampered with."""
    state = (given or "").rpartition(".")[0]
    if given is None or not hmac.compare_digest(sealed(state), given):
        raise MCPError(types.INVALID_PARAMS, "requestState fails its integrity check")
    return state


def ask(state: str | None = None, **requests: types.InputRequest) -> types.InputRequiredResult:
    """A result that asks back."""
    return types.InputRequiredResult(input_requests=requests, request_state=None if state is None else sealed(state))


def answered(params: Params, *keys: str) -> bool:
    """Whether the client answered all of these."""
    return set(keys) <= set(params.input_responses or {})


async def several_blocks(_: Context, __: Params) -> Result:
    """Text, an image and a resource."""
    document = types.TextResourceContents(
        uri="test://mixed-content-resource", mime_type="application/json", text='{"test":"data","value":123}'
    )
    blocks: list[Any] = [
        types.TextContent(text="Multiple content types test:"),
        types.ImageContent(data=PIXEL, mime_type="image/gif"),
        types.EmbeddedResource(resource=document),
    ]
    return types.CallToolResult(content=blocks)


async def progress(ctx: Context, _: Params) -> Result:
    """0, 50 and 100 of 100."""
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await anyio.sleep(PAUSE)
    return said("done")


async def log(ctx: Context, _: Params) -> Result:
    """Three messages; the SDK sends them only to who asked for the level."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await ctx.session.send_log_message("info", text, related_request_id=ctx.request_id)
        await anyio.sleep(PAUSE)
    return said("done")


async def need_sampling(ctx: Context, _: Params) -> Result:
    """Refuse clients without sampling."""
    wanted = types.ClientCapabilities(sampling=types.SamplingCapability())
    if not ctx.session.check_client_capability(wanted):
        data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs sampling", data)
    return said("you can sample")


async def ask_while_streaming(ctx: Context, params: Params) -> Result:
    """Progress first, then a question."""
    await ctx.session.report_progress(1, 2)
    return said("thank you") if answered(params, "name") else ask(name=elicit("Who?", "name"))


async def ask_name(_: Context, params: Params) -> Result:
    """One question to the user."""
    match (params.input_responses or {}).get("user_name"):
        case types.ElicitResult(content=dict(content)):
            return said(f"Hello, {content.get('name')}!")
        case _:
            return ask(user_name=elicit("What is your name?", "name"))


async def ask_model(_: Context, params: Params) -> Result:
    """One question to the model."""
    if answered(params, "capital_question"):
        return said("The model has answered")
    return ask(capital_question=sample("What is the capital of France?"))


async def ask_roots(_: Context, params: Params) -> Result:
    """The client's roots."""
    match (params.input_responses or {}).get("client_roots"):
        case types.ListRootsResult(roots=roots):
            return said(", ".join(str(root.uri) for root in roots))
        case _:
            return ask(client_roots=types.ListRootsRequest())


async def ask_with_state(_: Context, params: Params) -> Result:
    """A question with sealed state; used for the round trip and for tampering."""
    if not answered(params, "confirm"):
        return ask("confirming", confirm=elicit("Please confirm", "ok", "boolean"))
    return said("state-ok" if opened(params.request_state) == "confirming" else "state lost")


async def ask_three_things(_: Context, params: Params) -> Result:
    """User, model and roots at once."""
    if answered(params, "user_name", "greeting", "client_roots"):
        return said(opened(params.request_state))
    return ask(
        "three",
        user_name=elicit("What is your name?", "name"),
        greeting=sample("Generate a greeting"),
        client_roots=types.ListRootsRequest(),
    )


async def ask_twice(_: Context, params: Params) -> Result:
    """Two rounds, each with its own state."""
    if answered(params, "step2") and opened(params.request_state) == "round 2":
        return said("both steps done")
    if answered(params, "step1") and opened(params.request_state) == "round 1":
        return ask("round 2", step2=elicit("Step 2: What is your favorite color?", "color"))
    return ask("round 1", step1=elicit("Step 1: What is your name?", "name"))


async def ask_what_is_possible(ctx: Context, _: Params) -> Result:
    """Only what the client declared."""
    requests: dict[str, types.InputRequest] = {}
    if ctx.session.check_client_capability(types.ClientCapabilities(sampling=types.SamplingCapability())):
        requests["model"] = sample("Anything")
    if ctx.session.check_client_capability(types.ClientCapabilities(elicitation=types.ElicitationCapability())):
        requests["user"] = elicit("Anything?", "thing")
    return ask("asked", **requests)


TOOLS: Final[dict[str, Handler]] = {
    "test_multiple_content_types": several_blocks,
    "test_tool_with_progress": progress,
    "test_tool_with_logging": log,
    "test_logging_tool": log,
    "test_missing_capability": need_sampling,
    "test_streaming_elicitation": ask_while_streaming,
    "test_input_required_result_elicitation": ask_name,
    "test_input_required_result_sampling": ask_model,
    "test_input_required_result_list_roots": ask_roots,
    "test_input_required_result_request_state": ask_with_state,
    "test_input_required_result_tampered_state": ask_with_state,
    "test_input_required_result_multiple_inputs": ask_three_things,
    "test_input_required_result_multi_round": ask_twice,
    "test_input_required_result_capabilities": ask_what_is_possible,
    # Asked for by handshake clients, which cannot be asked back through the gateway.
    "test_sampling": ask_model,
    "test_elicitation": ask_name,
    "test_elicitation_sep1034_defaults": ask_name,
    "test_elicitation_sep1330_enums": ask_name,
}


async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    """All of them; none takes arguments."""
    schema = {"type": "object"}
    return types.ListToolsResult(
        tools=[types.Tool(name=name, description=made.__doc__, input_schema=schema) for name, made in TOOLS.items()]
    )


async def call_tool(ctx: Context, params: Params) -> Result:
    """Run one."""
    handler = TOOLS.get(params.name)
    if handler is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await handler(ctx, params)


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args(arguments)
    server = Server("fixtures", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=options.port, log_level="warning")
    return 0


if __name__ == "__main__":
    sys.exit(main())
