"""A REST tool's call from arguments to result, over a real upstream."""

from __future__ import annotations

import msgspec
from aiohttp import web
from rest_upstreams import CONTEXT, LIMITS, Calls, Serve

from arion_tds import schema
from arion_tds.backends.rest import RestCaller
from arion_tds.model import template
from arion_tds.model.backend import QueryParam, RestBackend
from arion_tds.model.context import Limits
from arion_tds.model.result import CallResult, ErrorCode
from arion_tds.model.template import Template
from arion_tds.schema import Schema


def compiled(text: str, *, body: bool = False) -> Template:
    made = template.parse_body(text) if body else template.parse(text)
    assert isinstance(made, Template)
    return made


def output(text: str) -> Schema:
    made = schema.parse(text)
    assert isinstance(made, Schema)
    return made


FORECAST = RestBackend("GET", compiled("/v1/{{city}}/forecast"), "c", (QueryParam("days", ("days",)),))
ALERT = RestBackend("POST", compiled("/alerts"), "c", (), compiled('{"city":"{{city}}","tags":{{tags}}}', body=True))
WEATHER = output('{"type":"object","properties":{"t":{"type":"number"}},"required":["t"]}')


async def call(
    calls: Calls, backend: RestBackend, want: Schema | None, limits: Limits = LIMITS, **arguments: object
) -> CallResult:
    return await RestCaller(calls.clusters).call(backend, want, arguments, limits, CONTEXT)


def code(result: CallResult) -> ErrorCode | None:
    assert result.is_error is (result.failure is not None)
    return result.failure.code if result.failure is not None else None


async def test_arguments_become_a_request_and_the_answer_the_structured_result(calls: Calls, serve: Serve) -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=b'{"t":21.50}', content_type="application/json")

    upstream = await serve(handler)
    await calls.use(upstream.origin)
    result = await call(calls, FORECAST, WEATHER, city="São/Paulo", days=3)
    assert upstream.seen[0].raw_path == "/v1/S%C3%A3o%2FPaulo/forecast?days=3"
    assert (result.structured, result.is_error) == (b'{"t":21.50}', False)


async def test_a_body_template_arrives_as_json(calls: Calls, serve: Serve) -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=204)

    upstream = await serve(handler)
    await calls.use(upstream.origin)
    result = await call(calls, ALERT, None, city='"}x', tags=["a", {"b": None}])
    assert msgspec.json.decode(upstream.bodies[0]) == {"city": '"}x', "tags": ["a", {"b": None}]}
    assert upstream.seen[0].headers["Content-Type"] == "application/json"
    assert result.content == b'[{"type":"text","text":""}]'


async def test_a_bad_argument_sends_nothing(calls: Calls, serve: Serve) -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        raise AssertionError

    upstream = await serve(handler)
    await calls.use(upstream.origin)
    assert code(await call(calls, FORECAST, None, city="..")) is ErrorCode.INVALID_ARGUMENTS
    assert upstream.seen == []


async def test_each_way_to_fail_has_its_code(calls: Calls, serve: Serve) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if "/wrong/" in request.path:
            return web.json_response({"t": "warm"})
        if "/big/" in request.path:
            return web.Response(body=b"x" * 2000)
        return web.Response(status=503, text="closed for repair")

    await calls.use((await serve(handler)).origin)
    small = Limits(5.0, 1000)
    assert code(await call(calls, FORECAST, WEATHER, city="wrong")) is ErrorCode.INVALID_OUTPUT
    assert code(await call(calls, FORECAST, None, small, city="big")) is ErrorCode.RESPONSE_TOO_LARGE
    unavailable = await call(calls, FORECAST, None, city="other")
    assert unavailable.structured is not None
    assert msgspec.json.decode(unavailable.structured)["error"] == {
        "code": "upstream_error",
        "message": "the upstream answered 503 Service Unavailable: closed for repair",
        "retryable": True,
        "status": 503,
    }


async def test_a_tool_of_an_unknown_cluster_fails_by_its_name(calls: Calls) -> None:
    result = await call(calls, FORECAST, None, city="Oslo")
    assert code(result) is ErrorCode.UPSTREAM_ERROR
    assert b'\\"c\\"' in result.content
