"""The process that expands OpenAPI documents: `python -m arion_tds.openapi.worker`, started and fed by expansion.

In on stdin: pairs of frames (8 bytes of length, big-endian, then the payload), a pickled Job and its document as it is:
nobody copies megabytes to pickle them. Out on stdout, for each pair: a frame with a pickled Head, then as many frames
of pickled tools as it says (at most 100 in each, so that the reader never stalls for long). It ends when stdin does.
Documents come from strangers, so each has a limit of CPU and memory that the kernel enforces.
"""

from __future__ import annotations

import dataclasses
import pickle
import sys
import traceback
from typing import BinaryIO, Final

from arion_tds.model.problem import Problem
from arion_tds.openapi.expand import expand
from arion_tds.openapi.job import HEADER, Expansion, Head, Job, frame
from arion_tds.openapi.limits import Limits

if sys.platform != "win32":  # elsewhere the reader's own time limit is all there is
    import resource

CHUNK: Final = 100
"""Tools in one frame."""

_PROTOCOL: Final = 5


def run(payload: bytes, document: bytes) -> bytes:
    """A pickled Job and its document to the answer's frames. Limits this process first; never raises."""
    job: Job = pickle.loads(payload)  # noqa: S301 - from our own parent process
    last = False
    _limit(job.limits)
    try:
        expansion = expand(dataclasses.replace(job.source, document=document), job.limits, job.output)
        frames = [
            frame(pickle.dumps(expansion.tools[start : start + CHUNK], _PROTOCOL))
            for start in range(0, len(expansion.tools), CHUNK)
        ]
    except MemoryError:
        expansion, frames, last = (
            _rejected(f"document needs too much memory {job.limits.named('max_memory_bytes')}"),
            [],
            True,
        )
    except Exception as error:  # noqa: BLE001 - the top of this process: the parent must get an answer
        traceback.print_exc()
        expansion, frames, last = (
            _rejected(f"document cannot be expanded: {type(error).__name__} in the gateway"),
            [],
            True,
        )
    last = last or _peak_bytes() > job.limits.max_memory_bytes // 2
    head = Head(dataclasses.replace(expansion, tools=()), len(frames), last)
    return b"".join([frame(pickle.dumps(head, _PROTOCOL)), *frames])


def _rejected(why: str) -> Expansion:
    return Expansion(problems=(Problem("", why),))


def _limit(limits: Limits) -> None:
    """Limits of this process from here on. CPU counts from its start, so what is used already is added."""
    if sys.platform == "win32":
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = int(usage.ru_utime + usage.ru_stime)
    for kind, value in (
        (resource.RLIMIT_CPU, used + limits.max_cpu_seconds + 1),
        (resource.RLIMIT_AS, limits.max_memory_bytes),
    ):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _peak_bytes() -> int:
    """The most memory that this program has held. Not ru_maxrss where there is better: that begins at our parent's."""
    if sys.platform == "win32":
        return 0
    try:
        with open("/proc/self/status", "rb") as file:
            for line in file:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _read(stdin: BinaryIO) -> bytes | None:
    """The next frame's payload; None at the end of the input."""
    header = stdin.read(HEADER)
    return stdin.read(int.from_bytes(header, "big")) if len(header) == HEADER else None


def serve(stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answer frames until the input ends, or until an answer is the worker's last."""
    while True:
        payload, document = _read(stdin), _read(stdin)
        if payload is None or document is None:
            return
        answer = run(payload, document)
        stdout.write(answer)
        stdout.flush()
        head: Head = pickle.loads(answer[HEADER:])  # noqa: S301 - written above
        if head.last:
            return


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
