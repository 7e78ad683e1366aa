"""Where MCP servers may be, judged over TDS; and what operators see of those that are in use."""

from __future__ import annotations

import json
import re

import pytest
from aiohttp import web
from gateway_house import House, listener
from mcp_scripted import Asked, Reply, Scripted
from upstream_house import ERAS, Caller, discovered, failure_of, gateway, server, text_of, until, until_served

FORBIDDEN = {
    "link-local": ("http://169.254.10.20/mcp", "built-in rule '169.254.0.0/16'"),
    "metadata-address": ("http://169.254.169.254/latest/meta-data", "built-in rule '169.254.0.0/16'"),
    "metadata-in-ipv6": ("http://[::ffff:169.254.169.254]/", "built-in rule '169.254.0.0/16'"),
    "metadata-behind-nat64": ("http://[64:ff9b::a9fe:a9fe]/", "built-in rule '169.254.0.0/16'"),
    "metadata-by-another-spelling": ("http://2852039166/", "built-in rule '169.254.0.0/16'"),
    "metadata-name": ("http://metadata.google.internal/", "metadata service (built-in rule"),
    "link-local-ipv6": ("http://[fe80::1]/", "built-in rule 'fe80::/10'"),
    "alibaba": ("http://100.100.100.200/", "built-in rule '100.100.100.200/32'"),
}


@pytest.mark.parametrize(("url", "rule"), FORBIDDEN.values(), ids=FORBIDDEN)
async def test_a_forbidden_place_is_a_nack_that_names_the_rule(url: str, rule: str) -> None:
    async with gateway() as here:
        await here.refused("McpDynamicServer", "a/main/up", server("up", url), rule)
        await here.a.serves()


async def test_a_pushed_tool_with_its_own_server_is_under_the_same_rules() -> None:
    async with gateway() as here:
        backend = {"transport": "StreamableHttp", "url": "http://169.254.169.254/mcp"}
        spec = {"namespace": "up", "name": "x", "description": "d", "mcp_server_backend": backend}
        await here.put("McpTool", "a/main/up.x", spec)
        failure = failure_of(await (await Caller.of(here, "modern")).call("up.x"))
        assert "169.254.0.0/16" in failure["message"]


async def test_an_allow_list_admits_what_it_names_and_nothing_else() -> None:
    up = Scripted("modern")
    only = {"mcp_servers": {"allow_addresses": ["127.0.0.0/8"]}}
    async with discovered(up, **only) as here:
        assert text_of(await (await Caller.of(here, "modern")).call("up.echo")) == "{}"
        await here.refused("McpDynamicServer", "a/main/x", server("x", "http://192.0.2.1/"), "rule of allow_addresses")


async def test_a_deny_rule_is_named_and_wins_over_an_allow_rule() -> None:
    up = Scripted("modern")
    both = {"mcp_servers": {"allow_addresses": ["127.0.0.0/8"], "deny_addresses": ["127.0.0.1/32"]}}
    async with up.serving(), gateway(**both) as here:
        await here.refused("McpDynamicServer", "a/main/up", server("up", up), "'127.0.0.1/32' (deny_addresses)")
        assert up.asked == []


async def test_the_operators_own_url_is_trusted_where_the_config_says_so() -> None:
    up = Scripted("modern")
    async with up.serving():
        denied = {"deny_addresses": ["127.0.0.0/8"], "servers": [{"url": up.url, "trusted": True}]}
        async with gateway(mcp_servers=denied) as here:
            await here.put("McpDynamicServer", "a/main/up", server("up", up))
            await here.refused("McpDynamicServer", "a/main/x", server("x", f"{up.url}/other"), "deny_addresses")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_its_target_never_asked(status: int) -> None:
    up, target = Scripted("legacy"), Scripted("modern")

    async def redirect(asked: Asked) -> Reply:
        return web.Response(status=status, headers={"Location": target.url})

    for method in ("server/discover", "initialize"):
        up.on[method] = redirect
    async with up.serving(), target.serving(), gateway() as here:
        await here.refused("McpDynamicServer", "a/main/up", server("up", up), "redirects are not followed")
        assert target.asked == []


async def test_a_redirect_of_a_call_is_an_error_and_not_followed() -> None:
    up = Scripted("modern")

    async def redirect(asked: Asked) -> Reply:
        return web.Response(status=307, headers={"Location": "http://169.254.169.254/"})

    up.on["tools/call"] = redirect
    async with discovered(up) as here:
        failure = failure_of(await (await Caller.of(here, "legacy")).call("up.echo"))
        assert "redirects are not followed" in failure["message"]


# What operators see


async def metric(here: House, name: str) -> dict[str, float]:
    """The samples of a metric by their one label."""
    found = re.findall(rf'^{name}(?:{{\w+="([^"]*)"}})? (\S+)$', await here.metrics(), re.MULTILINE)
    return {label: float(value) for label, value in found}


async def test_servers_are_counted_by_state_and_never_by_url(unused_tcp_port: int) -> None:
    good, bad = Scripted("legacy"), Scripted("modern")
    async with good.serving(), gateway() as here:
        async with bad.serving():
            for name, one in (("good", good), ("bad", bad)):
                await here.put("McpDynamicServer", f"a/main/{name}", server(name, one))
            assert await metric(here, "arion_tds_mcp_servers") == {"unknown": 0, "ok": 2, "failing": 0}
        failure_of(await (await Caller.of(here, "modern")).call("bad.echo"))
        assert await metric(here, "arion_tds_mcp_servers") == {"unknown": 0, "ok": 1, "failing": 1}

        gone = f"http://127.0.0.1:{unused_tcp_port}/mcp?token=canary"
        await here.refused("McpDynamicServer", "a/main/gone", server("gone", gone), "cannot be reached")
        assert await metric(here, "arion_tds_mcp_servers_asked_again") == {"": 1}
        lists = await metric(here, "arion_tds_mcp_lists_total")
        assert lists["ok"] == 2
        assert lists["failed"] >= 1
        page = await here.metrics()
        assert "127.0.0.1:" not in page
        assert "canary" not in page


async def test_a_failing_server_is_well_again_after_its_next_answer(unused_tcp_port: int) -> None:
    up = Scripted("modern")
    async with gateway() as here:
        async with up.serving(unused_tcp_port):
            await here.put("McpDynamicServer", "a/main/up", server("up", up))
        caller = await Caller.of(here, "modern")
        failure_of(await caller.call("up.echo"))
        assert (await _status(here))["state"] == "failing"
        async with up.serving(unused_tcp_port):
            await caller.call("up.echo")
            assert (await _status(here))["state"] == "ok"


async def test_a_result_over_our_limit_does_not_make_a_server_failing() -> None:
    up = Scripted("modern")
    small = listener(gateway={"max_upstream_response_bytes": 2000})
    async with discovered(up, small) as here:
        caller = await Caller.of(here, "modern")
        assert failure_of(await caller.call("up.echo", x="y" * 3000))["code"] == "response_too_large"
        assert (await _status(here))["state"] == "ok"


async def _status(here: House) -> dict[str, object]:
    (found,) = (await here.admin("config_dump"))["mcp_servers"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("era", ERAS)
async def test_a_query_is_sent_to_its_server_and_shown_to_nobody(era: str, caplog: pytest.LogCaptureFixture) -> None:
    up = Scripted(era)
    async with up.serving(), gateway(mcp_servers={"discovery_timeout": "0.3s"}) as here:
        await here.put("McpDynamicServer", "a/main/up", server("up", f"{up.url}?key=canary"))
        await (await Caller.of(here, "modern")).call("up.echo")
        assert {asked.http.query_string for asked in up.asked} == {"key=canary"}
        status = await _status(here)
        assert status["url"] == f"{up.url}?…"
        assert status["era"] == era

        async def never(asked: Asked) -> Reply:
            await until(lambda: False)
            return web.Response()

        up.on["tools/list"] = never
        nack = await here.refused("McpDynamicServer", "a/main/x", server("x", f"{up.url}?key=canary2"), "timeout")
        pages = [await here.admin(page) for page in ("config_dump", "problems")]
        assert "canary" not in json.dumps([nack.reason, pages]) + caplog.text


async def test_tools_of_a_server_with_a_query_can_be_called_after_it_was_refreshed() -> None:
    up = Scripted("modern")
    async with up.serving(), gateway() as here:
        spec = server("up", f"{up.url}?key=x", cache_duration="0.05s")
        await here.put("McpDynamicServer", "a/main/up", spec)
        up.tools.append({"name": "new", "inputSchema": {"type": "object"}})
        await until_served(here, "up.echo", "up.new")
        assert text_of(await (await Caller.of(here, "legacy")).call("up.new")) == "{}"
