"""Workers come, are replaced and go: nothing is missed meanwhile, and nothing stays behind."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from e2e_processes import START_SECONDS, Process, eventually, free_ports
from e2e_workers import SCOPE, Caller, Team, team, tool

from control_plane_example.mock import MockControlPlane

pytest_plugins = ["control_plane_example.pytest_plugin"]
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="only Linux shares a port")]


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder with a short path for sockets."""
    made = Path(tempfile.mkdtemp(prefix="team-"))
    yield made
    shutil.rmtree(made)


async def is_over(found: Team) -> None:
    """Until no process of it is left."""

    async def gone() -> None:
        assert not found.process.survivors(), found.process.log()

    await eventually(gone)


def is_there(pid: int) -> bool:
    """Whether a process has that number; one that was killed may still hold sockets in whose queue connections wait."""
    return Path(f"/proc/{pid}").exists()


async def test_one_that_is_killed_under_load_is_missed_by_its_own_connections_alone(
    scratch: Path, control_plane: MockControlPlane
) -> None:
    await control_plane.put("McpTool", f"{SCOPE}/n.quick", tool("quick"))
    async with team(scratch, control_plane, runtime=scratch) as found:
        pids = await found.pids()
        callers = [await found.at(number) for number in (0, 1) for _ in range(4)]
        in_flight: list[int] = []  # calls that fail, begun before it was killed
        waiting: list[int] = []  # begun after that, before it was gone
        killed = asyncio.Event()
        done = dict.fromkeys(callers, 0)
        over = asyncio.Event()

        async def load(caller: Caller) -> None:
            while not over.is_set():
                begun = in_flight if not killed.is_set() else waiting if is_there(pids[1]) else None
                try:
                    answer = await caller.call("n.quick")
                except aiohttp.ClientError:
                    assert begun is not None, "a call begun after the worker was gone has failed"
                    begun.append(caller.worker)
                else:
                    assert answer["result"]["isError"] is False, answer
                    done[caller] += 1

        async def more(count: int) -> None:
            before = dict(done)

            async def each() -> None:
                assert all(done[caller] >= before[caller] + count for caller in callers), (in_flight, waiting)

            await eventually(each)

        loading = [asyncio.create_task(load(caller)) for caller in callers]
        await more(20)
        control_plane.hold()  # its replacement has nothing to serve yet, and must not be asked
        killed.set()
        os.kill(pids[1], signal.SIGKILL)
        await more(50)

        async def is_replaced() -> None:
            state = await found.admin("/readyz")
            assert state["ready"] is True
            assert [one.get("pid", pids[1]) != pids[1] for one in state["workers"]] == [True, True]
            assert [one["ready"] for one in state["workers"]] == [True, False]

        await eventually(is_replaced)
        await more(20)
        control_plane.release()

        async def serves() -> None:
            again = await found.pids()
            assert again[0] == pids[0]
            assert again[1] != pids[1]

        await eventually(serves)
        second = await found.at(1)
        assert await second.listed() == ["n.quick"]
        over.set()
        await asyncio.gather(*loading)
        assert set(in_flight + waiting) <= {1}
        assert len(in_flight) <= 4
        assert "worker 1 was ended by SIGKILL; it is replaced at once" in found.process.log()

        os.kill(pids[0], signal.SIGTERM)  # one alone, in order

        async def is_renewed() -> None:
            assert (await found.pids())[0] != pids[0]

        await eventually(is_renewed)
        assert "worker 0 ended with status 0; it is replaced at once" in found.process.log()

        listener = found.config["listeners"][0]
        other = {**listener, "name": "b", "address": f"127.0.0.1:{free_ports(1)[0]}"}
        other["mcp_gateway"] = {"server_info": {"name": "b", "version": "1"}, "tools_mode": {}, "tools": [tool("own")]}
        clusters = found.config["clusters"]
        found.write(listeners=[listener, other], workers=3, clusters=clusters)
        os.kill(found.process.child.pid, signal.SIGHUP)

        async def is_taken() -> None:
            assert [one["config_generation"] for one in await found.workers()] == [2, 2]

        await eventually(is_taken)
        assert found.process.log().count("workers differs from the config in use") == 2
        found.config["workers"] = 2
        for number in (0, 1):
            assert await (await found.at(number, f"http://{other['address']}")).listed() == ["n.own"]

        found.process.child.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(found.process.child.wait, 20) == 0
        assert not found.process.survivors()
        assert "Traceback" not in found.process.log()
        assert not list(scratch.glob("arion-tds-*"))


async def test_all_that_are_told_to_stop_one_by_one_are_replaced(
    scratch: Path, control_plane: MockControlPlane
) -> None:
    await control_plane.put("McpTool", f"{SCOPE}/n.quick", tool("quick"))
    async with team(scratch, control_plane, runtime=scratch) as found:
        before = await found.pids()
        for pid in before:
            os.kill(pid, signal.SIGTERM)

        async def are_renewed() -> None:
            assert not set(await found.pids()) & set(before), found.process.log()

        await eventually(are_renewed)
        assert "Traceback" not in found.process.log()


async def test_one_that_hangs_is_killed_and_replaced_and_one_that_starts_slowly_is_let_be(
    scratch: Path, control_plane: MockControlPlane
) -> None:
    await control_plane.put("McpTool", f"{SCOPE}/n.quick", tool("quick"))
    async with team(scratch, control_plane, runtime=scratch, worker_timeout="4s") as found:
        before = await found.pids()
        for caller in await found.callers():
            await caller.call("n.quick")
        calls = 'arion_tds_calls_total{backend="rest",listener="a",outcome="ok"}'
        assert await found.metric(calls) == 2
        control_plane.hold()  # a replacement has nothing to serve yet
        os.kill(before[1], signal.SIGKILL)

        async def starts() -> int:
            second = (await found.workers())[1]
            assert second.get("serving") is False
            assert second.get("pid") not in {None, before[1]}
            return int(second["pid"])

        slow = await eventually(starts)
        with found.frozen(slow):
            os.kill(before[0], signal.SIGSTOP)

            async def is_over() -> None:
                assert not is_there(before[0])

            await eventually(is_over)
            assert is_there(slow)  # it has been still for longer than the other one
        control_plane.release()

        async def serve() -> None:
            now = await found.pids()
            assert now[0] != before[0]
            assert now[1] == slow, found.process.log()

        await eventually(serve)
        assert await found.metric(calls) == 2  # of two that are no more
        log = found.process.log()
        assert "worker 0 has not answered for 4 s (worker_timeout): it is killed" in log
        assert "worker 0 was ended by SIGKILL; it is replaced at once" in log
        assert log.count("it is killed") == 1, log


async def test_told_to_stop_all_drain_and_a_second_signal_hurries_all(
    scratch: Path, control_plane: MockControlPlane
) -> None:
    await control_plane.put("McpTool", f"{SCOPE}/n.quick", tool("quick"))
    async with team(scratch, control_plane, drain_delay="600s") as found:
        callers = await found.callers()
        found.process.child.send_signal(signal.SIGTERM)

        async def drains() -> None:
            state = await found.admin("/readyz")
            assert state["ready"] is False
            assert [one["draining"] for one in state["workers"]] == [True, True]

        await eventually(drains)
        for caller in callers:
            assert await caller.listed() == ["n.quick"]
        found.process.child.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(found.process.child.wait, 20) == 0
        assert not found.process.survivors()


async def test_without_its_supervisor_no_worker_stays(scratch: Path, control_plane: MockControlPlane) -> None:
    async with team(scratch, control_plane, runtime=scratch, drain_delay="600s") as found:
        found.process.child.kill()
        await is_over(found)
        assert not list(scratch.glob("arion-tds-*"))


async def test_nobody_is_told_that_all_are_ready_while_one_never_was(
    scratch: Path, control_plane: MockControlPlane
) -> None:
    await control_plane.put("McpTool", f"{SCOPE}/n.quick", tool("quick"))
    await control_plane.stop()
    async with team(scratch, control_plane, fetch="100ms") as found:

        async def serve() -> list[dict[str, Any]]:  # without content, since that takes too long
            state = await found.workers()
            assert [one.get("serving") for one in state] == [True, True]
            return state

        stuck = (await eventually(serve, START_SECONDS))[1]["pid"]

        async def at_the_first() -> Caller:
            caller = Caller(found.admin_url)
            found.stack.push_async_callback(caller.http.close)
            assert json.loads(await caller.page("/readyz"))["worker"] == 0
            return caller

        first = await eventually(at_the_first)
        with found.frozen(stuck):
            await control_plane.restart()

            async def has_content() -> dict[str, Any]:
                state: dict[str, Any] = json.loads(await first.page("/readyz"))
                assert state["workers"][0]["ready"] is True
                return state

            assert (await eventually(has_content))["ready"] is False
        await found.ready()


async def test_what_was_kept_is_served_by_all_before_the_control_plane_answers(
    scratch: Path, control_plane: MockControlPlane
) -> None:
    await control_plane.put("McpTool", f"{SCOPE}/n.quick", tool("quick"))
    cache = {"directory": str(scratch / "cache")}
    async with team(scratch, control_plane, cache=cache) as found:

        async def is_kept() -> None:
            state = await found.admin("/readyz")
            assert (state["cache"]["pending_bytes"], state["cache"]["last_error"]) == (0, "")

        await eventually(is_kept)
        assert found.process.stop() == 0
    await control_plane.stop()
    async with team(scratch, control_plane, cache=cache) as found:
        for caller in await found.callers():
            assert await caller.listed() == ["n.quick"]
        assert (await found.admin("/readyz"))["cache"]["serving_from_disk"] is True
    await control_plane.restart()


async def refused(folder: Path, config: dict[str, Any], *more: str) -> str:
    """What is said by a gateway that cannot start: it ends with status 1, and nothing of it is left."""
    path = folder / "gateway.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    (folder / "refused.log").write_text("", encoding="utf-8")
    process = Process.module(folder / "refused.log", "arion_tds", "serve", "-c", str(path), *more)
    try:
        assert await asyncio.to_thread(process.child.wait, 30) == 1, process.log()
        assert not process.survivors()
        return process.log()
    finally:
        process.kill()


def config(**keys: Any) -> dict[str, Any]:
    """A config of one static tool on free ports."""
    admin, listener = free_ports(2)
    gateway = {"server_info": {"name": "team-mcp", "version": "1"}, "tools_mode": {}, "tools": [tool("own")]}
    return {
        "workers": 2,
        "admin": {"address": f"127.0.0.1:{admin}"},
        "listeners": [{"name": "a", "address": f"127.0.0.1:{listener}", "mcp_gateway": gateway}],
        "clusters": [{"name": "backend", "endpoints": ["http://127.0.0.1:1"]}],
        **keys,
    }


async def test_a_start_that_cannot_be_is_said_once(tmp_path: Path) -> None:
    said = await refused(tmp_path, config(page_size=3))
    assert said == "page_size: unknown key\n1 mistake: nothing was started\n"
    said = await refused(tmp_path, config(sessions={"key": {"file": "/nowhere/key"}}))
    assert said == "[Errno 2] No such file or directory: '/nowhere/key'\n1 mistake: nothing was started\n"
    anywhere = config()
    anywhere["listeners"][0]["address"] = "127.0.0.1:0"
    said = await refused(tmp_path, anywhere)
    assert "workers: 2 processes cannot serve this config: listener 'a' has port 0" in said


async def test_an_address_that_a_reload_brings_and_somebody_else_has_is_refused_by_all(
    scratch: Path, control_plane: MockControlPlane
) -> None:
    async with team(scratch, control_plane) as found:
        own = found.config["listeners"][0]
        with socket.socket() as theirs:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # like another gateway of this user
            theirs.bind(("127.0.0.1", 0))
            theirs.listen()
            address = f"127.0.0.1:{theirs.getsockname()[1]}"
            gateway = {"server_info": {"name": "b", "version": "1"}, "tools_mode": {}, "tools": [tool("own")]}
            other = {**own, "name": "b", "address": address, "mcp_gateway": gateway}
            found.write(listeners=[own, other])
            os.kill(found.process.child.pid, signal.SIGHUP)

            async def are_refused() -> None:
                state = await found.workers()
                assert [one["config_generation"] for one in state] == [1, 1]
                why = f"listener 'b': cannot listen on {address}: Address already in use"
                assert [one["last_reload_error"] for one in state] == [why, why]

            await eventually(are_refused)
            found.write(listeners=[own, {**other, "share_address": True}])
            os.kill(found.process.child.pid, signal.SIGHUP)
            await eventually(lambda: generation(found, 2))  # told to share it, they do
        found.write(listeners=[own, {**other, "address": f"127.0.0.1:{free_ports(1)[0]}"}])
        os.kill(found.process.child.pid, signal.SIGHUP)
        await eventually(lambda: generation(found, 3))


async def generation(found: Team, wanted: int) -> None:
    """Whether all use that config."""
    assert [one["config_generation"] for one in await found.workers()] == [wanted, wanted], found.process.log()


async def test_an_address_that_another_gateway_has_is_refused(scratch: Path, control_plane: MockControlPlane) -> None:
    async with team(scratch, control_plane) as found:
        taken = config()
        taken["listeners"][0]["address"] = address = found.config["listeners"][0]["address"]
        for workers in ("1", "2"):
            said = await refused(scratch, taken, "--workers", workers)
            assert f"listener 'a': cannot listen on {address}: " in said
