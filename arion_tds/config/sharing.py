"""Addresses as text, and whether several processes can share them. Imports nothing heavy: the supervisor uses it too.

In: `host:port` and what the platform can do. Out: host and port; why the addresses cannot be shared, or None; how many
processes are worth having.
"""

from __future__ import annotations

import contextlib
import ipaddress
import math
import os
import pathlib
import sys
from collections.abc import Iterable
from typing import Final

MOST: Final = 64
"""Workers that a config may ask for."""

USUAL: Final = 4
"""Workers that are taken by default, at most: each holds the whole catalog."""

_QUOTA: Final = pathlib.Path("/sys/fs/cgroup/cpu.max")


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[v6]:port`; ValueError says what is wrong."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        msg = f"{text!r} is not host:port"
        raise ValueError(msg)
    host = host.removeprefix("[").removesuffix("]")
    if not host:
        msg = f"{text!r} names no host: write 127.0.0.1:{port}, or 0.0.0.0:{port} for every interface"
        raise ValueError(msg)
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether the host can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def obstacle(addresses: Iterable[tuple[str, str]], platform: str = sys.platform) -> str | None:
    """Why several processes cannot serve these (whose, `host:port`); None: they can."""
    if platform != "linux":
        return "only Linux spreads connections over processes that share a port"
    for whose, address in addresses:
        if address.endswith(":0"):
            return f"{whose} has port 0, which would be another port in each"
    return None


def refusal(count: int, why: str) -> str:
    """The sentence about too many workers."""
    return f"workers: {count} processes cannot serve this config: {why}; use workers: 1"


def usable(quota: pathlib.Path = _QUOTA) -> int:
    """Cores that this process may use: those it may run on, and no more than its container is given."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        cores = os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        most, period = quota.read_text("ascii").split()
        cores = min(cores, max(1, math.ceil(int(most) / int(period))))
    return cores
