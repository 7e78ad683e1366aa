"""Generate docs/walkthrough.md from a real run: one tool from its document to the model, with the bytes of every step.

A control plane that writes down what it reads and sends, a REST service that does the same, and a gateway between them,
all in this process. `--check` compares instead of writing. Ports and dates are those of the documentation.
"""

from __future__ import annotations

import asyncio
import json
import pathlib
import re
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
import yaml
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest, DeltaDiscoveryResponse

from arion_tds import app
from arion_tds.config import judging
from arion_tds.search import tokens
from control_plane_example import documents, wire
from control_plane_example.subscription import Outgoing

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "walkthrough.md"
SECONDS = 20.0
NAME = "tenant-a-mcp/main/weather.get_forecast"
DOCUMENT = """apiVersion: ctl.arion.io/v1alpha1
kind: McpTool
metadata: {name: tenant-a-mcp/main/weather.get_forecast, fleet: arion}
spec:
  namespace: weather
  name: get_forecast
  description: Weather forecast of a city
  input_schema:
    inline_string: '{"type":"object","required":["city"],"properties":{"city":{"type":"string"},"days":{"type":"integer"}}}'
  rest_backend:
    method: GET
    path: /v1/forecast/{{city}}
    query_params: [{name: days, source: days}]
    cluster: weather_api
"""
CONFIG = """node: {id: gateway-1, cluster: arion}
control_plane: {address: 127.0.0.1:50051}
admin: {address: 127.0.0.1:9901}
listeners:
  - name: tenant-a
    address: 127.0.0.1:8080
    mcp_gateway:
      server_info: {name: tenant-a-mcp, version: "1.0.0"}
      tools_mode: {}
      tds: {config_name: main}
clusters:
  - name: weather_api
    endpoints: ["http://127.0.0.1:4001"]
"""
ANSWER = b'{"city":"Osaka","days":[{"day":1,"temperature":17.3,"sky":"light rain"}]}'
TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "x-request-id": "walkthrough-1",
}


class Plane:
    """A control plane that serves one tool, byte by byte."""

    def __init__(self) -> None:
        held = documents.encode("McpTool", yaml.safe_load(DOCUMENT)["spec"])
        if isinstance(held, documents.Fault):
            raise TypeError(held)
        self.held = held
        self.url = documents.TYPE_URLS["McpTool"]
        self.asked = self.sent = self.answered = b""
        self.done = asyncio.Event()

    async def serve(self, requests: AsyncIterator[bytes], _: object) -> AsyncIterator[bytes]:
        """One stream."""
        async for raw in requests:
            request = DeltaDiscoveryRequest.FromString(raw)
            if request.response_nonce and request.type_url == self.url:
                self.answered = raw
                self.done.set()
            elif not request.response_nonce:
                mine = request.type_url == self.url
                resources = ((NAME, self.held),) if mine else ()
                sent = wire.encode(wire.response(Outgoing(request.type_url, "1", resources), "walkthrough"))
                if mine:
                    self.asked, self.sent = raw, sent
                yield sent


class Service:
    """A REST service that answers one thing and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked = self.sent = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        self.asked = await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(ANSWER)}\r\n\r\n"
        self.sent = head.encode() + ANSWER
        writer.write(self.sent)
        await writer.drain()
        writer.close()


async def exchange(address: str, path: str, body: dict[str, Any], **headers: str) -> tuple[bytes, bytes]:
    """One POST over a connection of its own: what was written, what came back."""
    host, _, port = address.rpartition(":")
    content = json.dumps(body, separators=(",", ":")).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        f"host: {address}",
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        *(f"{name}: {value}" for name, value in headers.items()),
        f"content-length: {len(content)}",
        "connection: close",
    ]
    asked = "\r\n".join(lines).encode() + b"\r\n\r\n" + content
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(asked)
    answer = await reader.read()
    writer.close()
    return asked, answer


def rpc(method: str, **params: object) -> dict[str, Any]:
    """A JSON-RPC request of a handshake revision."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def hexed(data: bytes) -> str:
    """Bytes as `hexdump -C` shows them."""
    rows = []
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        shown = "".join(chr(one) if 32 <= one < 127 else "." for one in part)
        rows.append(f"{at:04x}  {part.hex(' '):<47}  |{shown}|")
    return "\n".join(rows)


def http(data: bytes) -> str:
    """An HTTP message as text, without what differs from run to run."""
    text = data.decode().replace("\r\n", "\n")
    return re.sub(r"(?m)^(date): .*$", r"\1: Thu, 01 Jan 2026 00:00:00 GMT", text, flags=re.IGNORECASE)


def written(message: DeltaDiscoveryRequest | DeltaDiscoveryResponse) -> str:
    """A protobuf message as text; payloads are shown elsewhere."""
    text = re.sub(r'(?m)^( *value: )".*', r"\1…  (the bytes of step 2)", str(message))
    return re.sub(r'(user_agent_version|build_version): ".*"', r'\1: "…"', text).rstrip()


async def run() -> str:
    """The page, from a real run."""
    plane, service = Plane(), Service()
    server = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(plane.serve)  # no serialisers: bytes
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(wire.SERVICE, {wire.METHOD: handler})])
    plane_port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    upstream = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service_port = upstream.sockets[0].getsockname()[1]
    config = CONFIG.replace("50051", str(plane_port)).replace("4001", str(service_port))
    config = config.replace("8080", "0").replace("9901", "0")
    try:
        async with asyncio.timeout(SECONDS), app.running(judging.judge(yaml.safe_load(config))) as gateway:
            await plane.done.wait()
            address = gateway.bound["tenant-a"]
            listed = await exchange(address, "/mcp", rpc("tools/list"))
            found = await exchange(address, "/mcp/search", {"query": "what will the weather be", "limit": 1})
            arguments = {"city": "Osaka", "days": 1}
            called = await exchange(
                address, "/mcp", rpc("tools/call", name="weather.get_forecast", arguments=arguments), **TRACE
            )
            (entry,) = gateway.catalogs[0].published.view.tools.values()
            cost = tokens.count([tokens.text(entry.tool)])[0]
    finally:
        upstream.close()
        await upstream.wait_closed()
        await server.stop(None)
    page = TEMPLATE.format(
        document=DOCUMENT.rstrip(),
        config=CONFIG.rstrip(),
        length=len(plane.held.payload),
        payload=hexed(plane.held.payload),
        version=plane.held.version,
        asked=written(DeltaDiscoveryRequest.FromString(plane.asked)),
        sent=written(DeltaDiscoveryResponse.FromString(plane.sent)),
        sent_length=len(plane.sent),
        answered=written(DeltaDiscoveryRequest.FromString(plane.answered)),
        answered_hex=hexed(plane.answered),
        definition=entry.modern.decode(),
        list_asked=http(listed[0]),
        list_answer=http(listed[1]),
        search_asked=http(found[0]),
        search_answer=http(found[1]),
        call_asked=http(called[0]),
        service_asked=http(service.asked).rstrip(),
        service_sent=http(service.sent),
        call_answer=http(called[1]),
        tokens=cost,
    )
    return page.replace(address, "127.0.0.1:8080").replace(f":{service_port}", ":4001")


TEMPLATE = """# One tool, from its document to the model

Every byte on this page was written by a real run (`python scripts/walkthrough.py`); a test runs it again and compares. Only ports
and dates are made up. The gateway's config:

```yaml
{config}
```

## 1. The document

What an operator writes, and keeps in version control:

```yaml
{document}
```

## 2. The resource

The control plane turns `spec` into the protobuf message `Tool` (proto/…/mcp_gateway.proto). These {length} bytes are all that the
tool is on the wire:

```
{payload}
```

`0a` is field 1, `namespace`, of 7 bytes; `12` field 2, `name`; `1a` the description; `22` the input schema, a `DataSource` whose
field 3 is an inline string; `32` the REST backend. The version is the control plane's own affair; here it is a hash of the bytes,
`{version}`.

## 3. The push

The gateway has opened one gRPC stream, `DeltaAggregatedResources`, and asked for four types on it. For tools:

```
{asked}
```

The control plane answers with {sent_length} bytes, which say:

```
{sent}
```

The resource's name says whose it is: scope `tenant-a-mcp/main`, then the tool's qualified name.

## 4. The verdict

The gateway decodes the message, checks every rule (name, schema, template, method, cluster policy), sees that the namespace
`weather` is free, and publishes. Then, and only then, it answers with the response's nonce and without an `error_detail`: an ACK.

```
{answered}
```

```
{answered_hex}
```

Had a rule been broken, `error_detail` would name the resource and the reason, and whatever served before would serve on.

## 5. What is published

The tool's definition is made into JSON once, now, and not again for any request:

```json
{definition}
```

## 6. A client lists

```http
{list_asked}
```

```http
{list_answer}
```

That object under `tools` is what the client hands to its model: name, description and input schema, here about {tokens} tokens of its
context.

## 7. Or searches

```http
{search_asked}
```

```http
{search_answer}
```

## 8. The model calls

The model has decided on a name and arguments; its client sends them. `traceparent` and `x-request-id` are optional, and passed on:

```http
{call_asked}
```

The gateway checks the arguments against the schema, writes `city` into the path as one encoded segment and `days` into the query,
takes a connection of the cluster `weather_api`, and sends:

```http
{service_asked}
```

The service answers:

```http
{service_sent}
```

## 9. What the model reads

```http
{call_answer}
```

The text under `content` is what stands in the model's context. With an `output_schema` in the document the answer would be
validated, and given as `structuredContent` too.
"""


def main() -> int:
    """Write the page, or with `--check` compare it."""
    page = asyncio.run(run())
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text("utf-8") != page:
        print("docs/walkthrough.md is stale: run `python scripts/walkthrough.py`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
