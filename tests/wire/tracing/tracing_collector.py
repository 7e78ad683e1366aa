"""A collector as an operator would run it: takes spans over OTLP/HTTP as JSON, or refuses them as the test says.

Each span and the resource are decoded, without tolerance, by the official protobuf classes that come with Envoy's.
Those are of a time when the messages around the spans had other names, so that these are looked at here.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web
from gateway_house import BOUND, serving
from google.protobuf import json_format
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

KINDS = {1: "internal", 2: "server", 3: "client"}


class Told:
    """A span as the collector has it. `parent` is "" where it is the first of its trace."""

    def __init__(self, span: Any) -> None:
        self.name: str = span.name
        self.kind = KINDS[span.kind]
        self.trace: str = span.trace_id.hex()
        self.id: str = span.span_id.hex()
        self.parent: str = span.parent_span_id.hex()
        self.state: str = span.trace_state
        self.failed = span.status.code == trace_pb2.Status.STATUS_CODE_ERROR
        self.links = [one.span_id.hex() for one in span.links]
        self.attributes = {one.key: _value(one.value) for one in span.attributes}
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
        assert len(self.attributes) == len(span.attributes)
        assert (len(self.trace), len(self.id)) == (32, 16)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name!r} {self.attributes}>"


class Collector:
    """`spans`: what was taken. `answers`: to the next POSTs, then 200. `open` closed: no POST is answered."""

    def __init__(self) -> None:
        self.spans: list[Told] = []
        self.resource: dict[str, Any] = {}
        self.sizes: list[int] = []
        self.bodies: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[int] = []
        self.answer = b"{}"
        self.asked = 0
        self.open = asyncio.Event()
        self.open.set()
        self.url = ""
        self._changed = asyncio.Condition()

    async def handle(self, request: web.BaseRequest) -> web.Response:
        body = (await request.content.read()).decode()  # of any size
        assert request.raw_path == "/v1/traces"
        self.asked += 1
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        async with self._changed:
            self._changed.notify_all()
        await self.open.wait()
        status = self.answers.pop(0) if self.answers else 200
        if status == 200:
            self.bodies.append(body)
            self._take(json.loads(body))
        async with self._changed:
            self._changed.notify_all()
        return web.Response(status=status, body=self.answer, content_type="application/json")

    def _take(self, body: Any) -> None:
        ((all_of_it,),) = (body.pop("resourceSpans"),)
        (scoped,) = all_of_it.pop("scopeSpans")
        resource = json_format.ParseDict(all_of_it.pop("resource"), resource_pb2.Resource())
        self.resource = {one.key: _value(one.value) for one in resource.attributes}
        assert scoped.pop("scope").keys() == {"name", "version"}
        spans = scoped.pop("spans")
        assert (body, all_of_it, scoped) == ({}, {}, {})
        self.sizes.append(len(spans))
        self.spans += [Told(json_format.ParseDict(_as_protobuf(one), trace_pb2.Span())) for one in spans]

    def named(self, name: str) -> Told:
        """The one span of that name."""
        (found,) = [one for one in self.spans if one.name == name]
        return found

    def of(self, kind: str) -> list[Told]:
        """Spans of a kind, as they ended."""
        return [one for one in self.spans if one.kind == kind]

    async def until(self, what: Callable[[], Any]) -> None:
        """Wait until `what()` holds."""
        async with asyncio.timeout(BOUND), self._changed:
            await self._changed.wait_for(what)


def _as_protobuf(span: Any) -> Any:
    """OTLP's JSON differs from protobuf's own in that ids are hex."""
    made = dict(span)
    for key in ("traceId", "spanId", "parentSpanId"):
        if key in made:
            assert re.fullmatch("[0-9a-f]{16}|[0-9a-f]{32}", made[key])
            made[key] = base64.b64encode(bytes.fromhex(made[key])).decode()
    if "links" in made:
        made["links"] = [_as_protobuf(one) for one in made["links"]]
    for key in ("startTimeUnixNano", "endTimeUnixNano"):
        if key in made:
            assert isinstance(made[key], str)
    return made


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))


@contextlib.asynccontextmanager
async def collector() -> AsyncIterator[Collector]:
    """A collector that listens."""
    made = Collector()
    async with serving(made.handle) as origin:
        made.url = origin
        yield made
