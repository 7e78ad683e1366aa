"""The commands that look at a running gateway: what they print, their status, and what they say when it goes wrong."""

from __future__ import annotations

import asyncio
import json
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from gateway_house import BOUND, House, house, inline, listener, tool

from arion_tds.cli.main import main

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


class Shell:
    """Types commands at a gateway and reads what comes back."""

    def __init__(self, house: House, capsys: pytest.CaptureFixture[str]) -> None:
        self.house = house
        self._capsys = capsys
        self.out = self.err = ""

    async def __call__(self, *arguments: str, admin: bool = True) -> int:
        """Run one command beside the gateway; its status."""
        where = ["--admin", self.house.gateway.admin] if admin else []
        async with asyncio.timeout(BOUND):
            status = await asyncio.to_thread(main, [*arguments, *where])
        self.out, self.err = self._capsys.readouterr()
        return status

    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
async def sh(capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Shell]:
    async with house(listener("a"), listener("b", tool_names="portable")) as made:
        await made.put("McpTool", "a/main/sky.rain", tool("sky.rain", "When it rains", input_schema=inline(SCHEMA)))
        await made.put("McpTool", "b/main/zoo.lion", tool("zoo.lion", "Where the lion is"))
        yield Shell(made, capsys)


async def test_explain_says_why_a_wrong_tool_is_not_there(sh: Shell) -> None:
    await sh.house.refused("McpTool", "a/main/sky.snow", tool("sky.snow", "", description=""), "description")
    assert await sh("explain", "sky.snow") == 1
    assert "sky.snow  in a/main: rejected" in sh.out
    assert "description" in sh.out
    assert "next: correct the resource and push it again" in sh.out
    assert await sh("explain", "sky.rain") == 0
    assert "is served from Tool a/main/sky.rain version" in sh.out
    assert await sh("explain", "sky.rian", "--scope", "a/main") == 1
    assert "did you mean: sky.rain" in sh.out
    assert await sh("explain", "zoo__lion", "--json") == 0
    assert sh.json()["answers"][0]["scope"] == "b/main"


async def test_explain_shows_the_catalog_as_a_caller_sees_it(sh: Shell) -> None:
    rbac = {"action": "ALLOW", "permissions": [{"jwt_claim": {"field": "role", "value": "admin"}}]}
    await sh.house.put("McpTool", "a/main/sky.sun", tool("sky.sun", rbac=rbac))
    await sh("explain", "sky.sun", "--claim", "role=user")
    assert "sky.sun  in a/main: restricted" in sh.out
    await sh("explain", "sky.sun", "--claim", "role=admin")
    assert "sky.sun  in a/main: served" in sh.out


async def test_status_is_one_screen(sh: Shell) -> None:
    await sh.house.refused("McpTool", "a/main/sky.snow", tool("sky.snow", "", description=""), "description")
    assert await sh("status") == 0
    assert "ready" in sh.out
    assert f"http://{sh.house.gateway.bound['a']}/mcp\ta/main" in sh.out
    assert "sky (tools, 1)" in sh.out
    assert "rejected: 1 resource, see arion-tds problems" in sh.out
    assert await sh("status", "--json") == 0
    assert sh.json()["ready"] is True


async def test_tools_are_lines_with_tabs_where_output_is_piped(sh: Shell) -> None:
    assert await sh("tools") == 0
    lines = [line.split("\t") for line in sh.out.splitlines()]
    assert [line[:4] for line in lines] == [
        ["sky.rain", "a/main", "tools", "rest"],
        ["zoo__lion", "b/main", "tools", "rest"],
    ]
    assert "2 tools of 2 scopes" in sh.err
    assert await sh("tools", "--names", "--scope", "b/main") == 0
    assert sh.out == "zoo__lion\n"
    assert await sh("tools", "--namespace", "sky", "--json") == 0
    assert [one["qualified"] for one in sh.json()["tools"]] == ["sky.rain"]


async def test_what_was_pushed_cannot_steer_the_terminal(sh: Shell) -> None:
    await sh.house.put("McpTool", "a/main/sky.evil", tool("sky.evil", "\x1b]0;mine\x07 red\x1b[31m"))
    assert await sh("tools", "--scope", "a/main") == 0
    assert "\x1b" not in sh.out
    assert "\x07" not in sh.out


async def test_search_asks_the_listener_as_a_client_would(sh: Shell) -> None:
    assert await sh("search", "rains", "--scope", "a/main") == 0
    assert sh.out.startswith("sky.rain\t")
    assert "1 of 1 in a/main" in sh.err
    assert await sh("search", "xylophone", "--listener", "a") == 1
    assert "nothing fits" in sh.err
    assert await sh("search", "rain", "--listener", "a", "--json") == 0
    assert sh.json()["tools"][0]["name"] == "sky.rain"


async def test_call_goes_through_the_listener_and_all_its_checks(sh: Shell, tmp_path: pathlib.Path) -> None:
    assert await sh("call", "sky.rain", '{"city": "Osaka"}', "--scope", "a/main") == 0
    assert json.loads(sh.out)["path"] == "/sky/rain"
    (tmp_path / "arguments.json").write_text('{"city": 5}')
    assert await sh("call", "sky.rain", f"@{tmp_path / 'arguments.json'}", "--scope", "a/main") == 1
    assert "arguments of sky.rain" in sh.err
    assert await sh("call", "sky.rain", "--scope", "a/main", "--json") == 0
    assert sh.json()["content"]


async def test_a_call_of_a_tool_that_is_not_there_says_what_to_do(sh: Shell) -> None:
    assert await sh("call", "sky.rian", "--scope", "a/main") == 1
    assert "Unknown tool: sky.rian" in sh.err
    assert "the control plane has sent nothing called 'sky.rian' for a/main" in sh.err
    assert "did you mean: sky.rain" in sh.err


async def test_problems_are_listed_with_their_reasons(sh: Shell) -> None:
    assert await sh("problems") == 0
    assert "nothing stands rejected" in sh.err
    await sh.house.refused("McpTool", "a/main/sky.snow", tool("sky.snow", "", description=""), "description")
    assert await sh("problems", "--scope", "a/main") == 0
    assert "a/main/sky.snow" in sh.out
    assert "1 problem" in sh.err
    assert await sh("problems", "--scope", "b/main", "--json") == 0
    assert sh.json()["problems"] == []


async def test_watch_prints_a_line_per_change(sh: Shell) -> None:
    events = sh.house.gateway.panel.events
    watching = asyncio.create_task(sh("watch", "--recent", "--limit", str(events.last + 2)))
    await sh.house.put("McpTool", "a/main/sky.sun", tool("sky.sun"))
    await sh.house.refused("McpTool", "a/main/sky.bad", tool("sky.bad", "", description=""), "description")
    assert await watching == 0
    lines = sh.out.splitlines()
    assert lines[0].endswith("control plane is here")
    assert lines[-2].endswith("a/main  2 tools  +sky.sun")
    assert "rejected Tool a/main/sky.bad" in lines[-1]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["call", "sky.rain", "{}"], "choose with --listener NAME or --scope SCOPE"),
        (["call", "sky.rain", "{}", "--listener", "c"], "no such listener: there are a (a/main), b (b/main)"),
        (["call", "sky.rain", "[1]", "--listener", "a"], "must be a JSON object"),
        (["call", "sky.rain", "{", "--listener", "a"], "are not JSON"),
        (["call", "sky.rain", "@/nowhere.json", "--listener", "a"], "No such file"),
        (["tools", "--scope", "c/main"], "no listener serves the scope 'c/main'"),
        (["search", "x", "--listener", "a", "--limit", "0"], "limit"),
        (["search", "x", "--listener", "a", "--token-file", "/nowhere"], "--token-file /nowhere"),
    ],
)
async def test_a_mistake_is_a_sentence_that_says_what_to_do(sh: Shell, arguments: list[str], why: str) -> None:
    assert await sh(*arguments) == 1
    assert why in sh.err
    assert "Traceback" not in sh.err


async def test_a_gateway_that_is_not_there_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["status"], ["explain", "x"], ["tools"], ["problems"], ["search", "x"], ["call", "x"], ["watch"]):
        assert await asyncio.to_thread(main, [*command, "--admin", "127.0.0.1:9"]) == 1
        said = capsys.readouterr().err
        assert "no gateway answers at http://127.0.0.1:9" in said
        assert "arion-tds serve" in said


async def test_the_mcp_listener_is_not_taken_for_the_admin_listener(sh: Shell) -> None:
    mcp = sh.house.gateway.bound["a"]
    assert await sh("status", "--admin", mcp, admin=False) == 1
    assert "nothing is served at /status" in sh.err
    assert await sh("status", "--admin", "ftp://x", admin=False) == 1
    assert "is no address: write http://HOST:PORT" in sh.err
