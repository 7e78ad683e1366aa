"""HTTP to one MCP server: one connection pool, one TLS context, for its life.

In: ready headers and bytes. Out: aiohttp responses, whole bodies within a limit, or `Broken`, which says in a caller's
words what went wrong and whether the server may have acted on the request.
Called by handshake, exchange, listing and watch.

Nothing is followed, stored or taken from the environment: no redirects, cookies, proxies, netrc.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from arion_tds.backends.mcp.address import AddressPolicy
from arion_tds.backends.mcp.line import Broken, failure, too_large
from arion_tds.backends.mcp.settings import UpstreamSettings

_SKIPPED_AUTO_HEADERS: Final = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_KEEPALIVE_IDLE: Final = 30
_MAX_DRAINING: Final = 64
_DRAIN_BYTES: Final = 64 << 10
_DRAIN_SECONDS: Final = 1.0


class _RefusedError(OSError):
    """The address policy forbids the address about to be connected to."""


class Channel:
    """All HTTP traffic with one server. Owned by its Upstream; made in the event loop on first use."""

    def __init__(self, url: str, settings: UpstreamSettings, policy: AddressPolicy, tls: ssl.SSLContext | None) -> None:
        """`tls`: the context for https, None where none is needed or to verify against the system's CAs."""
        self.url = URL(url, encoded=True)
        self.name = self.url.raw_authority
        self._settings = settings
        self._policy = None if settings.trusted else policy
        self._forbidden = self._policy.host_problem(self.url.raw_host or "") if self._policy is not None else None
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._draining: set[asyncio.Task[None]] = set()

    def _opened(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=0,  # calls are counted, and refused, by the Upstream
            ssl=self._tls if self._tls is not None else True,
            keepalive_timeout=self._settings.keepalive,
            socket_factory=self._socket,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._settings.connect_timeout),
            trust_env=False,
            skip_auto_headers=_SKIPPED_AUTO_HEADERS,
        )
        return self._session

    def _socket(self, info: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
        """The socket for one address: the last point at which it can be refused, whatever it was resolved from."""
        family, kind, proto, _, address = info
        if self._policy is not None:
            why = self._policy.problem(self.url.raw_host or "", str(address[0]))
            if why is not None:
                raise _RefusedError(why)
        made = socket.socket(family, kind, proto)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE)
        return made

    async def send(self, method: str, headers: CIMultiDict[str], body: bytes | None = None) -> aiohttp.ClientResponse:
        """The response as soon as its headers are there. The caller reads it to the end or closes it.

        Raises Broken. The time limit is the caller's.
        """
        session = self._session or self._opened()
        if self._forbidden is not None:
            why = f"the gateway may not connect to it: {self._forbidden}"
            raise Broken(failure(why, self.name), executed=False)
        try:
            return await session.request(method, self.url, data=body, headers=headers, allow_redirects=False)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self.broken(error) from error

    async def read(self, response: aiohttp.ClientResponse, limit: int, setting: str, begun: bytes = b"") -> bytes:
        """The whole body, decoded. Raises Broken at the byte that exceeds `limit`; `setting` names the limit.

        `begun` is what was read of it already.
        """
        declared = response.content_length
        if declared is not None and declared > limit:
            response.close()
            raise too_large(self.name, limit, setting)
        content = response.content
        try:
            body = await content.readany()
            if content.at_eof() and not begun and len(body) <= limit:
                return body
            parts = [begun, body]
            size = len(begun) + len(body)
            while size <= limit and (body := await content.readany()):
                size += len(body)
                parts.append(body)
        except (aiohttp.ClientError, OSError) as error:
            response.close()
            raise self.broken(error) from error
        if size > limit:
            response.close()
            raise too_large(self.name, limit, setting)
        return b"".join(parts)

    def finish(self, response: aiohttp.ClientResponse) -> None:
        """The answer is in hand: read what little is left of the body, so that the connection can be used again."""
        if response.content.at_eof():
            return
        if len(self._draining) >= _MAX_DRAINING:
            response.close()
            return
        task = asyncio.get_running_loop().create_task(_drain(response))
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)

    def broken(self, error: Exception) -> Broken:
        """What an exception of aiohttp means to a caller."""
        refused = _find(error, lambda each: isinstance(each, _RefusedError))
        if refused is not None:
            return Broken(failure(f"the gateway may not connect to it: {refused}", self.name), executed=False)
        if isinstance(error, aiohttp.ClientSSLError):
            return Broken(failure(f"TLS failed: {error.__cause__ or error}", self.name), executed=False)
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            why = _why(error)
            return Broken(failure(f"it cannot be reached: {why}", self.name, retryable=True), executed=False)
        if isinstance(error, aiohttp.InvalidURL) or not isinstance(error, aiohttp.ClientError | OSError):
            return Broken(failure(f"the request to it cannot be sent: {error}", self.name), executed=False)
        if isinstance(error, aiohttp.ClientResponseError):
            return Broken(failure(f"it does not speak HTTP: {error.message}", self.name), executed=True)
        # aiohttp says this only when it finds the transport closed before it writes.
        unsent = _find(error, lambda each: "closing transport" in str(each)) is not None
        return Broken(
            failure(f"it closed the connection before it answered: {_why(error)}", self.name, retryable=True),
            executed=not unsent,
            unsent=unsent,
        )

    async def close(self) -> None:
        """Close every connection. Calls still in flight end as broken."""
        for task in list(self._draining):
            task.cancel()
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def _why(error: BaseException) -> str:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "no connection within the connect timeout (connect_timeout)"
    if isinstance(error, aiohttp.ClientConnectorError):
        return str(error.os_error.strerror or error.os_error)
    return str(error) or type(error).__name__


def _find(error: BaseException | None, wanted: Callable[[BaseException], bool]) -> BaseException | None:
    while error is not None:
        if wanted(error):
            return error
        error = error.__cause__ or error.__context__
    return None


async def _drain(response: aiohttp.ClientResponse) -> None:
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            left = _DRAIN_BYTES
            while left > 0 and (body := await response.content.readany()):
                left -= len(body)
    except (aiohttp.ClientError, OSError):
        pass  # TimeoutError is an OSError: in every case the connection is not worth keeping
    finally:
        if not response.content.at_eof():
            response.close()
