"""Real upstreams on loopback, and the clusters that reach them."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from rest_upstreams import Calls, Handler, Listen, Serve, Talk, Upstream


@pytest.fixture
async def calls() -> AsyncIterator[Calls]:
    made = Calls()
    yield made
    await made.clusters.close()


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """What starts an HTTP server whose every request goes to the given handler, with TLS if it gets a context."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(handler: Handler, tls: ssl.SSLContext | None = None) -> Upstream:
            upstream = Upstream("")

            async def handle(request: web.BaseRequest) -> web.StreamResponse:
                upstream.seen.append(request)
                upstream.bodies.append(await request.read())
                assert request.transport is not None
                upstream.connections.add(request.transport.get_extra_info("peername"))
                return await handler(request)

            runner = web.ServerRunner(web.Server(handle, access_log=None), shutdown_timeout=0.1)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
            await site.start()
            port = runner.addresses[0][1]
            upstream.origin = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
            return upstream

        yield start


@pytest.fixture
async def listen() -> AsyncIterator[Listen]:
    """What starts a raw TCP (or TLS) server and gives its origin; a connection is one run of the talk, then closed."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(talk: Talk, tls: ssl.SSLContext | None = None) -> str:
            tasks: set[asyncio.Task[None]] = set()

            async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = asyncio.current_task()
                assert task is not None
                tasks.add(task)
                try:
                    await talk(reader, writer)
                except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    pass  # the client went, or the test is over
                finally:
                    tasks.discard(task)
                    writer.close()

            server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)

            async def stop() -> None:
                server.close()
                for task in list(tasks):
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

            stack.push_async_callback(stop)
            return f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"

        yield start


@pytest.fixture
async def refusing() -> str:
    """The origin of a port where nobody listens."""
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return f"http://127.0.0.1:{port}"
