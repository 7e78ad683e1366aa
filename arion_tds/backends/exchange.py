"""One cluster's connections, and one try of one request over them.

In: HttpRequest with its final headers. Out: HttpResponse, what broke the try, or a failure that no repetition mends
(too large, not decodable). Called by clusters, which owns the pools and decides what is tried again.

One aiohttp session, one connector and one TLS context live as long as the cluster: building a context costs more than
a thousand calls. No redirects, no cookies, no proxies from the environment; the body is read up to the limit and the
connection dropped beyond it.
"""

from __future__ import annotations

import dataclasses
import io
import os
import ssl
import weakref
import zlib
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from yarl import URL

from arion_tds.backends.inflate import ACCEPTED, Body, TooLarge, supported
from arion_tds.backends.retry import Fault
from arion_tds.model.cluster import Cluster
from arion_tds.model.http import HttpRequest, HttpResponse
from arion_tds.model.result import CallFailure, ErrorCode

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection

_DIRECT_BODY: Final = 1 << 20
"""Bytes of a request body that aiohttp takes in one write; larger ones it wants as a stream."""

_STATIC_HEADERS: Final = {
    "accept": "application/json, */*;q=0.8",
    "accept-encoding": ACCEPTED,
    "user-agent": "arion-tds",
}
_NO_BODY: Final = frozenset({204, 304})


@dataclasses.dataclass(frozen=True, slots=True)
class Broken:
    """A try without an answer. `stale`: a kept connection ended before the first byte, as idle connections do."""

    fault: Fault
    why: str
    stale: bool = False


class Pool:
    """The connections of one cluster. Owned by Clusters; used by the tasks of the calls, all in one event loop."""

    def __init__(self, cluster: Cluster, context: ssl.SSLContext | None) -> None:
        """`context` verifies https endpoints; None where there are none. Connections are opened by the first call."""
        self.cluster = cluster
        self.context = context
        self._sni = cluster.tls.sni if cluster.tls is not None else None
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def attempt(
        self, origin: str, request: HttpRequest, headers: list[tuple[str, str]], max_bytes: int
    ) -> HttpResponse | Broken | CallFailure:
        """Send once to `origin` (`http://host:port`) and read the answer whole. The caller sets the time limit."""
        if self._closed:
            return CallFailure(ErrorCode.UPSTREAM_ERROR, self._named("the gateway is stopping"), retryable=True)
        session = self._session or self._open()
        body: bytes | io.BytesIO | None = request.body
        if request.body is not None and len(request.body) > _DIRECT_BODY:
            body = io.BytesIO(request.body)
        try:
            async with session.request(
                request.method,
                URL(origin + request.target, encoded=True),
                data=body,
                headers=headers,
                allow_redirects=False,
                server_hostname=self._sni,
            ) as response:
                return await self._read(response, max_bytes)
        except _Lost as error:
            return Broken(Fault.RESET, "the connection was lost before an answer came", stale=error.reused)
        except aiohttp.ClientError as error:
            return _broken(error)
        except ValueError:
            return CallFailure(ErrorCode.UPSTREAM_ERROR, self._named("the request cannot be written as HTTP/1.1"))

    async def close(self) -> None:
        """Close every connection. Calls under way fail, and no connection is opened any more."""
        self._closed = True
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        cluster = self.cluster
        self._session = aiohttp.ClientSession(
            connector=_Connector(
                limit=cluster.max_connections,
                keepalive_timeout=cluster.idle_timeout,
                context=self.context,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_STATIC_HEADERS,
            skip_auto_headers=("Content-Type",),
            # The time of a call is limited by clusters; aiohttp would round it up to whole seconds.
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=cluster.connect_timeout, ceil_threshold=float("inf")
            ),
            auto_decompress=False,
            trust_env=False,
            request_class=_Request,
            middlewares=(_no_hidden_retry,),
        )
        return self._session

    async def _read(self, response: aiohttp.ClientResponse, max_bytes: int) -> HttpResponse | CallFailure:
        encoding = response.headers.get("content-encoding", "")
        bodiless = response.method == "HEAD" or response.status in _NO_BODY
        if not supported(encoding) and not bodiless:
            response.close()
            return CallFailure(
                ErrorCode.UPSTREAM_ERROR,
                self._named(f"the answer has content-encoding {encoding[:40]!r}: only {ACCEPTED} can be read"),
                status=response.status,
            )
        body = Body(max_bytes, encoding)
        content = response.content
        try:
            if not bodiless and (response.content_length or 0) > max_bytes and not encoding:
                raise TooLarge
            while not content.at_eof():
                body.feed(await content.readany())
        except TooLarge:
            response.close()
            return CallFailure(
                ErrorCode.RESPONSE_TOO_LARGE,
                self._named(f"the answer is larger than {max_bytes} bytes (max_upstream_response_bytes)"),
                status=response.status,
            )
        except zlib.error:
            response.close()
            return self._undecodable(response.status, encoding)
        whole = body.whole()
        if whole is None:
            return self._undecodable(response.status, encoding)
        return HttpResponse(
            response.status, tuple([(name.lower(), value) for name, value in response.headers.items()]), whole
        )

    def _undecodable(self, status: int, encoding: str) -> CallFailure:
        why = f"the answer is not whole or not {encoding[:40]} as its content-encoding says"
        return CallFailure(ErrorCode.UPSTREAM_ERROR, self._named(why), status=status)

    def _named(self, why: str) -> str:
        return f'cluster "{self.cluster.name}": {why}'


class _Request(aiohttp.ClientRequest):
    reused = False


class _Connector(aiohttp.TCPConnector):
    """Tells each request whether its connection has served one before."""

    def __init__(self, *, limit: int, keepalive_timeout: float, context: ssl.SSLContext | None) -> None:
        super().__init__(limit=limit, keepalive_timeout=keepalive_timeout, ssl=True if context is None else context)
        self._known: weakref.WeakSet[ResponseHandler] = weakref.WeakSet()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        connection = await super().connect(req, traces=traces, timeout=timeout)
        protocol = connection.protocol
        if protocol is not None and isinstance(req, _Request):
            req.reused = protocol in self._known
            if not req.reused:
                self._known.add(protocol)
        return connection


class _Lost(aiohttp.ClientError):
    """The connection ended before the answer's head."""

    def __init__(self, *, reused: bool) -> None:
        super().__init__()
        self.reused = reused


async def _no_hidden_retry(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Turn what aiohttp would silently send a second time into what it passes on: tries are counted by clusters."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Lost(reused=isinstance(request, _Request) and request.reused) from error


def _broken(error: aiohttp.ClientError) -> Broken:
    """What the error means, without addresses and without anything of the request."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return Broken(Fault.CONNECT_TIMEOUT, "no connection within connect_timeout")
        case aiohttp.ClientConnectorCertificateError():
            shown = getattr(error.certificate_error, "verify_message", "") or "it does not fit"
            return Broken(Fault.TLS, f"the upstream's certificate is refused: {shown}")
        case aiohttp.ClientSSLError():
            return Broken(Fault.TLS, "the TLS handshake failed")
        case aiohttp.ClientConnectorDNSError():
            return Broken(Fault.CONNECT, "the endpoint's name does not resolve")
        case aiohttp.ClientConnectorError():
            number = error.os_error.errno
            shown = os.strerror(number) if number is not None and number > 0 else "connection failed"
            return Broken(Fault.CONNECT, f"no connection: {shown}")
        case aiohttp.ClientResponseError():
            return Broken(Fault.RESET, "the answer is not HTTP/1.1 that can be read")
        case aiohttp.ClientPayloadError():
            return Broken(Fault.RESET, "the answer broke off in the middle")
        case _:
            return Broken(Fault.RESET, "the connection was lost")
