"""Hostile content from a control plane, its documents and upstreams: refused by name, or harmless when called."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import decode_samples as samples
import pytest
import pytest_asyncio
from aiohttp import web
from gateway_house import House, house, inline, serving, tool
from gateway_upstreams import document, server, source
from hostile_wire import Target, target
from hypothesis import given, settings
from hypothesis import strategies as st

from arion_tds.decode.rules import INLINE_ONLY
from arion_tds.decode.table import Decoded, decode
from arion_tds.model.delivery import CATALOG, Kind, ResourceId

GOOD = [one().SerializeToString() for one in (samples.rest_tool, samples.mcp_tool, samples.source, samples.server)]
WHERE = ResourceId("gw/main", "weather.get_forecast")


def judged(kind: Kind, payload: bytes) -> Decoded:
    found = decode(kind, WHERE, payload, INLINE_ONLY)
    assert (found.value is None) != (found.problem is None)
    return found


@given(st.sampled_from(list(CATALOG)), st.binary(max_size=300))
@settings(max_examples=300)
def test_any_bytes_are_a_value_or_a_problem(kind: Kind, payload: bytes) -> None:
    judged(kind, payload)


@pytest.mark.parametrize("kind", list(CATALOG))
def test_mutated_messages_are_a_value_or_a_problem(kind: Kind) -> None:
    rng = random.Random(7)
    for _ in range(400):
        payload = bytearray(rng.choice(GOOD))
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(payload))
            match rng.randrange(3):
                case 0:
                    payload[at] = rng.randrange(256)
                case 1:
                    del payload[at]
                case _:
                    payload[at:at] = rng.randbytes(rng.randint(1, 9))
        judged(kind, bytes(payload))


@pytest.mark.parametrize(
    "payload",
    [
        b"\x0a\xff\xff\xff\xff\x0f" + b"x",  # a string of 4 GiB that is not there
        b"\x0b" * 100_000,  # groups inside groups
        b"\x2a" * 100_000,
        b"\xff" * 100_000,
        b"\x0a\x02\xc3\x28",  # not UTF-8
        b"\x52" + b"\x80" * 9 + b"\x01",
    ],
)
def test_wire_tricks_are_problems(payload: bytes) -> None:
    for kind in CATALOG:
        assert judged(kind, payload).problem is not None


@pytest.mark.parametrize(
    "schema",
    [
        '{"type":"object","properties":{"a":{"pattern":"("}}}',
        '{"$ref":"http://169.254.169.254/latest/meta-data/"}',
        '{"$ref":"file:///etc/passwd"}',
        '{"$schema":"http://169.254.169.254/"}',
        '{"$id":"http://127.0.0.1:1/","$ref":"x"}',
        '{"$dynamicRef":"http://127.0.0.1:1/#x"}',
        '{"a":' * 5000 + "1" + "}" * 5000,
        '{"enum":' + "[" * 5000 + "]" * 5000 + "}",
        '{"properties":1e999}',
        '{"$ref":"#/$defs/missing"}',
    ],
)
def test_schemas_that_reach_out_or_do_not_end_are_problems(schema: str) -> None:
    def bend(message: Any) -> None:
        message.input_schema.inline_string = schema

    found = samples.rest(bend)
    assert found.problem is not None
    assert len(str(found.problem)) < 2000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Target]:
    patterns = {
        f"p{number}": {"type": "string", "pattern": pattern}
        for number, pattern in enumerate(["^(a+)+$", "^(a|aa)+$", "^(.*a){25}$", "(?=(a+)+$)b", "^([a-z]+)*[0-9]$"])
    }
    path = {"method": "GET", "path": "/files/{{file}}", "cluster": "echo"}
    query = {"method": "GET", "path": "/q", "cluster": "echo", "query_params": [{"name": "q", "source": "q"}]}
    text = {"method": "POST", "path": "/b", "cluster": "echo", "body_template": inline('{"a":"{{a}}","b":{{b}}}')}
    loop = {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"anyOf": [
        {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}, {"type": "null"}]}}}  # fmt: skip
    made = target(
        tool("a.slow", input_schema=inline({"type": "object", "properties": patterns})),
        tool("a.path", rest_backend=path, input_schema=inline({"type": "object"})),
        tool("a.query", rest_backend=query, input_schema=inline({"type": "object"})),
        tool("a.body", rest_backend=text, input_schema=inline({"type": "object"})),
        tool("a.loop", input_schema=inline(loop)),
    )
    async with made as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def here(shared: Target) -> AsyncIterator[Target]:
    shared.asked.clear()
    yield shared
    shared.asked.clear()
    await shared.works()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("number", range(5))
async def test_patterns_made_to_backtrack_end_at_once(here: Target, number: int) -> None:
    async with asyncio.timeout(3):
        await here.here.a.call("a.slow", **{f"p{number}": "a" * 5000 + "!"})


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "value",
    ["..", ".", "", "%2e%2e", "%252e%252e", "a\0b", "a\r\nHost: evil", ["a", "b"], {"a": 1}],
)
async def test_a_path_argument_cannot_climb_or_break_out(here: Target, value: Any) -> None:
    answer = await here.here.a.call("a.path", file=value)
    if answer.get("isError"):
        assert here.asked == []
        return
    (path,) = here.asked
    assert path.startswith("/files/")
    assert path.count("/") == 2
    assert not set("\r\n\0 ") & set(path)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "value",
    ["../../admin", "a/b", "a?x=1", "a#b", "//169.254.169.254/x", "@evil.example", "\\..\\x", "a;b", "http://e/"],
)
async def test_what_is_special_in_a_url_is_only_text_in_an_argument(here: Target, value: str) -> None:
    assert not (await here.here.a.call("a.path", file=value)).get("isError")
    assert not (await here.here.a.call("a.query", q=value + "&admin=1")).get("isError")
    path, query = here.asked
    assert path.startswith("/files/")
    assert path.count("/") == 2
    assert "?" not in path
    assert query.startswith("/q?q=")
    assert "&" not in query


@pytest.mark.asyncio(loop_scope="module")
async def test_an_argument_cannot_leave_its_place_in_a_body(here: Target) -> None:
    answer = await here.here.a.call("a.body", a='","admin":true,"x":"', b={"c": '}{"'})
    assert not answer.get("isError")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_recursive_schema_meets_a_deep_value(here: Target) -> None:
    value: Any = None
    for _ in range(100):
        value = {"n": value}
    assert not (await here.here.a.call("a.loop", n=value)).get("isError")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_name_with_line_breaks_forges_no_log_line(here: Target, caplog: pytest.LogCaptureFixture) -> None:
    answer = await here.here.a.call("a.x\n2026-01-01 CRITICAL forged\r\n")
    assert answer["code"] == -32602
    assert not any(record.levelname == "CRITICAL" for record in caplog.records)


ANYWHERE = [
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[fe80::1]/",
    "http://metadata.google.internal/",
    "http://METADATA.google.internal./",
    "http://100.100.100.200/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://user:pass@169.254.169.254/",
    "http://169.254.169.254@127.0.0.1/",
    "http://127.0.0.1\\@169.254.169.254/",
    "http://169.254.169.254#@127.0.0.1/",
    "http://169。254。169。254/",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "ftp://127.0.0.1/",
    "http://",
    "http:///x",
    "//169.254.169.254/",
    "stdio:sh",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1 /",
    "http://127.0.0.1\r\nX: y/",
]


async def test_a_server_cannot_be_put_where_it_must_not_be() -> None:
    short = {"mcp_servers": {"discovery_timeout": "1s", "default": {"connect_timeout": "500ms"}}}
    async with asyncio.timeout(60), house(**short) as here:
        for url in ANYWHERE:
            await here.plane.put("McpDynamicServer", "a/main/x", server("x", url))
            nack = await here.plane.nacked("McpDynamicServer", "a/main/x")
            assert "a/main/x" in nack.reason, url
        assert await here.a.listed() == []


async def test_a_redirect_is_not_followed_by_anybody() -> None:
    hit: list[str] = []

    async def trap(request: web.BaseRequest) -> web.Response:
        hit.append(request.path)
        return web.json_response({})

    async with asyncio.timeout(20), serving(trap) as forbidden:

        async def away(_request: web.BaseRequest) -> web.Response:
            return web.Response(status=307, headers={"Location": f"{forbidden}/secret"})

        async with serving(away) as origin, house(clusters=[{"name": "echo", "endpoints": [origin]}]) as here:
            await here.put("McpTool", "a/main/a.t", tool("a.t"))
            await here.a.call("a.t")
            await here.plane.put("McpDynamicServer", "a/main/x", server("x", f"{origin}/mcp"))
            await here.plane.nacked("McpDynamicServer", "a/main/x")
    assert hit == []


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    hit: list[str] = []

    async def trap(request: web.BaseRequest) -> web.Response:
        hit.append(request.raw_path)
        return web.json_response({})

    async with asyncio.timeout(20), serving(trap) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "grpc_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy)
        async with house() as here:
            await here.put("McpTool", "a/main/a.t", tool("a.t"))
            assert (await here.a.echo("a.t"))["path"] == "/a/t"
    assert hit == []


def nested(depth: int) -> str:
    """YAML whose aliases double at each step."""
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, depth)]
    return "openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths: {}\nx:\n  " + "\n  ".join(lines)


ESCAPES: dict[str, Any] = {
    "alias-bomb": nested(60),
    "alias-loop": "openapi: 3.1.0\ninfo: &a {title: t, version: '1', x: *a}\npaths: *a\n",
    "python-tag": "openapi: !!python/object/apply:os.system ['touch /tmp/never']\n",
    "deep-json": '{"openapi":"3.1.0","x":' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep-yaml": "[" * 20_000,
    "remote-ref": document("x").replace('"responses"', '"parameters":[{"$ref":"http://169.254.169.254/p"}],"responses"'),
    "file-ref": document("x").replace('"responses"', '"parameters":[{"$ref":"file:///etc/passwd"}],"responses"'),
    "ref-loop": document("x").replace(
        '"responses"', '"parameters":[{"$ref":"#/paths/~1api~1x/get/parameters/0"}],"responses"'
    ),
    "null-byte": "openapi: 3.1.0\0",
}  # fmt: skip


async def test_documents_made_to_explode_are_refused_in_time() -> None:
    quick = {"openapi": {"limits": {"max_wall_seconds": 5}}}
    async with asyncio.timeout(60), house(**quick) as here:
        await here.put("McpOpenApiSource", "a/main/ok", source("ok", "fine"))
        for name, text in ESCAPES.items():
            spec = {**source("shop", "x"), "spec": inline(text)}
            await here.plane.put("McpOpenApiSource", "a/main/shop", spec)
            nack = await here.plane.nacked("McpOpenApiSource", "a/main/shop")
            assert "a/main/shop" in nack.reason, name
            assert "root:" not in nack.reason
            assert await here.a.listed() == ["ok.fine"]


async def test_servers_of_a_document_do_not_choose_where_calls_go() -> None:
    evil = json.loads(document("x"))
    evil["servers"] = [{"url": "http://169.254.169.254/latest"}]
    async with asyncio.timeout(20), house() as here:
        await here.put("McpOpenApiSource", "a/main/shop", {**source("shop", "x"), "spec": inline(evil)})
        assert (await here.a.echo("shop.x"))["path"].endswith("/api/x")


@pytest.mark.parametrize("kind", ["gzip bomb", "endless", "headers", "not http"])
async def test_an_upstream_that_answers_too_much_is_cut_off(kind: str) -> None:
    bomb = gzip.compress(b" " * (64 << 20), 1)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if kind == "gzip bomb":
            return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})
        if kind == "headers":
            return web.Response(headers={f"X-{number}": "y" * 4000 for number in range(500)})
        response = web.StreamResponse()
        assert request.transport is not None
        if kind == "not http":
            request.transport.write(b"\0" * 100_000)
            return response
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65536)
        except ConnectionError:
            return response

    async with (
        asyncio.timeout(20),
        serving(answer) as origin,
        house(clusters=[{"name": "echo", "endpoints": [origin]}]) as here,
    ):
        await here.put("McpTool", "a/main/a.t", tool("a.t"))
        assert (await here.a.call("a.t"))["isError"]


async def test_a_payload_of_noise_is_nacked_and_the_stream_goes_on() -> None:
    async with asyncio.timeout(20), house() as here:
        await _noise(here)
        await here.put("McpTool", "a/main/a.t", tool("a.t"))
        await here.a.serves("a.t")


async def _noise(here: House) -> None:
    for content in (b"\xff\xfe", b"\0" * 1000, b"{" * 1000):
        spec = tool("a.bad", input_schema={"inline_bytes": base64.b64encode(content).decode()})
        await here.plane.put("McpTool", "a/main/a.bad", spec)
        await here.plane.nacked("McpTool", "a/main/a.bad")
