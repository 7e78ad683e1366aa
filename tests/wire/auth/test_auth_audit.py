"""The audit log: every call by whichever way, who made it, what became of it; arguments only where asked for."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from auth_people import jwt_config, person, token
from gateway_house import BOUND, Spec, house, inline, listener, tool

ADMIN = {"action": "ALLOW", "permissions": [{"jwt_claim": {"field": "role", "value": "admin"}}]}


def tenant(**gateway: Any) -> Spec:
    return listener(gateway=gateway, jwt=jwt_config())


async def calls(path: Path, spec: Spec, config: Spec) -> list[Spec]:
    async with asyncio.timeout(BOUND), house(spec, audit_log={"path": str(path), **config}) as here:
        await here.put("McpTool", "a/main/a.t", tool("a.t", input_schema=inline({"type": "object"})))
        await here.put("McpTool", "a/main/a.secret", tool("a.secret", rbac=ADMIN))
        await here.put("McpTool", "a/main/a.down", tool("a.down", rest_backend={
            "method": "GET", "path": "/", "cluster": "nowhere"}))  # fmt: skip
        async with person(here, token(sub="ada", role="admin")) as ada, person(here, None) as nobody:
            await ada.call("a.t", password="hunter2")
            await ada.call("a.secret")
            await ada.call("a.down")
            await nobody.call("a.t")
            await nobody.call("a.secret")
            if "search" in spec["mcp_gateway"]:
                await ada.post("tools/call", {"name": "call_tool", "arguments": {"name": "a.secret", "arguments": {}}})
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_every_call_is_one_line_without_its_arguments(tmp_path: Path) -> None:
    found = await calls(tmp_path / "audit", tenant(), {})
    assert [(one["subject"], one["tool"], one["outcome"]) for one in found] == [
        ("main:ada", "a.t", "ok"),
        ("main:ada", "a.secret", "ok"),
        ("main:ada", "a.down", "upstream_error"),
        (None, "a.t", "ok"),
    ]
    assert all(one["listener"] == "a" and one["request_id"] and one["ms"] >= 0 and one["time"] for one in found)
    assert "hunter2" not in json.dumps(found)
    assert not any("arguments" in one for one in found)


async def test_arguments_are_written_where_the_config_says_so(tmp_path: Path) -> None:
    found = await calls(tmp_path / "audit", tenant(), {"arguments": True})
    assert found[0]["arguments"] == {"password": "hunter2"}


async def test_a_call_through_call_tool_names_the_tool_that_was_called(tmp_path: Path) -> None:
    found = await calls(tmp_path / "audit", tenant(search={}), {})
    assert [(one["subject"], one["tool"]) for one in found][-1] == ("main:ada", "a.secret")
