"""What one execution may use, and all of a gateway together. From the CodeMode message; used by the package."""

from __future__ import annotations

import dataclasses
from typing import Final

from arion_tds.model.gateway import CodeMode

QUEUE_FACTOR: Final = 2
"""Executions that may wait, for each that may run."""

MAX_IDLE: Final = 4
"""Sandboxes that are kept ready at most: each holds about 12 MB of its own."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times in seconds, sizes in bytes. The first six are the CodeMode message's; the others are constants."""

    execution_timeout: float
    max_host_calls: int
    max_concurrent_executions: int
    max_output_bytes: int
    memory_limit_bytes: int
    max_concurrent_tool_calls: int
    max_code_bytes: int = 256 << 10
    max_argument_bytes: int = 1 << 20
    max_console_lines: int = 10_000
    start_timeout: float = 10.0
    watch_interval: float = 0.02

    @property
    def max_waiting(self) -> int:
        """Executions that may wait for their turn."""
        return self.max_concurrent_executions * QUEUE_FACTOR

    @property
    def max_frame_bytes(self) -> int:
        """The longest line that a sandbox may send: its result, or the arguments of a call."""
        return max(self.max_output_bytes, self.max_argument_bytes) + (64 << 10)

    @property
    def idle(self) -> int:
        """Sandboxes that are kept ready."""
        return min(self.max_concurrent_executions, MAX_IDLE)


def of(mode: CodeMode) -> Limits:
    """The limits that the message sets."""
    return Limits(
        execution_timeout=mode.execution_timeout,
        max_host_calls=mode.max_host_calls,
        max_concurrent_executions=mode.max_concurrent_executions,
        max_output_bytes=mode.max_output_bytes,
        memory_limit_bytes=mode.memory_limit_bytes,
        max_concurrent_tool_calls=mode.max_concurrent_tool_calls,
    )


def size(count: int) -> str:
    """Bytes as people write them: `1 MiB`, `1.5 MiB`, `300 bytes`."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} bytes"
