"""The example of docs/testing.md, run as its reader would run it: in a project of its own."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest
from e2e_processes import ROOT

pytestmark = pytest.mark.e2e


async def test_the_example_passes_in_a_project_of_its_own(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    for name, language in (("pytest.ini", "ini"), ("test_catalog.py", "python")):
        (block,) = re.findall(rf"^```{language}\n(# {re.escape(name)}\n.*?)^```", page, re.MULTILINE | re.DOTALL)
        (tmp_path / name).write_text(block, encoding="utf-8")
    async with asyncio.timeout(60):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path),
            cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    assert "1 passed" in said.decode()
