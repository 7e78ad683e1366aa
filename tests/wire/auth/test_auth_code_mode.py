"""Programs of code mode may do what their caller may do, and no more."""

from __future__ import annotations

import pytest
from auth_people import jwt_config, people, token
from gateway_house import Spec, Tenant, house, listener, tool

pytest.importorskip("deno", reason="the extra code-mode is not installed")

ADMIN = {"action": "ALLOW", "permissions": [{"jwt_claim": {"field": "role", "value": "admin"}}]}
LOOK = """
const found = await catalog.tools.search("open the vault");
let called = null;
try { called = await tools.call("vault.open", {}); } catch (error) { called = String(error); }
return {found: JSON.stringify(found), called: JSON.stringify(called)};
"""


async def looked(who: Tenant) -> Spec:
    result = await who.call("execute", code=LOOK)
    assert not result.get("isError"), result
    found: Spec = result["structuredContent"]["result"]
    return found


async def test_a_program_finds_and_calls_what_its_caller_may_use() -> None:
    spec = listener(gateway={"code_mode": {"execution_timeout": "5s"}}, jwt=jwt_config())
    async with house(spec) as here, people(here, token(role="admin"), token(role="guest"), None) as (ada, gus, nobody):
        await here.put("McpTool", "a/main/vault.open", tool("vault.open", "Open the vault", rbac=ADMIN))
        seen = await looked(ada)
        assert "vault.open" in seen["found"]
        assert "/vault/open" in seen["called"]
        for who in (gus, nobody):
            seen = await looked(who)
            assert "vault" not in seen["found"].replace("open the vault", "")
            assert "/vault/open" not in seen["called"]
