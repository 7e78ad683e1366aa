"""What a running gateway tells a collector of its requests, calls and pushes, and what upstreams hear of the trace."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from gateway_house import BOUND, House, Spec, house, inline, listener, serving, settings, tool
from gateway_upstreams import McpUpstream, server
from tracing_collector import Collector, Told, collector

from arion_tds.config import judging

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
SAMPLED = f"00-{TRACE}-{PARENT}-01"
UNSAMPLED = f"00-{TRACE}-{PARENT}-00"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
RETRY = {"retry_policy": {"retry_on": "5xx", "num_retries": 2, "retry_back_off": {"base_interval": "0.001s"}}}


class Rest:
    """A REST service that remembers the headers of what it was asked. `answers`: statuses of the next answers."""

    def __init__(self) -> None:
        self.heard: list[dict[str, str]] = []
        self.answers: list[int] = []
        self.open = asyncio.Event()
        self.open.set()
        self.asked = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.heard.append({name.lower(): value for name, value in request.headers.items()})
        self.asked.set()
        await self.open.wait()
        return web.json_response({"answer": "forty-two"}, status=self.answers.pop(0) if self.answers else 200)


class Traced:
    """A gateway with a tool, `ns.echo`, on a REST service, and a collector."""

    def __init__(self, here: House, to: Collector, rest: Rest, cluster: Spec) -> None:
        self.here = here
        self.to = to
        self.rest = rest
        self.cluster = cluster

    async def post(self, method: str, params: Spec, **headers: str) -> Spec:
        """A request of the handshake era; the whole answer."""
        body = {"jsonrpc": "2.0", "id": "r-7", "method": method, "params": params}
        url = f"{self.here.a.url}/mcp"
        sent = {"accept": "application/json, text/event-stream", **headers}
        async with asyncio.timeout(BOUND), self.here.http.post(url, json=body, headers=sent) as response:
            found: Spec = await response.json()
            return found

    async def call(self, name: str = "ns.echo", *, meta: Spec | None = None, **headers: str) -> Spec:
        """A tools/call with a secret in its arguments."""
        params: Spec = {"name": name, "arguments": {"word": "tell-nobody"}}
        return await self.post("tools/call", params if meta is None else {**params, "_meta": meta}, **headers)

    async def told(self, count: int) -> list[Told]:
        """The spans, once there are so many beside those of pushes."""
        await self.to.until(lambda: len(self.requests) >= count)
        return self.requests

    @property
    def requests(self) -> list[Told]:
        return [one for one in self.to.spans if one.name != "tds.push"]


@contextlib.asynccontextmanager
async def tracing(*listeners: Spec, policy: Spec | None = None, **more: Any) -> AsyncIterator[Traced]:
    rest = Rest()
    async with collector() as to, serving(rest.handle) as origin:
        tracing = {"endpoint": to.url, "batch_interval": "10ms", **more.pop("tracing", {})}
        cluster = {"name": "rest", "endpoints": [origin]}
        async with house(*listeners, tracing=tracing, more_clusters=[cluster], **more) as here:
            backend = {"method": "GET", "path": "/echo/{{word}}?key=s3cret", "cluster": "rest"}
            schema = inline({"type": "object", "properties": {"word": {"type": "string"}}})
            await here.put(
                "McpTool",
                "a/main/ns.echo",
                tool("ns.echo", input_schema=schema, rest_backend={**backend, "upstream_policy": policy or {}}),
            )
            yield Traced(here, to, rest, cluster)


async def test_a_call_is_a_server_span_under_the_callers_and_a_client_span_that_the_upstream_hears_of() -> None:
    async with tracing() as it:
        answer = await it.call(traceparent=SAMPLED, tracestate="vendor=1", **{"mcp-protocol-version": "2025-06-18"})
        assert not answer["result"].get("isError")
        client, server = await it.told(2)
    assert (server.name, server.kind, server.trace, server.parent) == ("tools/call ns.echo", "server", TRACE, PARENT)
    assert server.attributes == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "ns.echo",
        "jsonrpc.request.id": "r-7",
        "mcp.protocol.version": "2025-06-18",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "client.address": "127.0.0.1",
        "arion_tds.listener": "a",
    }
    assert (client.name, client.kind, client.trace, client.parent) == ("GET", "client", TRACE, server.id)
    port = int(it.cluster["endpoints"][0].rpartition(":")[2])
    assert client.attributes == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "url.scheme": "http",
        "server.address": "127.0.0.1",
        "server.port": port,
        "network.protocol.version": "1.1",
        "arion_tds.cluster": "rest",
    }
    assert {server.state, client.state} == {"vendor=1"}
    (heard,) = it.rest.heard
    assert heard["traceparent"] == f"00-{TRACE}-{client.id}-01"
    assert heard["tracestate"] == "vendor=1"
    assert not server.failed
    assert not client.failed


async def test_the_resource_says_which_gateway_it_is() -> None:
    async with tracing(tracing={"service_name": "gw"}, node={"id": "gw-1"}) as it:
        await it.post("ping", {})
        await it.told(1)
    assert it.to.resource.pop("service.version")
    assert it.to.resource.pop("process.pid") == os.getpid()
    assert it.to.resource == {"service.name": "gw", "service.instance.id": "gw-1", "service.namespace": "arion"}


async def test_a_trace_context_in_meta_goes_before_that_of_the_headers_which_is_linked() -> None:
    async with tracing() as it:
        await it.call(traceparent=OTHER, tracestate="b=2", meta={"traceparent": SAMPLED, "tracestate": "a=1"})
        client, server = await it.told(2)
    assert (server.trace, server.parent, server.state, server.links) == (TRACE, PARENT, "a=1", ["00f067aa0ba902b7"])
    assert it.rest.heard[0]["traceparent"] == f"00-{TRACE}-{client.id}-01"
    assert it.rest.heard[0]["tracestate"] == "a=1"


async def test_a_caller_that_does_not_sample_has_no_spans_and_its_context_goes_on() -> None:
    async with tracing() as it:
        await it.call(traceparent=UNSAMPLED, tracestate="a=1")
        await it.post("ping", {}, traceparent=SAMPLED)
        (ping,) = await it.told(1)
    assert ping.name == "ping"
    assert it.rest.heard[0]["traceparent"] == UNSAMPLED
    assert it.rest.heard[0]["tracestate"] == "a=1"


async def test_without_tracing_a_context_goes_on_as_it_came() -> None:
    rest = Rest()
    async with serving(rest.handle) as origin, house(clusters=[{"name": "rest", "endpoints": [origin]}]) as here:
        backend = {"method": "GET", "path": "/", "cluster": "rest"}
        await here.put("McpTool", "a/main/ns.echo", tool("ns.echo", rest_backend=backend))
        it = Traced(here, Collector(), rest, {})
        await it.call(traceparent=SAMPLED, tracestate="a=1")
        await it.call(traceparent=OTHER, meta={"traceparent": SAMPLED})
        await it.call(traceparent="nonsense", tracestate="a=1")
    assert [one["traceparent"] for one in rest.heard[:2]] == [SAMPLED, SAMPLED]
    assert [one.get("tracestate") for one in rest.heard] == ["a=1", None, None]
    assert rest.heard[2]["traceparent"].endswith("-00")


async def test_of_the_traces_that_begin_here_none_has_spans_at_a_ratio_of_zero_but_those_of_callers_do() -> None:
    async with tracing(tracing={"sample_ratio": 0}) as it:
        await it.call()
        await it.post("ping", {}, traceparent=SAMPLED)
        await it.told(1)
    assert [one.name for one in it.to.spans] == ["ping"]
    assert it.rest.heard[0]["traceparent"].endswith("-00")


async def test_each_try_is_a_span_that_says_how_often_it_was_sent_before() -> None:
    async with tracing(policy=RETRY) as it:
        it.rest.answers = [503, 500]
        await it.call()
        await it.told(4)
    first, second, third = it.to.of("client")
    assert [one.attributes["http.response.status_code"] for one in (first, second, third)] == [503, 500, 200]
    assert [one.attributes.get("http.request.resend_count") for one in (first, second, third)] == [None, 1, 2]
    assert [one.attributes.get("error.type") for one in (first, second, third)] == ["503", "500", None]
    assert [one.failed for one in (first, second, third)] == [True, True, False]
    assert [one["traceparent"][36:52] for one in it.rest.heard] == [first.id, second.id, third.id]


async def test_what_failed_says_how() -> None:
    async with tracing() as it:
        it.rest.answers = [404]
        await it.call()
        await it.call("ns.nowhere")
        await it.told(3)
    gone = it.to.named("tools/call ns.echo")
    assert (gone.failed, gone.attributes["error.type"]) == (True, "tool_error")
    assert gone.attributes["arion_tds.failure"] == "upstream_error"
    assert it.to.named("GET").attributes["error.type"] == "404"
    unknown = it.to.named("tools/call")
    assert unknown.attributes["gen_ai.tool.name"] == "ns.nowhere"
    assert unknown.attributes["error.type"] == unknown.attributes["rpc.response.status_code"] == "-32602"


async def test_an_upstream_that_does_not_answer_in_time_is_told_as_that() -> None:
    async with tracing(policy={"timeout": "0.05s"}) as it:
        it.rest.open.clear()
        await it.call()
        client, server = await it.told(2)
        it.rest.open.set()
    assert client.attributes["error.type"] == "timeout"
    assert server.attributes["arion_tds.failure"] == "upstream_timeout"


async def test_a_client_that_goes_away_leaves_spans_that_were_cancelled() -> None:
    async with tracing() as it:
        it.rest.open.clear()
        calling = asyncio.create_task(it.call())
        async with asyncio.timeout(BOUND):
            await it.rest.asked.wait()
        calling.cancel()
        client, server = await it.told(2)
        it.rest.open.set()
    assert client.attributes["error.type"] == server.attributes["error.type"] == "cancelled"


async def test_methods_that_are_not_served_share_a_name() -> None:
    async with tracing() as it:
        await it.post("tools/list", {})
        await it.post("resources/read/anything", {})
        await it.told(2)
    assert [one.name for one in it.requests] == ["tools/list", "other"]
    assert it.requests[1].attributes["error.type"] == "-32601"


async def test_a_call_of_an_mcp_server_is_a_client_span_that_its_params_and_headers_name() -> None:
    heard: list[tuple[dict[str, str], Spec]] = []

    class Upstream(McpUpstream):
        async def handle(self, request: web.BaseRequest) -> web.Response:
            answer = await super().handle(request)
            if request.method == "POST" and b"tools/call" in (body := await request.read()):
                heard.append(({name.lower(): value for name, value in request.headers.items()}, json.loads(body)))
            return answer

    up = Upstream("one")
    async with tracing() as it, serving(up.handle) as origin:
        await it.here.put("McpDynamicServer", "a/main/up", server("up", f"{origin}/mcp?key=s3cret"))
        await it.call("up.one", traceparent=SAMPLED, meta={"traceparent": SAMPLED, "keep": 1})
        client, served = await it.told(2)
        ((headers, message),) = heard
    assert (client.name, client.kind, client.parent) == ("tools/call one", "client", served.id)
    assert served.name == "tools/call up.one"
    version = client.attributes.pop("mcp.protocol.version")
    assert version == headers["mcp-protocol-version"]
    assert client.attributes == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "one",
        "jsonrpc.request.id": str(message["id"]),
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "url.scheme": "http",
        "server.address": "127.0.0.1",
        "server.port": int(origin.rpartition(":")[2]),
    }
    named = f"00-{TRACE}-{client.id}-01"
    assert headers["traceparent"] == named
    assert message["params"]["_meta"] == {"keep": 1, "traceparent": named}


async def test_an_mcp_server_that_fails_says_how() -> None:
    up = McpUpstream("one")
    async with tracing() as it, serving(up.handle) as origin:
        await it.here.put("McpDynamicServer", "a/main/up", server("up", f"{origin}/mcp"))
        up.status = 500
        await it.call("up.one")
        await it.told(2)
    assert {one.attributes["error.type"] for one in it.to.of("client")} == {"upstream_error"}
    assert it.to.named("tools/call up.one").attributes["arion_tds.failure"] == "upstream_error"


async def test_a_tool_that_is_called_through_another_has_a_span_between_them() -> None:
    async with tracing(listener(gateway={"search": {}})) as it:
        params = {"name": "call_tool", "arguments": {"name": "ns.echo", "arguments": {"word": "x"}}}
        await it.post("tools/call", params, traceparent=SAMPLED)
        client, inner, outer = await it.told(3)
    assert (outer.name, inner.name) == ("tools/call call_tool", "execute_tool ns.echo")
    assert (inner.kind, inner.parent, client.parent) == ("internal", outer.id, inner.id)
    assert inner.attributes == {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ns.echo"}


async def test_a_push_is_a_span_of_its_own() -> None:
    async with tracing() as it:
        await it.here.refused("McpTool", "a/main/ns.bad", tool("ns.bad", description=""), "description")
        await it.to.until(lambda: any(one.failed for one in it.to.of("internal")))
    good = next(one for one in it.to.of("internal") if one.attributes["tds.updates"] and not one.failed)
    assert (good.name, good.parent) == ("tds.push", "")
    assert good.attributes == {"tds.type": "Tool", "tds.updates": 1, "tds.removals": 0, "tds.rejected": 0}
    (bad,) = [one for one in it.to.of("internal") if one.failed]
    assert (bad.attributes["tds.rejected"], bad.attributes["error.type"]) == (1, "rejected")


async def test_nothing_secret_is_ever_in_a_span(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("k3y-of-the-collector")
    secret = {"authorization": {"file": str(tmp_path / "token")}}
    async with tracing(tracing={"headers": secret}) as it:
        await it.here.a.initialize()
        session = {"mcp-session-id": it.here.a.session or ""}
        headers = {"authorization": "Bearer t0ken", "x-api-key": "k3y"}
        await it.call(meta={"note": "n0te"}, **headers, **session)
        await it.told(3)
        dump = json.dumps(await it.here.admin("config_dump"))
    everything = "".join(it.to.bodies)
    assert {one["authorization"] for one in it.to.headers} == {"k3y-of-the-collector"}
    for hidden in ("tell-nobody", "s3cret", "t0ken", "k3y", "n0te", "forty-two", "/echo", session["mcp-session-id"]):
        assert hidden not in everything
    assert "k3y-of-the-collector" not in dump


async def test_a_collector_that_is_down_harms_no_call(caplog: pytest.LogCaptureFixture) -> None:
    async with tracing(tracing={"max_queue": 4, "max_batch": 2, "timeout": "1s"}) as it:
        await it.to.until(lambda: it.to.spans)
        it.to.open.clear()  # takes connections, answers nothing
        for _ in range(10):
            assert not (await it.call())["result"].get("isError")
        page = await it.here.metrics()
        (dropped,) = [line for line in page.splitlines() if line.startswith('arion_tds_spans_total{outcome="overflow"')]
        assert float(dropped.rpartition(" ")[2]) >= 20 - 4 - 2
        it.to.open.set()
    assert len(it.rest.heard) == 10


async def test_what_waits_is_sent_before_the_gateway_ends() -> None:
    async with tracing(tracing={"batch_interval": "1h"}) as it:
        await it.call()
        assert not it.requests
        await it.here.gateway.tenants.end()
    assert sorted(one.kind for one in it.requests) == ["client", "server"]


async def test_the_access_log_names_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    async with tracing(access_log={"path": str(path)}) as it:
        await it.call(traceparent=SAMPLED)
        await it.post("ping", {}, traceparent=OTHER)
        await it.call(traceparent=UNSAMPLED.replace(TRACE, "a" * 32))
        await it.post("ping", {}, traceparent=UNSAMPLED)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one.get("trace_id") for one in lines] == [TRACE, OTHER[3:35], "a" * 32, None]


async def test_a_reload_keeps_the_spans_going_and_says_that_the_collector_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with tracing() as it:
        plane, own = it.here.plane.address, {"endpoint": it.to.url, "batch_interval": "10ms"}
        changed = listener(page_size=7)
        other = {**own, "endpoint": "http://127.0.0.1:1"}
        new = settings(plane, it.cluster["endpoints"][0], [changed], more_clusters=[it.cluster], tracing=other)
        with caplog.at_level(logging.WARNING):
            assert await it.here.gateway.reloader.take(lambda: judging.judge(new))
        assert "tracing differs from the config in use" in caplog.text
        it.here.tenants["a"].url = f"http://{it.here.gateway.bound['a']}"
        await it.call()
        client, served = await it.told(2)
    assert client.parent == served.id
