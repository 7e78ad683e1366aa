"""Each target of tests/fuzz/guided.py for a bounded number of inputs, in a process of its own."""

import pathlib
import subprocess
import sys

import pytest

GUIDED = pathlib.Path(__file__).parent.parent / "fuzz" / "guided.py"


SEEDS = {
    "decode": b"\n\x02ns\x12\x04tool\x1a\x01d2\x0f\n\x03GET\x12\x04/{{a",
    "jsonrpc": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"query":"x"}}}',
    "transcode": b"a/{{x}}?q={{y.z}}",
    "openapi": b'{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/a/{b}":{"get":{"operationId":"o"}}}}',
}


@pytest.mark.parametrize("target", ["decode", "jsonrpc", "transcode", "openapi"])
def test_guided_inputs_never_raise(target: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("atheris")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "seed").write_bytes(SEEDS[target])
    command = [
        sys.executable,
        str(GUIDED),
        target,
        str(corpus),
        "-runs=4000",
        "-max_total_time=10",
        "-seed=1",
        "-rss_limit_mb=1024",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done" in done.stderr
