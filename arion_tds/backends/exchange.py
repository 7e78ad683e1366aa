"""One cluster's connections, and one try of one request over them.

In: HttpRequest with its final headers. Out: HttpResponse, what broke the try, or a failure that no repetition mends
(too large, not decodable). Called by clusters, which owns the pools and decides what is tried again.

No redirects, no cookies, no proxies from the environment; the body is read up to the limit and the connection dropped
beyond it. One TLS context lives as long as the cluster: building one costs more than a thousand calls.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import os
import socket
import ssl
import zlib
from typing import Final

from arion_tds.backends import writing
from arion_tds.backends.connections import Closed, Connections
from arion_tds.backends.dialing import Dialer
from arion_tds.backends.h1 import Connection
from arion_tds.backends.reading import Headers, Loss
from arion_tds.backends.retry import Fault
from arion_tds.inflate import ACCEPTED, Body, TooLarge, supported
from arion_tds.model.cluster import Cluster
from arion_tds.model.http import HttpRequest, HttpResponse
from arion_tds.model.result import CallFailure, ErrorCode

_STATIC_HEADERS: Final = (
    ("accept", "application/json, */*;q=0.8"),
    ("accept-encoding", ACCEPTED),
    ("user-agent", "arion-tds"),
)


_OWN: Final = frozenset({"host", *(name for name, _ in _STATIC_HEADERS)})


@functools.lru_cache(maxsize=1024)
def _own(authority: str, given: frozenset[str] = frozenset()) -> str:
    """The lines of our own headers, but for those that are given: the same with every call."""
    return writing.lines([one for one in (("host", authority), *_STATIC_HEADERS) if one[0] not in given])


@dataclasses.dataclass(frozen=True, slots=True)
class Broken:
    """A try without an answer. `stale`: a kept connection ended before the first byte, as idle connections do."""

    fault: Fault
    why: str
    stale: bool = False


Outcome = HttpResponse | Broken | CallFailure


class Pool:
    """The connections of one cluster. Owned by Clusters; used by the tasks of the calls, all in one event loop."""

    def __init__(self, cluster: Cluster, context: ssl.SSLContext | None) -> None:
        """`context` verifies https endpoints; None where there are none. Connections are opened by the first call."""
        self.cluster = cluster
        self.context = context
        self._connections = Connections(
            self._dialer,
            most=cluster.max_connections,
            idle_timeout=cluster.idle_timeout,
            max_head=cluster.max_response_header_bytes,
        )
        self._closed = False

    async def attempt(
        self, origin: str, request: HttpRequest, headers: list[tuple[str, str]], max_bytes: int
    ) -> Outcome:
        """Send once to `origin` (`http://host:port`) and read the answer whole. The caller sets the time limit."""
        if self._closed:
            return self._stopping()
        head = self._head(origin, request, headers)
        if head is None:
            return CallFailure(ErrorCode.UPSTREAM_ERROR, self.named("the request cannot be written as HTTP/1.1"))
        try:
            connection = self._connections.take(origin) or await self._connections.open(origin)
        except Closed:
            return self._stopping()
        except OSError as error:
            return _undialed(error)
        answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        whole = _Whole(self, connection, answered, max_bytes)
        connection.send(head, request.body, whole, bare=request.method == "HEAD")
        try:
            return await answered
        except asyncio.CancelledError:
            connection.leave(whole)
            raise

    async def close(self) -> None:
        """Close every connection. Calls under way fail, and no connection is opened any more."""
        self._closed = True
        await self._connections.close()

    def _head(self, origin: str, request: HttpRequest, headers: list[tuple[str, str]]) -> bytes | None:
        given = [name.lower() for name, _ in headers]
        authority = self._connections.authority(origin)
        before = _own(authority) if _OWN.isdisjoint(given) else _own(authority, frozenset(given))
        return writing.head(request.method, request.target, headers, request.body, before)

    def _dialer(self, origin: str) -> Dialer:
        cluster = self.cluster
        sni = cluster.tls.sni if cluster.tls is not None else None
        return Dialer(origin, tls=self.context, sni=sni, timeout=cluster.connect_timeout)

    def _stopping(self) -> CallFailure:
        return CallFailure(ErrorCode.UPSTREAM_ERROR, self.named("the gateway is stopping"), retryable=True)

    def named(self, why: str) -> str:
        """A failure's sentence, with whose it is."""
        return f'cluster "{self.cluster.name}": {why}'


class _Whole:
    """Hears one answer, and has it when it is whole."""

    __slots__ = ("_answered", "_body", "_connection", "_encoding", "_headers", "_most", "_pool", "_status")

    def __init__(self, pool: Pool, connection: Connection, answered: asyncio.Future[Outcome], most: int) -> None:
        self._pool = pool
        self._connection = connection
        self._answered = answered
        self._most = most

    def head(self, status: int, headers: Headers, *, bodiless: bool) -> None:
        """Refuse what is said to be too large, or compressed in a way that is not known here."""
        self._status, self._headers = status, headers
        encoding = ""
        length = None
        for name, value in headers:
            if name == "content-encoding":
                encoding = encoding or value
            elif name == "content-length":
                length = value
        self._encoding = encoding
        self._body = Body(self._most, encoding)
        if bodiless:
            return
        if encoding and not supported(encoding):
            self._fail(
                ErrorCode.UPSTREAM_ERROR,
                f"the answer has content-encoding {encoding[:40]!r}: only {ACCEPTED} can be read",
            )
        elif length is not None and not encoding and int(length) > self._most:
            self._too_large()

    def body(self, data: bytes) -> None:
        """Keep it, up to the limit."""
        if self._answered.done():
            return
        try:
            self._body.feed(data)
        except TooLarge:
            self._too_large()
        except zlib.error:
            self._undecodable()

    def end(self) -> None:
        """It is whole, unless what is compressed in it is not."""
        if self._answered.done():
            return
        whole = self._body.whole()
        if whole is None:
            self._undecodable()
        else:
            self._answered.set_result(HttpResponse(self._status, tuple(self._headers), whole))

    def lost(self, loss: Loss, *, stale: bool) -> None:
        """There is no answer."""
        if not self._answered.done():
            self._answered.set_result(Broken(Fault.RESET, loss.value, stale=stale))

    def _too_large(self) -> None:
        why = f"the answer is larger than {self._most} bytes (max_upstream_response_bytes)"
        self._fail(ErrorCode.RESPONSE_TOO_LARGE, why)

    def _undecodable(self) -> None:
        why = f"the answer is not whole or not {self._encoding[:40]} as its content-encoding says"
        self._fail(ErrorCode.UPSTREAM_ERROR, why)

    def _fail(self, code: ErrorCode, why: str) -> None:
        self._answered.set_result(CallFailure(code, self._pool.named(why), status=self._status))
        self._connection.leave(self)


def _undialed(error: OSError) -> Broken:
    """What the error means, without addresses and without anything of the request."""
    match error:
        case TimeoutError():
            return Broken(Fault.CONNECT_TIMEOUT, "no connection within connect_timeout")
        case ssl.SSLCertVerificationError():
            return Broken(
                Fault.TLS, f"the upstream's certificate is refused: {error.verify_message or 'it does not fit'}"
            )
        case ssl.SSLError():
            return Broken(Fault.TLS, "the TLS handshake failed")
        case socket.gaierror():
            return Broken(Fault.CONNECT, "the endpoint's name does not resolve")
        case _:
            number = error.errno
            shown = os.strerror(number) if number is not None and number > 0 else "connection failed"
            return Broken(Fault.CONNECT, f"no connection: {shown}")
