"""Tokens over HTTP: challenges, metadata, sessions that belong to somebody, keys that come from an issuer."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import auth_issuer
import pytest
from aiohttp import web
from auth_people import FOREVER, RESOURCE, guarded, jwt_config, people, person, token
from gateway_house import BOUND, House, house, listener, serving, tool

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
METADATA = "https://mcp.example/.well-known/oauth-protected-resource/mcp"


async def ping(here: House, text: str | None, **headers: str) -> tuple[int, str, str]:
    """Status, challenge and body."""
    if text is not None:
        headers["Authorization"] = f"Bearer {text}"
    async with here.http.post(f"{here.a.url}/mcp", json=PING, headers=headers) as response:
        return response.status, response.headers.get("WWW-Authenticate", ""), await response.text()


async def test_without_a_token_the_challenge_says_where_to_get_one_and_the_document_is_there() -> None:
    async with house(guarded(required=True, scopes_required=["tools"])) as here:
        status, challenge, _ = await ping(here, None)
        assert (status, challenge) == (401, f'Bearer resource_metadata="{METADATA}"')
        for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
            async with here.http.get(here.a.url + path) as response:
                assert response.status == 200
                assert await response.json() == {
                    "resource": RESOURCE,
                    "authorization_servers": [auth_issuer.ISSUER],
                    "scopes_supported": ["tools"],
                    "bearer_methods_supported": ["header"],
                    "resource_name": "a",
                }
        async with here.http.get(f"{here.a.url}/.well-known/oauth-protected-resource/other") as response:
            assert response.status == 404
        async with here.http.post(f"{here.a.url}/.well-known/oauth-protected-resource") as response:
            assert response.status == 405


async def test_a_listener_without_jwt_has_no_metadata() -> None:
    async with house() as here, here.http.get(f"{here.a.url}/.well-known/oauth-protected-resource") as response:
        assert response.status == 404


@pytest.mark.parametrize(
    ("bent", "says"),
    [
        ({"exp": 1_000_000_000}, "expired"),
        ({"exp": FOREVER, "nbf": FOREVER - 10}, "not valid yet"),
        ({"iss": "https://evil.example"}, "issuer"),
        ({"aud": "https://evil.example"}, "audience"),
        ({"key": auth_issuer.STRANGER}, "does not publish"),
        ({"key": auth_issuer.STRANGER, "header": {"kid": "ec"}}, "signature"),
    ],
)
async def test_a_bad_token_is_refused_everywhere(bent: dict[str, Any], says: str) -> None:
    async with house(guarded()) as here:
        status, challenge, body = await ping(here, token(**bent))
        assert status == 401
        assert 'error="invalid_token"' in challenge
        assert says in body
        async with person(here, token(**bent)) as who:
            for path in ("/mcp", "/mcp/search"):
                async with who.http.post(who.url + path, json={"query": ""}) as response:
                    assert response.status == 401
            async with who.http.get(f"{who.url}/mcp") as response:
                assert response.status == 401


async def test_unsigned_and_hmac_signed_tokens_are_refused() -> None:
    async with house(guarded()) as here:
        claims = {"exp": FOREVER}
        for text in (
            auth_issuer.unsigned({"alg": "none"}, **claims),
            auth_issuer.unsigned({"alg": "nOnE", "kid": "ec"}, **claims),
            auth_issuer.hmac_with(auth_issuer.EC.as_pem(private=False), {"alg": "HS256", "kid": "ec"}, **claims),
        ):
            status, challenge, body = await ping(here, text)
            assert status == 401
            assert "algorithm" in body
            assert auth_issuer.part({"alg": "none"}) not in challenge + body


async def test_a_missing_scope_is_403_and_names_it() -> None:
    async with house(guarded(scopes_required=["tools:call"])) as here:
        status, challenge, _ = await ping(here, token(scope="tools:list"))
        assert status == 403
        assert 'error="insufficient_scope"' in challenge
        assert 'scope="tools:call"' in challenge
        assert (await ping(here, token(scope="tools:list tools:call")))[0] == 200


async def test_a_session_belongs_to_the_subject_that_opened_it() -> None:
    tokens = token(sub="ada"), token(sub="eve"), token(sub="ada", jti="renewed")
    async with house(guarded(required=True)) as here, people(here, *tokens) as (ada, eve, again):
        await ada.initialize()
        assert ada.session is not None
        for who, expected in ((ada, 200), (eve, 404), (again, 200)):
            async with who.http.post(f"{who.url}/mcp", json=PING, headers={"Mcp-Session-Id": ada.session}) as found:
                assert found.status == expected
        async with eve.http.delete(f"{eve.url}/mcp", headers={"Mcp-Session-Id": ada.session}) as found:
            assert found.status == 404
        assert (await ping(here, None, **{"Mcp-Session-Id": ada.session}))[0] == 401


class Issuer:
    """Publishes keys over HTTP."""

    def __init__(self, *keys: Any) -> None:
        self.document = auth_issuer.jwks(*keys)
        self.status = 200
        self.count = 0

    async def handle(self, _request: web.BaseRequest) -> web.Response:
        self.count += 1
        return web.Response(body=self.document, status=self.status)


def fetching(uri: str, **more: Any) -> dict[str, Any]:
    remote = {"uri": f"{uri}/jwks", "cooldown": "5ms", **more}
    provider = {"issuer": auth_issuer.ISSUER, "remote_jwks": remote}
    return listener(jwt=jwt_config(providers={"main": provider}, required=True))


async def test_keys_are_fetched_rotated_and_kept_while_the_issuer_is_down() -> None:
    issuer = Issuer(auth_issuer.EC)
    async with asyncio.timeout(BOUND), serving(issuer.handle) as uri, house(fetching(uri)) as here:
        assert (await ping(here, token()))[0] == 200
        rotated = token(key=auth_issuer.RSA, algorithm="RS256")
        issuer.document = auth_issuer.jwks(auth_issuer.RSA)
        while (await ping(here, rotated))[0] != 200:
            pass  # until the cool-down is over
        assert (await ping(here, token()))[0] == 401, "the old key was taken away"
        issuer.status = 503
        while (await ping(here, token(jti="asks again")))[0] != 401 or issuer.count < 5:
            pass
        assert (await ping(here, rotated))[0] == 200
        page = await here.metrics()
        assert 'arion_tds_jwks_age_seconds{listener="a",provider="main"} 0.' in page
        assert 'arion_tds_jwks_fetches_total{listener="a",outcome="failed",provider="main"}' in page
        assert 'arion_tds_auth_total{listener="a",outcome="unknown_key"}' in page


async def test_without_any_keys_nobody_comes_in_and_the_reason_is_said() -> None:
    async with asyncio.timeout(BOUND), house(fetching("http://127.0.0.1:9", timeout="200ms")) as here:
        status, _, body = await ping(here, token())
        assert status == 401
        assert "keys are not known" in body


async def test_the_token_goes_no_further_than_the_gateway() -> None:
    got: list[Any] = []

    async def backend(request: web.BaseRequest) -> web.Response:
        got.append(dict(request.headers))
        return web.json_response({})

    async with serving(backend) as origin:
        more = {"clusters": [{"name": "echo", "endpoints": [origin]}]}
        async with house(guarded(required=True), **more) as here, person(here, token(), Cookie="a=b") as who:
            await here.put("McpTool", "a/main/a.t", tool("a.t"))
            assert not (await who.call("a.t")).get("isError")
    (headers,) = got
    assert token().split(".")[1] not in json.dumps(headers)
    assert not {"authorization", "cookie"} & {name.lower() for name in headers}


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_stream_ends_with_the_token_that_opened_it(era: str) -> None:
    async with asyncio.timeout(BOUND), house(guarded(required=True)) as here:
        soon = token(exp=int(time.time()) - 58)  # noqa: TID251 - the gateway goes by it; the skew is a minute
        async with person(here, soon) as who:
            await who.initialize()
            assert who.session is not None
            if era == "handshake":
                headers = {"accept": "text/event-stream", "Mcp-Session-Id": who.session}
                response = await who.http.get(f"{who.url}/mcp", headers=headers)
            else:
                response = await who.http.post(f"{who.url}/mcp", **LISTEN)
            assert response.status == 200
            text = (await response.read()).decode()
            assert ('"result"' in text) == (era == "modern"), "a subscription ends with its result"
            async with who.http.post(f"{who.url}/mcp", json=PING) as refused:
                assert refused.status == 401


META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
LISTEN: dict[str, Any] = {
    "headers": {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "subscriptions/listen",
        "Accept": "application/json, text/event-stream",
    },
    "json": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": True}, "_meta": META},
    },
}
