"""How a request to a cluster is made: HttpUpstreamPolicy and RetryPolicy as values. All times are seconds."""

from __future__ import annotations

import dataclasses
from typing import Final

DEFAULT_TIMEOUT: Final = 15.0
"""Seconds that a call may take when neither the tool nor the gateway says otherwise."""

DEFAULT_RESPONSE_BYTES: Final = 1 << 20
"""Bytes of an upstream response when the gateway says nothing (`max_upstream_response_bytes`)."""


@dataclasses.dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Envoy's RetryPolicy, the parts that are served. `retry_on` holds its condition names."""

    retry_on: frozenset[str] = frozenset()
    num_retries: int = 1
    per_try_timeout: float | None = None
    retriable_status_codes: frozenset[int] = frozenset()
    base_interval: float = 0.025
    max_interval: float = 0.25


@dataclasses.dataclass(frozen=True, slots=True)
class HttpPolicy:
    """HttpUpstreamPolicy. None means: as the cluster and the gateway say."""

    authority: str | None = None
    timeout: float | None = None
    retry: RetryPolicy | None = None


DEFAULT_POLICY: Final = HttpPolicy()
