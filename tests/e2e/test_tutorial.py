"""The tutorial from its first line to its last: files saved, commands typed, and what it says comes out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_processes import eventually
from e2e_reader import Reader

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not all(map(shutil.which, ("sed", "sh"))), reason="needs sed and a shell"),
]

RUNNING = ("control_plane_example", "arion-tds serve")
"""Commands that go on running, and are left to."""


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path, "docs/tutorial.md")
    yield made
    for process in made.started:
        process.kill()


def save(reader: Reader, block: str) -> None:
    """A file whose first line is its name."""
    name = re.match(r"# (\S+)\n", block)
    assert name is not None, block
    (reader.folder / name[1]).write_text(block, encoding="utf-8")


async def comes_out(reader: Reader, block: str) -> None:
    """Commands after `$ `, each with what it prints: line by line, `…` stands for anything."""
    for command, *expected in (part.splitlines() for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]):
        parts = [re.escape(part.strip()) for line in expected for part in line.split("…") if part.strip()]

        async def look(command: str = command, parts: list[str] = parts) -> None:
            said = reader.type(f"exec 2>&1; {command} || true")
            assert re.search(".*".join(parts), said, re.DOTALL), said

        await eventually(look, timeout=10)


async def test_the_tutorial_works_as_written(reader: Reader) -> None:
    for language, block in re.findall(r"^```(sh|yaml|console)\n(.*?)^```", reader.text, re.MULTILINE | re.DOTALL):
        if language == "yaml":
            save(reader, block)
        elif language == "console":
            await comes_out(reader, block)
        else:
            for line in block.splitlines():
                if any(command in line for command in RUNNING):
                    reader.background(f"exec {line}")
                else:
                    reader.type(line)
