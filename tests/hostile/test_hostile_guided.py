"""Each target of tests/fuzz/guided.py for a bounded number of inputs, in a process of its own."""

import pathlib
import subprocess
import sys

import pytest

GUIDED = pathlib.Path(__file__).parent.parent / "fuzz" / "guided.py"


@pytest.mark.parametrize("target", ["decode", "jsonrpc", "transcode", "openapi"])
def test_guided_inputs_never_raise(target: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("atheris")
    command = [sys.executable, str(GUIDED), target, "-runs=4000", "-max_total_time=10", "-seed=1", "-rss_limit_mb=1024"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done" in done.stderr
