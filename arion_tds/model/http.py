"""One HTTP request to a cluster and its answer, as values: built by transcode and openapi, sent by clusters."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(slots=True)  # made with every call: see docs/architecture.md, Rules
class HttpRequest:
    """`target` is path and query exactly as they go on the wire, percent-encoded, starting with `/`.

    The cluster adds scheme, host, Host header, trace headers and Content-Length.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


@dataclasses.dataclass(slots=True)  # made with every call: see docs/architecture.md, Rules
class HttpResponse:
    """Status, header pairs with lower-case names, and the whole body (already within the response limit)."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first value of the (lower-case) header name."""
        for key, value in self.headers:
            if key == name:
                return value
        return None
