"""A gateway that nobody searches does without numpy, and one without code mode without what runs programs."""

from __future__ import annotations

import subprocess
import sys


def test_a_gateway_starts_without_what_few_need() -> None:
    code = (
        "import sys; from arion_tds.cli import serving; "
        "print([name for name in ('numpy', 'rapidfuzz', 'rich', 'joserfc', 'cryptography') if name in sys.modules], "
        "[name for name in sys.modules if name.startswith('arion_tds.codemode')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"
