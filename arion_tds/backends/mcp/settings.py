"""How one MCP server is spoken to, and how many there may be: values that config makes and this package obeys."""

from __future__ import annotations

import dataclasses
from typing import Final


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSettings:
    """Times in seconds, sizes in bytes. None: as the gateway's `Limits` of the call say.

    `timeout` runs anew with every progress notification, up to `max_call_time` in all. `keepalive` is how long an idle
    connection is kept: below the 5 s after which common servers close theirs, so that a call does not meet a closing
    one. `headers` are sent with every request and never shown. `trusted` skips the address policy: for URLs that the
    operator wrote, not a control plane. The three PEM files are for https.
    """

    timeout: float | None = None
    max_call_time: float = 600.0
    max_concurrent_calls: int = 256
    max_response_bytes: int | None = None
    max_response_header_bytes: int = 1 << 16
    connect_timeout: float = 5.0
    handshake_timeout: float = 10.0
    list_timeout: float = 30.0
    max_list_pages: int = 200
    max_list_tools: int = 10_000
    max_list_bytes: int = 32 << 20
    keepalive: float = 4.0
    watch_backoff: float = 1.0
    watch_backoff_max: float = 60.0
    watch_recheck: float = 600.0
    headers: tuple[tuple[str, str], ...] = dataclasses.field(default=(), repr=False)
    trusted: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


DEFAULT_SETTINGS: Final = UpstreamSettings()
