"""docs/walkthrough.md shows the bytes that are on the wire today."""

from __future__ import annotations

import subprocess
import sys

import pytest
from e2e_processes import ROOT

pytestmark = pytest.mark.e2e


def test_the_walkthrough_is_what_a_run_writes() -> None:
    script = [sys.executable, "scripts/walkthrough.py", "--check"]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
