"""People with tokens of their own before a listener that trusts the test's issuer."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import auth_issuer
from gateway_house import House, Spec, Tenant, listener

FOREVER: Final = 4_102_444_800
RESOURCE: Final = auth_issuer.AUDIENCE


def jwt_config(**more: Any) -> Spec:
    """A listener's `jwt`: the test's issuer, keys inline, nobody is turned away for lack of a token."""
    provider = {"issuer": auth_issuer.ISSUER, "local_jwks": {"inline_string": auth_issuer.jwks().decode()}}
    config = {"providers": {"main": provider}, "required": False, "resource": RESOURCE, **more}
    return {key: value for key, value in config.items() if value is not None}


def guarded(**more: Any) -> Spec:
    """Listener `a` with these `jwt` settings."""
    return listener(jwt=jwt_config(**more))


def token(**claims: Any) -> str:
    """A good token for a long time; claims as wanted."""
    return auth_issuer.token(**{"exp": FOREVER, "iat": 0, **claims})


@contextlib.asynccontextmanager
async def person(house: House, text: str | None, name: str = "a", **headers: str) -> AsyncIterator[Tenant]:
    """Somebody who shows this token (None: none) with every request."""
    if text is not None:
        headers["Authorization"] = f"Bearer {text}"
    async with aiohttp.ClientSession(headers=headers) as http:
        yield Tenant(house.tenants[name].url, http)


@contextlib.asynccontextmanager
async def people(house: House, *tokens: str | None) -> AsyncIterator[list[Tenant]]:
    """One for each token."""
    async with contextlib.AsyncExitStack() as stack:
        yield [await stack.enter_async_context(person(house, one)) for one in tokens]


@contextlib.asynccontextmanager
async def hearing(tenant: Tenant) -> AsyncIterator[asyncio.Queue[str]]:
    """A session of this person with its stream open: methods of what comes on it."""
    await tenant.initialize()
    assert tenant.session is not None
    heard: asyncio.Queue[str] = asyncio.Queue()
    headers = {"accept": "text/event-stream", "Mcp-Session-Id": tenant.session}
    async with tenant.http.get(f"{tenant.url}/mcp", headers=headers) as response:
        assert response.status == 200, await response.text()

        async def read() -> None:
            async for line in response.content:
                if line.startswith(b"data: "):
                    heard.put_nowait(json.loads(line[6:])["method"])

        async with asyncio.TaskGroup() as group:
            task = group.create_task(read())
            yield heard
            task.cancel()


async def modern(tenant: Tenant, method: str, **params: Any) -> Spec:
    """One stateless request; the result."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "accept": "application/json"}
    async with tenant.http.post(f"{tenant.url}/mcp", json=body, headers=headers) as response:
        answer: Spec = await response.json()
        return answer["result"]  # type: ignore[no-any-return]
