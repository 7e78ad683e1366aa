"""All servers together: made on demand, bounded, let go, kept from addresses that they must not have."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import pathlib
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from mcp_scripted import CONTEXT, LIMITS, Asked, Reply, Scripted, text

from arion_tds.backends.mcp import address
from arion_tds.backends.mcp.address import AddressPolicy
from arion_tds.backends.mcp.connection import Upstream
from arion_tds.backends.mcp.pool import Upstreams, UpstreamsSettings
from arion_tds.backends.mcp.settings import UpstreamSettings
from arion_tds.model.backend import McpBackend
from arion_tds.model.result import CallFailure, CallResult, ErrorCode


@pytest.fixture
async def made(request: pytest.FixtureRequest) -> AsyncIterator[list[Upstreams]]:
    """Pools that are closed before the test's server is."""
    if "server" in request.fixturenames:
        request.getfixturevalue("server")
    kept: list[Upstreams] = []
    yield kept
    for each in kept:
        await each.close()


def pool(made: list[Upstreams], **settings: Any) -> Upstreams:
    upstreams = Upstreams(UpstreamsSettings(**settings), clock=lambda: 7.0)
    made.append(upstreams)
    return upstreams


def policy(allow: tuple[str, ...] = (), deny: tuple[str, ...] = ()) -> AddressPolicy:
    found = address.parse(allow, deny)
    assert isinstance(found, AddressPolicy)
    return found


async def call(upstreams: Upstreams, url: str) -> CallResult:
    async with asyncio.timeout(10):
        found = await upstreams.call(McpBackend(url, "echo"), b"{}", CONTEXT, LIMITS, idempotent=False)
    assert isinstance(found, CallResult)
    return found


async def test_a_server_is_made_once_and_shows_its_state(server: Scripted, made: list[Upstreams]) -> None:
    upstreams = pool(made)
    assert upstreams.get(server.url) is upstreams.get(server.url)
    await call(upstreams, server.url)
    await upstreams.list_tools(server.url)
    (status,) = upstreams.status()
    assert (status.url, status.era, status.calls, status.failures) == (server.url, server.era, 1, 0)
    assert (status.listed_at, status.listed_tools, status.calls_in_flight) == (7.0, 1, 0)


async def test_an_idle_server_makes_room_and_a_busy_one_does_not(server: Scripted, made: list[Upstreams]) -> None:
    upstreams = pool(made, max_servers=1)
    await call(upstreams, server.url)
    go = asyncio.Event()

    async def waits(asked: Asked) -> Reply:
        await go.wait()
        return asked.result(text("x"))

    server.on["tools/call"] = waits
    busy = asyncio.create_task(call(upstreams, f"{server.origin}/other"))
    await server.until(lambda: len(server.of("tools/call")) == 2)
    refused = await call(upstreams, server.url)
    assert refused.failure is not None
    assert refused.failure.code is ErrorCode.OVERFLOW
    assert "max_servers" in refused.failure.message
    go.set()
    assert not (await busy).is_error


async def test_servers_that_left_the_catalog_are_let_go_once_their_calls_are_done(
    server: Scripted, made: list[Upstreams]
) -> None:
    upstreams = pool(made)
    go = asyncio.Event()

    async def waits(asked: Asked) -> Reply:
        await go.wait()
        return asked.result(text("x"))

    server.on["tools/call"] = waits
    running = asyncio.create_task(call(upstreams, server.url))
    await server.until(lambda: bool(server.of("tools/call")))
    upstreams.keep({"http://other/"})
    assert upstreams.status() == ()
    go.set()
    assert not (await running).is_error
    await asyncio.gather(*upstreams._closing)
    if server.era == "legacy":
        assert server.of("DELETE")


async def test_all_who_watch_a_server_share_one_stream(server: Scripted, made: list[Upstreams]) -> None:
    upstreams = pool(made)
    told: list[str] = []
    both = asyncio.Event()
    end = asyncio.Event()

    async def announces(asked: Asked) -> Reply:
        ready = {
            "method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": {"toolsListChanged": True}},
        }
        changed = {"method": "notifications/tools/list_changed"}
        response = await asked.stream(ready) if asked.message else await asked.stream()
        await both.wait()
        await asked.send(response, changed)
        await end.wait()
        return response

    def hears(name: str) -> None:
        told.append(name)
        if len(told) == 2:
            done.set()

    done = asyncio.Event()
    stream = "subscriptions/listen" if server.era == "modern" else "GET"
    server.on[stream] = announces
    first = upstreams.watch(server.url, lambda: hears("first"))
    second = upstreams.watch(server.url, lambda: hears("second"))
    await server.until(lambda: bool(server.of(stream)))
    both.set()
    async with asyncio.timeout(5):
        await done.wait()
    assert sorted(told) == ["first", "second"]
    assert len(server.of(stream)) == 1
    assert not isinstance(first, CallFailure)
    assert not isinstance(second, CallFailure)
    first()
    assert len(upstreams._watched) == 1
    second()
    second()
    assert upstreams._watched == {}
    end.set()
    await asyncio.gather(*upstreams._closing, return_exceptions=True)
    upstream = upstreams.get(server.url)
    assert isinstance(upstream, Upstream)
    assert not upstream.busy


async def test_settings_of_one_server_do_not_touch_another(server: Scripted, made: list[Upstreams]) -> None:
    own = UpstreamSettings(headers=(("x-key", "s3cret"),))
    upstreams = pool(made, servers={server.url: own})
    await call(upstreams, server.url)
    await call(upstreams, f"{server.origin}/other")
    with_key = {each.http.path for each in server.asked if each.headers.get("x-key") == "s3cret"}
    assert with_key == {"/mcp"}


async def test_a_denied_address_is_refused_by_rule_and_never_connected_to(
    server: Scripted, made: list[Upstreams]
) -> None:
    port = server.url.rsplit(":", 1)[1].split("/")[0]
    upstreams = pool(made, addresses=policy(deny=("127.0.0.0/8", "::1")))
    for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0x7f000001"):
        found = await call(upstreams, f"http://{host}:{port}/mcp")
        assert found.failure is not None
        said = found.failure.message
        assert "deny_addresses" in said, said
        assert not found.failure.retryable
    assert server.asked == []


async def test_a_name_that_resolves_elsewhere_the_second_time_gains_nothing(
    server: Scripted, made: list[Upstreams], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = asyncio.get_running_loop().getaddrinfo

    async def resolves(host: str, port: int, **more: object) -> object:
        if host != "rebinding.example":
            return await resolve(host, port, **more)  # type: ignore[arg-type]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers.pop(0), port))]

    answers = ["127.0.0.1", "169.254.169.254"]
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolves)
    port = server.url.rsplit(":", 1)[1].split("/")[0]
    url = f"http://rebinding.example:{port}/mcp"
    upstreams = pool(made)
    assert not (await call(upstreams, url)).is_error
    upstream = upstreams.get(url)
    assert isinstance(upstream, Upstream)
    channel = upstream.line.channel
    connections, channel._connections = channel._connections, None
    await connections.close()
    found = await call(upstreams, url)
    assert found.failure is not None
    assert "169.254.0.0/16" in found.failure.message


async def test_metadata_is_refused_by_default_and_the_operators_own_urls_are_trusted(
    server: Scripted, made: list[Upstreams]
) -> None:
    upstreams = pool(made)
    for url in ("http://169.254.169.254/mcp", "http://[fd00:ec2::254]/mcp", "http://metadata.google.internal/mcp"):
        found = await call(upstreams, url)
        assert found.failure is not None
        assert "built-in rule" in found.failure.message
    trusted = pool(made, addresses=policy(deny=("127.0.0.0/8",)), default=UpstreamSettings(trusted=True))
    assert not (await call(trusted, server.url)).is_error


async def test_a_redirect_is_not_followed_anywhere(server: Scripted, made: list[Upstreams]) -> None:
    async def redirects(asked: Asked) -> Reply:
        return aiohttp.web.Response(status=307, headers={"location": f"{server.origin}/elsewhere"})

    for method in ("server/discover", "initialize", "tools/call", "tools/list"):
        server.on[method] = redirects
    upstreams = pool(made)
    found = await call(upstreams, server.url)
    assert found.failure is not None
    assert "redirect" in found.failure.message
    assert isinstance(await upstreams.list_tools(server.url), CallFailure)
    assert {each.http.path for each in server.asked} == {"/mcp"}


async def test_tls_files_that_cannot_be_used_are_an_error_of_that_server_alone(
    server: Scripted, made: list[Upstreams]
) -> None:
    bad = UpstreamSettings(ca_file="/nonexistent/ca.pem")
    upstreams = pool(made, servers={"https://127.0.0.1:1/mcp": bad})
    found = await call(upstreams, "https://127.0.0.1:1/mcp")
    assert found.failure is not None
    assert "TLS files" in found.failure.message
    assert not (await call(upstreams, server.url)).is_error


async def test_https_is_verified_against_the_configured_ca(made: list[Upstreams], tmp_path: pathlib.Path) -> None:
    ca_file = tmp_path / "ca.pem"
    tls = certificate_for_loopback(ca_file)
    async with Scripted("modern").serving(tls=tls) as server:
        upstreams = pool(made, servers={server.url: UpstreamSettings(ca_file=str(ca_file))})
        assert not (await call(upstreams, server.url)).is_error
        stranger = pool(made)
        found = await call(stranger, server.url)
        assert found.failure is not None
        assert "TLS failed" in found.failure.message
        assert len(server.of("tools/call")) == 1
        for each in made:
            await each.close()


def certificate_for_loopback(ca_file: pathlib.Path) -> ssl.SSLContext:
    """A server context for 127.0.0.1; its self-signed certificate is written to `ca_file`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    day = datetime.timedelta(days=1)
    now = datetime.datetime.now(datetime.UTC)  # noqa: TID251 - certificates are of the wall clock
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    ca_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file = ca_file.with_name("key.pem")
    encoding, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    key_file.write_bytes(key.private_bytes(encoding, kind, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca_file, key_file)
    return context


async def test_servers_with_the_same_tls_files_share_a_context(server: Scripted, made: list[Upstreams]) -> None:
    upstreams = pool(made)
    first, second = upstreams.get("https://one.example/mcp"), upstreams.get("https://two.example/mcp")
    assert isinstance(first, Upstream)
    assert isinstance(second, Upstream)
    assert first.line.channel._tls is second.line.channel._tls is not None
