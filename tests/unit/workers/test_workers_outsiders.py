"""Who listens on an address: workers of ours, or somebody else."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from arion_tds.workers import outsiders

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux")

LISTEN = """
import socket, sys
made = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print(made.getsockname()[1], flush=True)
sys.stdin.read()
"""


def nothing(_seconds: float) -> None:
    """No pause."""


@contextlib.contextmanager
def another_process(host: str) -> Iterator[int]:
    """It listens on a port; its parent is this process, not ours."""
    command = (sys.executable, "-c", LISTEN, host)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        yield int(running.stdout.readline())
        assert running.stdin is not None
        running.stdin.close()


@pytest.mark.parametrize(("theirs", "ours"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "::1")])
def test_another_process_that_listens_there_is_an_outsider(theirs: str, ours: str) -> None:
    if ":" in theirs and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    with another_process(theirs) as port:
        assert outsiders.listen(ours, port, nothing)
    assert not outsiders.listen(ours, port)


def test_one_that_listens_elsewhere_is_none() -> None:
    with another_process("127.0.0.1") as port:
        assert outsiders.listen("0.0.0.0", port, nothing)
        assert not outsiders.listen("127.0.0.2", port)
        assert not outsiders.listen("127.0.0.1", port - 1 if port > 1024 else port + 1)


def test_one_that_is_ending_is_none() -> None:
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(another_process("127.0.0.1"))
        looks: list[float] = []

        def pause(seconds: float) -> None:
            looks.append(seconds)
            stack.close()  # its socket was seen, and is gone at the next look

        assert not outsiders.listen("127.0.0.1", port, pause)
        assert looks == [outsiders.PAUSE]


def test_this_process_itself_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as made:
        assert not outsiders.listen("127.0.0.1", made.getsockname()[1])
