"""Static MCP servers over stdio through the whole gateway: as the server made it, restarted, idle, crashing, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from gateway_house import House, listener
from upstream_house import ERAS, Caller, announced, failure_of, gateway, text_of, until, until_served

HERE = Path(__file__).parent


@contextlib.asynccontextmanager
async def child(script: str, state: Path, **more: Any) -> AsyncIterator[House]:
    """A gateway whose listener runs the script as `c`; its tools are served."""
    server = {"namespace": "c", "command": [sys.executable, str(HERE / script), str(state)], **more}
    patient = {"discovery_timeout": "60s", "default": {"handshake_timeout": "60s"}}
    async with gateway(listener(stdio_servers=[server]), mcp_servers=patient) as here:
        yield here


def starts(state: Path) -> list[int]:
    """The pids of every start."""
    path = state / "starts"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


async def test_description_schema_default_and_error_arrive_as_a_server_of_the_sdk_made_them(tmp_path: Path) -> None:
    async with child("upstream_sdk_child.py", tmp_path) as here:
        for era in ERAS:
            caller = await Caller.of(here, era)
            listed = {one["name"]: one for one in await caller.tools()}
            assert sorted(listed) == ["c.die", "c.fail", "c.greet"]
            greet = listed["c.greet"]
            assert " ".join(greet["description"].split()) == "Greet somebody. The title stands before the name."
            schema = greet["inputSchema"]
            assert schema["required"] == ["name"]
            title = schema["properties"]["title"]
            assert title["anyOf"] == [{"type": "string"}, {"type": "null"}]
            assert title["default"] is None
            assert schema["properties"]["times"]["default"] == 1

            assert text_of(await caller.call("c.greet", name="Ada")) == "Hello Ada!"
            assert text_of(await caller.call("c.greet", name="Ada", title=None)) == "Hello Ada!"
            named = await caller.call("c.greet", name="Ada", title="Dr")
            assert named["structuredContent"] == {"result": "Hello Dr Ada!"}
            failed = await caller.call("c.fail", why="broken")
            assert failed["isError"] is True
            assert "Error executing tool fail" in text_of(failed)
            assert "structuredContent" not in failed  # the server's own error, not one of the gateway's


async def test_restarted_with_one_tool_more_it_is_listed_to_clients_that_stayed(tmp_path: Path) -> None:
    async with child("upstream_sdk_child.py", tmp_path) as here, contextlib.AsyncExitStack() as stack:
        callers = [await Caller.of(here, era) for era in ERAS]
        heard = [await stack.enter_async_context(caller.listening()) for caller in callers]
        (tmp_path / "more").touch()
        assert failure_of(await callers[0].call("c.die"))["code"] == "upstream_error"
        await until_served(here, "c.die", "c.fail", "c.greet", "c.one_more")  # nobody has called it again
        for caller, said in zip(callers, heard, strict=True):
            await announced(said)
            assert "c.one_more" in await caller.listed()
            assert text_of(await caller.call("c.one_more")) == "new"


async def test_an_idle_process_ends_and_the_next_call_starts_another_with_its_new_tools(tmp_path: Path) -> None:
    async with child("upstream_child.py", tmp_path, idle_timeout="0.3s") as here:
        caller = await Caller.of(here, "modern")
        first = int(text_of(await caller.call("c.pid")))
        before = starts(tmp_path)
        await until(lambda: not runs(first))
        assert await here.a.listed() == ["c.die", "c.pid"]  # still listed
        assert starts(tmp_path) == before  # and left alone
        (tmp_path / "more").touch()
        assert int(text_of(await caller.call("c.pid"))) not in before
        await until_served(here, "c.die", "c.one_more", "c.pid")


async def test_a_server_that_keeps_crashing_is_started_ever_more_rarely_and_returns_by_itself(tmp_path: Path) -> None:
    (tmp_path / "crash").touch()
    async with child("upstream_child.py", tmp_path) as here:
        await here.a.serves()
        await until(lambda: len(starts(tmp_path)) >= 3)
        assert "crashed" in (await status(here))["last_error"] or "ended" in (await status(here))["last_error"]
        (tmp_path / "crash").unlink()
        await until_served(here, "c.die", "c.pid")
        assert len(starts(tmp_path)) <= 5  # while it was asked every few hundredths of a second
        assert text_of(await (await Caller.of(here, "modern")).call("c.pid")) == str(starts(tmp_path)[-1])


async def test_calls_beside_a_crash_fail_in_bounded_time_and_later_ones_succeed(tmp_path: Path) -> None:
    async with child("upstream_child.py", tmp_path) as here, asyncio.timeout(20):
        caller = await Caller.of(here, "legacy")
        died, *others = await asyncio.gather(caller.call("c.die"), *(caller.call("c.pid") for _ in range(4)))
        assert failure_of(died)["retryable"] is False  # it may have been executed
        assert all(one.get("content") for one in others)
        assert int(text_of(await caller.call("c.pid"))) == starts(tmp_path)[-1]


async def test_no_child_is_left_when_the_gateway_stops(tmp_path: Path) -> None:
    async with child("upstream_child.py", tmp_path) as here:
        pid = int(text_of(await (await Caller.of(here, "modern")).call("c.pid")))
        assert runs(pid)
    assert not any(runs(one) for one in starts(tmp_path))


async def test_a_command_that_does_not_exist_is_said_and_keeps_nothing_else_from_starting(tmp_path: Path) -> None:
    server = {"namespace": "c", "command": [str(tmp_path / "missing")]}
    async with gateway(listener(stdio_servers=[server])) as here:
        await here.a.serves()
        assert "cannot be started" in (await status(here))["last_error"]


async def status(here: House) -> dict[str, Any]:
    (found,) = (await here.admin("config_dump"))["mcp_servers"]
    assert isinstance(found, dict)
    return found
