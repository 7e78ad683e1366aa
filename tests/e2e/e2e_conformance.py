"""A run of the conformance suite as a process: what `make conformance` and `make conformance-upstream` do.

Used by test_conformance and test_conformance_upstream, which are two files so that they can run side by side.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from e2e_processes import ROOT

PATIENCE = 300
"""Seconds, on a machine that runs other tests too; alone it takes ten, or a minute."""


def judged(module: str, suite: Path) -> None:
    """Run it; it ends with 0 when exactly the expected checks fail and the page shows these results."""
    done = subprocess.run(
        [sys.executable, "-m", module, suite], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
