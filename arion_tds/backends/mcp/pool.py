"""Every MCP server that the gateway speaks to, by URL; made on demand, bounded, closed together.

In: URLs of `McpBackend`s and `McpServer`s. Out: `Upstream`s, calls, listings.
Called by calls (tools/call), ingest (tools/list, removal) and admin (status). Built and closed by the app.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import ssl
from collections.abc import Callable, Collection, Mapping

from arion_tds.backends.mcp.address import DEFAULT_ADDRESSES, AddressPolicy
from arion_tds.backends.mcp.connection import Upstream, UpstreamStatus
from arion_tds.backends.mcp.http import Channel
from arion_tds.backends.mcp.listing import Listing
from arion_tds.backends.mcp.settings import DEFAULT_SETTINGS, UpstreamSettings
from arion_tds.backends.mcp.stdio import StdioLine, StdioServer
from arion_tds.backends.mcp.streamable import HttpLine
from arion_tds.backends.mcp.watch import Watch
from arion_tds.model.backend import McpBackend
from arion_tds.model.cluster import ClusterTls
from arion_tds.model.context import CallContext, Limits
from arion_tds.model.result import CallFailure, CallResult, ErrorCode, RpcError, failed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamsSettings:
    """`servers` holds settings by URL, `default` those of all others; `addresses` says where these may be.

    `processes` are local servers by the key that tools name them by (`stdio:NAME`).
    """

    default: UpstreamSettings = DEFAULT_SETTINGS
    servers: Mapping[str, UpstreamSettings] = dataclasses.field(default_factory=dict)
    processes: Mapping[str, StdioServer] = dataclasses.field(default_factory=dict)
    addresses: AddressPolicy = DEFAULT_ADDRESSES
    max_servers: int = 1024

    def of(self, url: str) -> tuple[UpstreamSettings, StdioServer | None]:
        """What holds for one server."""
        return self.servers.get(url, self.default), self.processes.get(url)


class _Watched:
    """One server's watch and who hears it."""

    def __init__(self, upstream: Upstream, rng: random.Random) -> None:
        self.listeners: dict[object, Callable[[], None]] = {}
        self.watch: Watch
        self.task: asyncio.Task[None] | None = None
        self.start(upstream, rng)

    def start(self, upstream: Upstream, rng: random.Random) -> None:
        """Watch this connection to the server from now on."""
        self.watch = Watch(upstream, self.tell, rng)
        self.task = asyncio.get_running_loop().create_task(self.watch.run())

    def tell(self) -> None:
        for changed in list(self.listeners.values()):
            changed()


class Upstreams:
    """The servers in use. Use from one event loop."""

    def __init__(
        self, settings: UpstreamsSettings, *, clock: Callable[[], float], rng: random.Random | None = None
    ) -> None:
        """`clock`: seconds, shown in `status`. `rng` spreads the reconnects of watches."""
        self._settings = settings
        self._clock = clock
        self._rng = rng or random.Random()  # noqa: S311 - spreads load, keeps no secret
        self._watched: dict[str, _Watched] = {}
        self._upstreams: dict[str, Upstream] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._tls: dict[tuple[str | None, str | None, str | None], ssl.SSLContext] = {}
        self.told: Callable[[str, str, str], None] | None = None  # a server's state is another one: URL, state, why

    def get(self, url: str) -> Upstream | CallFailure:
        """The server of that URL; made now if it is new. A failure: there are `max_servers` already, none idle."""
        found = self._upstreams.get(url)
        if found is not None:
            return found
        if len(self._upstreams) >= self._settings.max_servers:
            idle = next((each for each in self._upstreams.values() if not each.busy), None)
            if idle is None:
                why = f"{self._settings.max_servers} MCP servers are in use already (max_servers)"
                return CallFailure(ErrorCode.OVERFLOW, why, retryable=True)
            self._let_go(idle.url)
        made = self._made(url)
        if isinstance(made, Upstream):
            made.told = self.told
            self._upstreams[url] = made
        return made

    def _made(self, url: str) -> Upstream | CallFailure:
        settings = self._settings.servers.get(url, self._settings.default)
        process = self._settings.processes.get(url)
        if process is not None:
            return Upstream(
                url, settings, clock=self._clock, line=lambda made: StdioLine(url, process, made.forget, made.hear)
            )
        if not url.startswith(("http:", "https:")):
            why = f"MCP server {url}: no such process in the config; URLs start with http: or https:"
            return CallFailure(ErrorCode.UPSTREAM_ERROR, why)
        try:
            tls = self._context(settings) if url.startswith("https:") else None
        except (OSError, ssl.SSLError) as error:
            why = f"the TLS files for MCP server {url} cannot be used: {error}"
            return CallFailure(ErrorCode.UPSTREAM_ERROR, why)
        channel = Channel(url, settings, self._settings.addresses, tls)
        return Upstream(url, settings, clock=self._clock, line=lambda _: HttpLine(channel, settings.headers))

    def _context(self, settings: UpstreamSettings) -> ssl.SSLContext:
        """Servers with the same files share a context: loading the CAs takes tens of milliseconds."""
        files = (settings.ca_file, settings.cert_file, settings.key_file)
        found = self._tls.get(files)
        if found is None:
            found = ssl.create_default_context(cafile=settings.ca_file)
            if settings.cert_file is not None:
                found.load_cert_chain(settings.cert_file, settings.key_file)
            self._tls[files] = found
        return found

    def secured(self) -> list[tuple[ClusterTls, ssl.SSLContext]]:
        """The TLS contexts in use and the files of each: for whoever watches the files."""
        return [
            (ClusterTls(ca_file=ca, cert_file=cert, key_file=key), context)
            for (ca, cert, key), context in self._tls.items()
        ]

    async def call(
        self, backend: McpBackend, arguments: bytes, context: CallContext, limits: Limits, *, idempotent: bool
    ) -> CallResult | RpcError:
        """Call the backend's tool on its server. `arguments`: a JSON object."""
        upstream = self.get(backend.server)
        if isinstance(upstream, CallFailure):
            return failed(upstream)
        return await upstream.call(backend.tool, arguments, context, limits, idempotent=idempotent)

    async def list_tools(self, url: str) -> Listing | CallFailure:
        """Every tool of the server, or why not."""
        upstream = self.get(url)
        return upstream if isinstance(upstream, CallFailure) else await upstream.list_tools()

    def watch(self, url: str, changed: Callable[[], None]) -> Callable[[], None] | CallFailure:
        """Call `changed()` whenever the server announces another tool list, until the returned function is called.

        All who watch a server share one stream. Begin before the first list and wait for `standing`: then nothing falls
        in between.
        """
        upstream = self.get(url)
        if isinstance(upstream, CallFailure):
            return upstream
        watched = self._watched.get(url)
        if watched is None:
            watched = self._watched[url] = _Watched(upstream, self._rng)
        token = object()
        watched.listeners[token] = changed

        def leave() -> None:
            watched.listeners.pop(token, None)
            if not watched.listeners and self._watched.get(url) is watched:
                self._unwatch(url)

        return leave

    async def standing(self, url: str, seconds: float) -> None:
        """Wait, for so long at most, until the stream of the watched server stands or there is none to be had.

        A list that is asked for after this misses no change, or the watch says later that there may have been one.
        """
        watched = self._watched.get(url)
        if watched is not None:
            await watched.watch.tried(seconds)

    def _unwatch(self, url: str) -> None:
        watched = self._watched.pop(url, None)
        if watched is not None:
            self._end(watched)

    def _end(self, watched: _Watched) -> None:
        task, watched.task = watched.task, None
        if task is not None:
            task.cancel()
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def keep(self, urls: Collection[str]) -> None:
        """Let go of every server that is not among `urls` (those of the tools and servers now in the catalog)."""
        for url in [each for each in self._upstreams if each not in urls]:
            self._let_go(url)

    def release(self, url: str) -> None:
        """Nobody follows the server any more: let go of it once its calls are done. A later call makes it anew."""
        if url in self._upstreams and url not in self._watched:
            self._let_go(url)

    def replace(self, settings: UpstreamsSettings) -> UpstreamsSettings:
        """Take new settings; the old ones. Servers whose settings differ are spoken to anew; calls under way end first.

        Who watches such a server goes on watching it.
        """
        old, self._settings = self._settings, settings
        for url, upstream in list(self._upstreams.items()):
            if old.of(url) == settings.of(url) and old.addresses == settings.addresses:
                continue
            del self._upstreams[url]
            self._retire(upstream)
            watched = self._watched.get(url)
            if watched is None:
                continue
            self._end(watched)
            again = self.get(url)
            if isinstance(again, Upstream):
                watched.start(again, self._rng)
                watched.watch.missed()
                watched.tell()  # what it lists now may be something else
        return old

    def _let_go(self, url: str) -> None:
        self._unwatch(url)
        self._retire(self._upstreams.pop(url))

    def _retire(self, gone: Upstream) -> None:
        task = asyncio.get_running_loop().create_task(gone.retire())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def status(self) -> tuple[UpstreamStatus, ...]:
        """Every server, in order of first use."""
        return tuple(each.status() for each in self._upstreams.values())

    async def close(self) -> None:
        """Close all at once; returns when every connection and task is gone."""
        upstreams = list(self._upstreams.values())
        self._upstreams.clear()
        for url in list(self._watched):
            self._unwatch(url)
        for task in list(self._closing):
            task.cancel()
        await asyncio.gather(*self._closing, *(each.close() for each in upstreams), return_exceptions=True)
