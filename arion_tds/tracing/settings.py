"""What an exporter of spans is told. Apart from it, so that a config can be judged without loading it."""

from __future__ import annotations

import dataclasses
import ssl
from typing import Final

PATH: Final = "/v1/traces"
"""Where a collector takes spans unless it says otherwise (OTLP/HTTP)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Seconds and counts. Pauses after failures begin with `backoff` and double up to `backoff_max`."""

    url: str
    headers: tuple[tuple[str, str], ...] = dataclasses.field(default=(), repr=False)
    tls: ssl.SSLContext | None = None
    batch_interval: float = 5.0
    max_batch: int = 512
    max_queue: int = 2048
    timeout: float = 10.0
    backoff: float = 1.0
    backoff_max: float = 60.0
