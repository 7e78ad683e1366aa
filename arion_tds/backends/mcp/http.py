"""HTTP to one MCP server: one pool of connections, one TLS context, for its life.

In: ready headers and bytes. Out: responses to be read as they come, whole bodies within a limit, or `Broken`, which
says in a caller's words what went wrong and whether the server may have acted on the request.
Called by handshake, exchange, listing and watch.

Nothing is followed, stored or taken from the environment: no redirects, cookies, proxies, netrc.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from typing import Final

from multidict import CIMultiDict
from yarl import URL

from arion_tds.backends import writing
from arion_tds.backends.connections import Closed, Connections
from arion_tds.backends.dialing import Dialer, Forbidden
from arion_tds.backends.mcp.address import AddressPolicy
from arion_tds.backends.mcp.line import Broken, failure, too_large
from arion_tds.backends.mcp.response import Lost, Response
from arion_tds.backends.mcp.settings import UpstreamSettings
from arion_tds.backends.reading import Loss

_MAX_DRAINING: Final = 64
_DRAIN_BYTES: Final = 64 << 10
_DRAIN_SECONDS: Final = 1.0


class Channel:
    """All HTTP traffic with one server. Owned by its Upstream; made in the event loop on first use."""

    def __init__(self, url: str, settings: UpstreamSettings, policy: AddressPolicy, tls: ssl.SSLContext | None) -> None:
        """`tls`: the context for https; None where the URL is not."""
        self.url = URL(url, encoded=True)
        self.name = self.url.raw_authority
        self._origin = str(self.url.origin())
        self._host = self.url.raw_host or ""
        self._target = self.url.raw_path_qs or "/"
        self._settings = settings
        self._policy = None if settings.trusted else policy
        self._forbidden = self._policy.host_problem(self._host) if self._policy is not None else None
        self._tls = tls
        self.closed = False
        self._connections: Connections | None = None
        self._draining: dict[Response, asyncio.TimerHandle] = {}

    def _opened(self) -> Connections:
        """Without a limit: calls are counted, and refused, by the Upstream."""
        settings = self._settings
        self._connections = Connections(
            self._dialer, most=None, idle_timeout=settings.keepalive, max_head=settings.max_response_header_bytes
        )
        return self._connections

    def _dialer(self, origin: str) -> Dialer:
        problem = None if self._policy is None else functools.partial(self._policy.problem, self._host)
        return Dialer(origin, tls=self._tls, timeout=self._settings.connect_timeout, problem=problem)

    async def send(self, method: str, headers: CIMultiDict[str], body: bytes | None = None) -> Response:
        """The response as soon as its headers are there. The caller reads it to the end or closes it.

        Raises Broken. The time limit is the caller's.
        """
        if self.closed:
            raise self._undialed(Closed("closed"))
        connections = self._connections or self._opened()
        if self._forbidden is not None:
            why = f"the gateway may not connect to it: {self._forbidden}"
            raise Broken(failure(why, self.name), executed=False)
        before = "" if "host" in headers else writing.lines([("host", connections.authority(self._origin))])
        head = writing.head(method, self._target, headers.items(), body, before)
        if head is None:
            why = "the request to it cannot be sent: its URL or a header holds what HTTP/1.1 does not allow"
            raise Broken(failure(why, self.name), executed=False)
        try:
            connection = connections.take(self._origin) or await connections.open(self._origin)
        except OSError as error:
            raise self._undialed(error) from error
        response = Response(connection)
        connection.send(head, body, response, bare=False)
        try:
            await response.started()
        except Lost as lost:
            raise self.broken(lost) from lost
        except BaseException:
            response.close()
            raise
        return response

    async def read(self, response: Response, limit: int, setting: str, begun: bytes = b"") -> bytes:
        """The whole body, decoded. Raises Broken at the byte that exceeds `limit`; `setting` names the limit.

        `begun` is what was read of it already.
        """
        declared = response.content_length
        if declared is not None and declared > limit:
            response.close()
            raise too_large(self.name, limit, setting)
        try:
            body = await response.readany()
            if response.at_eof and not begun and len(body) <= limit:
                return body
            parts = [begun, body]
            size = len(begun) + len(body)
            while size <= limit and (body := await response.readany()):
                size += len(body)
                parts.append(body)
        except Lost as lost:
            response.close()
            raise self.broken(lost) from lost
        if size > limit:
            response.close()
            raise too_large(self.name, limit, setting)
        return b"".join(parts)

    def finish(self, response: Response) -> None:
        """The answer is in hand: read what little is left of the body, so that the connection can be used again."""
        if response.at_eof:
            return
        if len(self._draining) >= _MAX_DRAINING:
            response.close()
            return
        loop = asyncio.get_running_loop()
        self._draining[response] = loop.call_later(_DRAIN_SECONDS, response.close)
        response.discard(_DRAIN_BYTES, lambda: self._drained(response))

    def _drained(self, response: Response) -> None:
        timer = self._draining.pop(response, None)
        if timer is not None:
            timer.cancel()

    def _undialed(self, error: OSError) -> Broken:
        """Why there is no connection, in a caller's words. Nothing was sent."""
        match error:
            case Forbidden():
                why, again = f"the gateway may not connect to it: {error}", False
            case ssl.SSLError():
                why, again = f"TLS failed: {error}", False
            case TimeoutError():
                why, again = "it cannot be reached: no connection within the connect timeout (connect_timeout)", True
            case Closed():
                why, again = "the gateway is ending its connections to it", True
            case _:
                why, again = f"it cannot be reached: {error.strerror or error}", True
        return Broken(failure(why, self.name, retryable=again), executed=False)

    def broken(self, lost: Lost) -> Broken:
        """What it means to a caller that there is no whole answer."""
        if lost.loss in {Loss.MALFORMED, Loss.LONG_HEAD}:
            return Broken(failure(f"it does not speak HTTP: {lost}", self.name), executed=True)
        why = f"it closed the connection before it answered: {lost}"
        return Broken(failure(why, self.name, retryable=True), executed=True)

    async def close(self) -> None:
        """Close every connection. Calls still in flight end as broken, and nothing is sent any more."""
        self.closed = True
        for response in list(self._draining):
            response.close()
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.close()
