"""What a figure was measured on: processor, kernel, versions, and how busy the machine was just before."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import os
import pathlib
import platform
import subprocess
from typing import Any

LIBRARIES = ("aiohttp", "grpcio", "msgspec", "protobuf", "uvloop", "numpy", "jsonschema-rs")
"""Those that the hot paths stand on."""


def facts() -> dict[str, Any]:
    """The machine, the versions and the date of a run."""
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "arion-tds": _commit(),
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
    }


def load() -> float:
    """How many processes wanted a core, on average, in the last minute."""
    return round(os.getloadavg()[0], 2)


def sentence(known: dict[str, Any]) -> str:
    """The facts as a line of Markdown."""
    libraries = ", ".join(f"{name} {version}" for name, version in known["libraries"].items())
    return (
        f"{known['date']}, {known['cpu']}, {known['cores']} cores, {known['memory_gb']} GB, {known['kernel']}, "
        f"Python {known['python']}, arion-tds {known['arion-tds']}; {libraries}."
    )


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    """The version, with the commit when the checkout has one."""
    version = importlib.metadata.version("arion-tds")
    asked = ["git", "rev-parse", "--short", "HEAD"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10)
        return f"{version} ({done.stdout.strip()})"
    return version
