"""Who may use what, on a running gateway: lists, search, calls and notifications agree, for tools, sources, servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from auth_people import guarded, hearing, modern, people, token
from gateway_house import BOUND, House, Spec, Tenant, house, tool
from gateway_upstreams import McpUpstream, mcp_upstream, server, source

ADMIN = {"jwt_claim": {"field": "role", "value": "admin"}}
LISTED = {"permissions": [ADMIN, {"jwt_claim": {"field": "groups.names", "value": "ops"}}]}
SIGNED = {"permissions": [{"jwt_header": {"field": "key_id", "value": "ec"}}]}

CALLERS: dict[str, str | None] = {
    "nobody": None,
    "admin": token(role="admin"),
    "operator": token(groups={"names": ["dev", "ops"]}),
    "guest": token(role=["guest", "reader"], sub="gus"),
}


@pytest.fixture
async def upstream() -> AsyncIterator[McpUpstream]:
    async with mcp_upstream("t") as found:
        yield found


async def sees(who: Tenant, name: str) -> bool:
    """Whether list, search and call say that the tool is there; they must agree, whatever they say."""
    listed = name in await who.listed()
    found = name in await who.search()
    answer = await who.call(name)
    if listed:
        assert "content" in answer, answer
    else:
        assert answer == {"code": -32602, "message": f"Unknown tool: {name}"}
        assert (await who.call("a.missing"))["message"] == "Unknown tool: a.missing"
    assert found == listed
    assert ((await modern(who, "tools/list"))["cacheScope"]) == "private"
    return listed


async def pushed(here: House, kind: str, rbac: Spec, upstream: McpUpstream) -> str:
    """Publish `a.t` under this policy as a tool, by a source, or by a server."""
    if kind == "tool":
        await here.put("McpTool", "a/main/a.t", tool("a.t", rbac=rbac))
    elif kind == "source":
        await here.put("McpOpenApiSource", "a/main/a", source("a", "t", rbac=rbac))
    else:
        await here.put("McpDynamicServer", "a/main/a", server("a", upstream.url, rbac=rbac))
    return "a.t"


@pytest.mark.parametrize("kind", ["tool", "source", "server"])
@pytest.mark.parametrize(
    ("rbac", "expected"),
    [
        ({"action": "ALLOW", **LISTED}, {"admin", "operator"}),
        ({"action": "DENY", **LISTED}, {"nobody", "guest"}),
        ({"action": "ALLOW", **SIGNED}, {"admin", "operator", "guest"}),
        ({"action": "DENY", **SIGNED}, {"nobody"}),
    ],
    ids=["allow claims", "deny claims", "allow header", "deny header"],
)
async def test_every_action_with_every_caller(kind: str, rbac: Spec, expected: set[str], upstream: McpUpstream) -> None:
    more: dict[str, Any] = {"mcp_servers": {"allow_addresses": ["127.0.0.0/8"]}}
    async with house(guarded(), **more) as here, people(here, *CALLERS.values()) as found:
        name = await pushed(here, kind, rbac, upstream)
        who = dict(zip(CALLERS, found, strict=True))
        assert {one for one in who if await sees(who[one], name)} == expected


async def test_everybody_hears_of_a_change_of_their_own_list_and_of_no_other() -> None:
    async with (
        asyncio.timeout(BOUND),
        house(guarded()) as here,
        people(here, None, CALLERS["admin"]) as (nobody, admin),
        hearing(nobody) as by_nobody,
        hearing(admin) as by_admin,
    ):
        await here.put("McpTool", "a/main/a.secret", tool("a.secret", rbac={"action": "ALLOW", **LISTED}))
        assert await by_admin.get() == "notifications/tools/list_changed"
        await here.put("McpTool", "a/main/a.open", tool("a.open"))
        assert await by_admin.get() == "notifications/tools/list_changed"
        assert await by_nobody.get() == "notifications/tools/list_changed"
        await here.put("McpTool", "a/main/a.open", tool("a.open", rbac={"action": "ALLOW", **LISTED}))
        assert await by_nobody.get() == "notifications/tools/list_changed"
        await here.put("McpTool", "a/main/b.last", tool("b.last"))
        assert await by_nobody.get() == "notifications/tools/list_changed"
        assert await by_admin.get() == "notifications/tools/list_changed"
        assert by_nobody.empty()
        assert by_admin.empty(), "that a.open was closed to others changed nothing for an admin"


async def test_pages_of_a_restricted_list_are_full_and_end() -> None:
    allow = {"action": "ALLOW", **LISTED}
    spec = {**guarded(), "page_size": 3}
    async with house(spec) as here, people(here, None, CALLERS["admin"]) as (nobody, admin):
        for number in range(8):
            await here.put("McpTool", f"a/main/a.t{number}", tool(f"a.t{number}", rbac=allow if number % 2 else None))
        assert len((await nobody.page())[0]) == 3
        assert await nobody.listed() == ["a.t0", "a.t2", "a.t4", "a.t6"]
        assert len(await admin.listed()) == 8


async def test_a_list_that_depends_on_nobody_is_public() -> None:
    async with house(guarded()) as here, people(here, None) as (nobody,):
        await here.put("McpTool", "a/main/a.t", tool("a.t"))
        assert (await modern(nobody, "tools/list"))["cacheScope"] == "public"
    async with house(guarded(required=True)) as here, people(here, CALLERS["admin"]) as (admin,):
        await here.put("McpTool", "a/main/a.t", tool("a.t"))
        assert (await modern(admin, "tools/list"))["cacheScope"] == "private"


async def test_a_thousand_users_of_three_roles_share_three_lists() -> None:
    async with house(guarded()) as here:
        for role in ("red", "green", "blue"):
            rbac = {"action": "ALLOW", "permissions": [{"jwt_claim": {"field": "role", "value": role}}]}
            await here.put("McpTool", f"a/main/a.{role}", tool(f"a.{role}", rbac=rbac))
        access = here.gateway.doors["a"].access
        assert access is not None
        view = here.gateway.catalogs[0].published.view
        lists = set()
        for number in range(1000):
            role = ("red", "green", "blue")[number % 3]
            caller = await access.admit({"Authorization": f"Bearer {token(sub=f'user {number}', role=role)}"})
            listed = view.listed(caller)
            assert listed == [f"a.{role}"]
            lists.add(id(listed))
        assert len(lists) == 3


async def test_search_does_not_spell_out_what_a_caller_may_not_see() -> None:
    rbac = {"action": "ALLOW", **LISTED}
    async with house(guarded()) as here, people(here, None, CALLERS["admin"]) as (nobody, admin):
        await here.put("McpTool", "a/main/zirconium.vault", tool("zirconium.vault", "Open the treasury", rbac=rbac))
        await here.put("McpTool", "a/main/a.t", tool("a.t"))

        async def asked(who: Tenant, query: str) -> Spec:
            async with who.http.post(f"{who.url}/mcp/search", json={"query": query}) as response:
                found: Spec = await response.json()
                return found

        for typed, read in (("tresaury", "treasury"), ("zirconum", "zirconium")):
            assert (await asked(admin, typed))["corrected"] == {typed: read}
            seen = await asked(nobody, typed)
            assert seen == {**seen, "tools": [], "total": 0}
            assert read not in str(seen)
            assert set(seen) == set(await asked(nobody, "qqqqqqqq")), "as for a word that nobody ever used"
