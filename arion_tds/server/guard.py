"""Who may reach the endpoint at all: Host (DNS rebinding), Origin (browsers), Accept and Content-Type. Pure.

In: header values and the listener's settings. Out: a verdict or a sentence. Called by front before anything is read.
(MCP 2026-07-28, basic/transports/streamable-http, "Security Warning".)
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Final, Literal

Coding = Literal["gzip", "zstd"]
"""How an answer may be compressed."""

_LOOPBACK: Final = frozenset(("127.0.0.1", "localhost", "::1"))


def _hostname(authority: str) -> str:
    """The host of `host`, `host:port` or `[v6]:port`, in lower case."""
    text = authority.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


@dataclasses.dataclass(frozen=True, slots=True)
class Guard:
    """The checks of one listener. `hosts` and `origins` as the settings say, in lower case."""

    loopback: bool
    hosts: frozenset[str]
    origins: frozenset[str]

    def host(self, host: str | None) -> str | None:
        """Why the Host header is refused, or None. Checked on loopback listeners, and where hosts are configured."""
        if not self.loopback and not self.hosts:
            return None
        given = (host or "").strip().lower()
        if given in self.hosts or _hostname(given) in self.hosts:
            return None
        if self.loopback and _hostname(given) in _LOOPBACK:
            return None
        return f"Host {host!r} is not served here: add it to allowed_hosts if it should be"

    def origin(self, origin: str, host: str | None) -> str | None:
        """Why the Origin header is refused, or None."""
        given = origin.strip().lower()
        if given in self.origins or "*" in self.origins:
            return None
        scheme, separator, authority = given.partition("://")
        if separator and scheme in {"http", "https"}:
            if host is not None and authority == host.strip().lower():
                return None
            if self.loopback and _hostname(authority) in _LOOPBACK:
                return None
        return f"Origin {origin!r} is not allowed: add it to allowed_origins if it should be"


def guard(*, loopback: bool, hosts: tuple[str, ...], origins: tuple[str, ...]) -> Guard:
    """The Guard of these settings."""
    return Guard(
        loopback,
        frozenset(one.strip().lower() for one in hosts),
        frozenset(one.strip().lower().rstrip("/") for one in origins),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Accepts:
    """What a client takes. `json` False: only an event stream.

    `stream`: it named text/event-stream. `any`: it did not exclude it.
    """

    json: bool
    stream: bool
    any: bool


@functools.lru_cache(maxsize=256)
def accepts(header: str | None) -> Accepts:
    """Read an Accept header leniently: nothing, or nothing that we know, takes JSON."""
    if header is None or not header.strip():
        return Accepts(json=True, stream=False, any=True)
    kinds = {
        kind.strip().lower()
        for kind, _, parameters in (part.partition(";") for part in header.split(","))
        if parameters.replace(" ", "").lower() not in {"q=0", "q=0.0"}
    }
    stream = "text/event-stream" in kinds
    wild = bool(kinds & {"*/*", "text/*"})
    json = bool(kinds & {"application/json", "application/*", "*/*"})
    return Accepts(json=json or not stream, stream=stream, any=stream or wild)


@functools.lru_cache(maxsize=64)
def is_json(content_type: str | None) -> bool:
    """Whether a Content-Type says JSON (parameters do not matter)."""
    return content_type is not None and content_type.partition(";")[0].strip().lower() == "application/json"


@functools.lru_cache(maxsize=256)
def coding(header: str | None) -> Coding | None:
    """How an Accept-Encoding header lets us compress (RFC 9110 12.5.3): as it weighs them, else the better one."""
    if header is None:
        return None
    weights: dict[str, float] = {}
    for part in header.lower().split(","):
        known, _, parameters = part.partition(";")
        name, _, weight = parameters.replace(" ", "").partition("=")
        weights[known.strip()] = _weight(weight) if name == "q" else 1.0
    any_other = weights.get("*", 0.0)
    gzip = weights.get("gzip", weights.get("x-gzip", any_other))
    zstd = weights.get("zstd", 0.0)  # not by `*`: some who write that cannot read it
    if zstd > 0 and zstd >= gzip:
        return "zstd"
    return "gzip" if gzip > 0 else None


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0
