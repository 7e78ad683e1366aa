"""Somebody who types what a page of the documentation says, in a folder of their own, on free ports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_processes import ROOT, Process, eventually, ports_for, with_ports


class Reader:
    """Somebody who follows a page in `folder`, with this Python's commands on the path.

    `page` and `beside` are paths from the checkout; every port that stands in them is replaced by a free one.
    """

    def __init__(self, folder: Path, page: str, *beside: str) -> None:
        self.folder = folder
        texts = [(ROOT / name).read_text("utf-8") for name in (page, *beside)]
        self.ports = ports_for(*texts)
        self.text = with_ports(texts[0], self.ports)
        self.env = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        if 9901 in self.ports:
            self.env["ARION_TDS_ADMIN"] = f"http://127.0.0.1:{self.ports[9901]}"
        self.started: list[Process] = []

    def block(self, section: str, language: str) -> list[str]:
        """The code blocks of a section, in order."""
        (body,) = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", self.text, re.MULTILINE | re.DOTALL)
        return re.findall(rf"^```{language}\n(.*?)^```", body, re.MULTILINE | re.DOTALL)

    def background(self, command: str) -> Process:
        """Type a command that goes on running."""
        log = self.folder / f"log-{len(self.started)}"
        process = Process(log, "sh", "-c", command, cwd=self.folder, env=self.env)
        self.started.append(process)
        return process

    def type(self, command: str) -> str:
        """Type a command and wait for its end; what it wrote."""
        done = subprocess.run(
            ["sh", "-ec", command],
            cwd=self.folder,
            env={**os.environ, **self.env},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def says(self, process: Process, text: str) -> str:
        """Until the process wrote the text; all that it wrote."""

        async def look() -> str:
            if process.child.poll() is not None:
                pytest.fail(f"it ended:\n{process.log()}")
            assert text in process.log(), process.log()
            return process.log()

        return await eventually(look, timeout=40)
