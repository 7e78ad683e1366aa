"""What a gateway is put in front of, and what a contender is: the same for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import pathlib
import sys
from typing import Any, Protocol

from benchmarks import rig
from benchmarks.peers.tree import ROOT, Tree


class Unavailable(Exception):  # noqa: N818 - a result, with its reason
    """A gateway cannot be installed, started or configured, or does not answer rightly."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """`kind` is rest: so many tools of one REST service; or mcp: one MCP server of so many tools."""

    kind: str
    tools: int
    port: int
    """Where the service listens on 127.0.0.1."""
    scratch: pathlib.Path
    """A folder for files of this run."""

    @property
    def url(self) -> str:
        """The MCP server's endpoint, or the REST service's base."""
        return f"http://127.0.0.1:{self.port}" + ("/mcp" if self.kind == "mcp" else "")


@dataclasses.dataclass(frozen=True)
class Started:
    """A gateway that has been started, perhaps not yet ready."""

    tree: Tree
    url: str
    tool: str
    """The name of the tool to call."""
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    begun: float | None = None
    """When it was started, on the loop's clock, where that was not just now."""


class Contender(Protocol):
    """A gateway of somebody."""

    name: str
    version: str

    async def install(self) -> None:
        """Make it ready to be started. Unavailable when that cannot be."""

    def started(self, setting: Setting) -> contextlib.AbstractAsyncContextManager[Started]:
        """It, in front of the service, until the block ends."""


async def installed(requirements: pathlib.Path) -> pathlib.Path:
    """The folder of the commands of an environment of its own, made at first use."""
    command = [sys.executable, "scripts/python_packages.py", str(requirements)]
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=pipe, stderr=pipe)
    said, errors = await child.communicate()
    if child.returncode != 0:
        reason = errors.decode(errors="replace").strip().splitlines() or ["no reason said"]
        raise Unavailable(f"cannot be installed: {reason[-1][:200]}")
    return pathlib.Path(said.decode().strip())


def pinned(requirements: pathlib.Path) -> str:
    """The version of the first package that a requirements file pins."""
    lines = [line for line in requirements.read_text().splitlines() if "==" in line]
    return lines[0].split("==")[1].strip()


def tool(number: int) -> tuple[str, str, dict[str, Any]]:
    """Name, description and input schema of a REST tool."""
    spec = rig.tool(number)
    return spec["name"], spec["description"], json.loads(spec["input_schema"]["inline_string"])


async def until(what: str, tree: Tree, seconds: float, attempt: Any) -> Any:  # noqa: ANN401
    """Try again until `await attempt()` gives a value; Unavailable when the process ends or the time is over."""
    reason = ""
    try:
        async with asyncio.timeout(seconds):
            while not tree.ended:
                try:
                    found = await attempt()
                except (OSError, ValueError, KeyError) as error:
                    reason = f": {error}"[:300]
                else:
                    if found is not None:
                        return found
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise Unavailable(f"{what}: not in {seconds:.0f} s{reason}") from None
    raise Unavailable(f"{what}: the process ended: {tree.last_words()}")
