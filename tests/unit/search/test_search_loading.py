"""A gateway that nobody searches does without numpy."""

from __future__ import annotations

import subprocess
import sys


def test_what_keeps_an_index_does_not_load_what_asks_it() -> None:
    code = (
        "import sys; from arion_tds import app, catalog, embedding, ingest; from arion_tds.search import hits; "
        "from arion_tds.decode import table; print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
