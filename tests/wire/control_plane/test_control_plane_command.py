"""The command as users start it: a real process, a folder that changes under it."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from plain_client import TOOL, Client

Dial = Callable[..., Awaitable[Client]]
Start = Callable[..., Awaitable["Command"]]


class Command:
    def __init__(self, process: asyncio.subprocess.Process, xds: str, http: str) -> None:
        self.process, self.xds, self.http = process, xds, http

    async def status(self) -> Any:
        async with aiohttp.ClientSession() as session, session.get(f"{self.http}/status") as response:
            return await response.json()


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    processes: list[asyncio.subprocess.Process] = []

    async def run(*arguments: str) -> Command:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "control_plane_example", *arguments,
            "--address", "127.0.0.1:0", "--http", "127.0.0.1:0",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        processes.append(process)
        assert process.stdout is not None
        async with asyncio.timeout(20):
            line = (await process.stdout.readline()).decode()
        found = re.fullmatch(r"serving xDS on (\S+) and HTTP on (\S+)\n", line)
        assert found, line
        return Command(process, found[1], found[2])

    yield run
    for process in processes:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(10):
                await process.communicate()
            assert process.returncode == 0


def write(path: Path, *names: str) -> None:
    path.write_text(
        "\n---\n".join(
            json.dumps(
                {
                    "apiVersion": "ctl.arion.io/v1alpha1",
                    "kind": "McpTool",
                    "metadata": {"name": name},
                    "spec": {"description": path.name},
                }
            )
            for name in names
        ),
        encoding="utf-8",
    )


async def test_the_folder_is_served_and_followed_and_bad_files_leave_what_was_served(
    tmp_path: Path, start: Start, dial: Dial
) -> None:
    write(tmp_path / "a.yaml", "s/c/n.a")
    command = await start(str(tmp_path))
    client = await dial(command.xds)
    await client.ask(TOOL, "*")
    assert [name.partition("@")[0] for name in await client.reads()] == ["s/c/n.a"]
    loop = asyncio.get_running_loop()
    began = loop.time()
    write(tmp_path / "b.yaml", "s/c/n.b", "s/c/n.c")
    assert [name.partition("@")[0] for name in await client.reads()] == ["s/c/n.b", "s/c/n.c"]
    assert loop.time() - began < 2  # 0.2 s on a quiet machine
    (tmp_path / "b.yaml").write_text("kind: [", encoding="utf-8")
    async with asyncio.timeout(10):
        # Another process's page: there is nothing to wait on.
        while not (status := await command.status())["file_faults"]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert list(status["file_faults"]) == ["b.yaml"]
    (tmp_path / "a.yaml").unlink()
    assert await client.reads() == ["-s/c/n.a"]
    write(tmp_path / "b.yaml", "s/c/n.b")
    assert await client.reads() == ["-s/c/n.c"]


async def test_without_a_folder_it_answers_and_serves_what_is_put(start: Start, dial: Dial) -> None:
    command = await start()
    client = await dial(command.xds)
    await client.ask(TOOL, "*")
    assert await client.reads() == []
    document = {"apiVersion": "ctl.arion.io/v1alpha1", "kind": "McpTool", "metadata": {"name": "s/c/n.a"}, "spec": {}}
    async with (
        aiohttp.ClientSession() as session,
        session.put(f"{command.http}/resources", json=document) as response,
    ):
        version = (await response.json())["version"]
    assert await client.reads() == [f"s/c/n.a@{version}"]


async def test_an_address_that_cannot_be_had_and_a_folder_that_is_none_end_with_a_sentence(start: Start) -> None:
    command = await start()
    for arguments, sentence in (
        (["/no/such/folder"], "is not a folder"),
        (["--address", "127.0.0.1:0", "--http", command.http.removeprefix("http://")], "cannot serve"),
    ):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "control_plane_example", *arguments, stderr=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(20):
            _, said = await process.communicate()
        assert process.returncode == 2
        assert sentence in said.decode()
        assert "Traceback" not in said.decode()


async def test_told_to_stop_it_ends_its_streams_in_order(tmp_path: Path, start: Start, dial: Dial) -> None:
    write(tmp_path / "a.yaml", "s/c/n.a")
    command = await start(str(tmp_path))
    client = await dial(command.xds)
    await client.ask(TOOL, "*")
    assert [one.name for one in (await client.read()).resources] == ["s/c/n.a"]
    command.process.send_signal(signal.SIGINT)
    async with asyncio.timeout(10):
        _, said = await command.process.communicate()
    assert command.process.returncode == 0
    assert b"stream 1 ended: StatusCode.UNAVAILABLE the control plane stops" in said
    assert b"Traceback" not in said
    assert b"Aborting" not in said


async def ended(*arguments: str) -> tuple[int | None, str]:
    """A Python that is expected to give up by itself: its status, and what it says."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(20):
            _, said = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    return process.returncode, said.decode()


async def test_an_address_that_somebody_has_is_named_and_never_shared(start: Start) -> None:
    first = await start()
    http = first.http.removeprefix("http://")
    module = ("-m", "control_plane_example")
    status, said = await ended(*module, "--address", first.xds, "--http", "127.0.0.1:0")
    assert status == 2
    assert f"cannot listen on {first.xds}" in said
    status, said = await ended(*module, "--address", "127.0.0.1:0", "--http", http)
    assert (status, said.splitlines()[-1]) == (2, f"cannot serve: cannot listen on {http}: Address already in use")
    status, said = await ended("-m", "control_plane_example.sample_service", "--address", http)
    assert (status, said) == (2, f"cannot listen on {http}: Address already in use\n")


async def test_without_its_extra_it_says_what_to_install() -> None:
    without = (
        "import sys, runpy; sys.modules['envoy_data_plane'] = None; runpy.run_module('control_plane_example.__main__')"
    )
    status, said = await ended("-c", without)
    assert status == 1
    assert said.startswith("the example control plane needs the module 'envoy_data_plane'")
    assert "pip install 'arion-tds[control-plane]'" in said
    assert len(said.splitlines()) == 1
