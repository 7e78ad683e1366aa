"""What the network does to the stream: silence, resets, pings that are not liked, sizes, TLS, another event loop."""

import asyncio
import datetime
import ipaddress
import random
import time

import grpc
import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from xds_peer import LONGEST, Proxy, Server, response
from xds_side import Ear, Handler, Start

from arion_tds.model.delivery import CATALOG, ResourceId
from arion_tds.xds import wire
from arion_tds.xds.stream import AdsClient, AdsSettings

TOOL, SOURCE, SERVER, TOOLKIT = CATALOG
A = "s/m/x.a"


async def test_a_server_that_freezes_is_noticed_by_keepalive(server: Server, start: Start) -> None:
    async with Proxy().before(server.port) as proxy:
        ear = Ear()
        client = start(
            address=f"127.0.0.1:{proxy.port}",
            observer=ear,
            keepalive_time=0.3,
            keepalive_timeout=0.2,
            connect_timeout=0.5,
        )
        stream = await server.greeted()
        await stream.says(TOOL, "n1", {A: "1"})
        await stream.hears()
        proxy.freeze()
        await ear.until("disconnected")
        assert not client.status().connected
        proxy.thaw()
        again = await server.greeted()
        assert dict(again.first[TOOL].initial_resource_versions) == {A: "1"}


async def test_a_connection_that_is_reset_is_opened_again(server: Server, start: Start) -> None:
    async with Proxy().before(server.port) as proxy:
        client = start(address=f"127.0.0.1:{proxy.port}")
        await server.greeted()
        proxy.reset()
        await server.greeted()
        assert client.status().last_error.startswith("UNAVAILABLE")


async def test_a_server_that_takes_connections_and_says_nothing_is_given_up(start: Start) -> None:
    taken: list[asyncio.StreamWriter] = []
    mute = await asyncio.start_server(lambda _, writer: taken.append(writer), "127.0.0.1", 0)
    ear = Ear()
    client = start(
        address=f"127.0.0.1:{mute.sockets[0].getsockname()[1]}", observer=ear, connect_timeout=0.1, backoff_base=0.01
    )
    await ear.until("disconnected", 2)
    assert client.status().last_error == "no connection within 0.1 s (connect_timeout)"
    mute.close()
    for writer in taken:
        writer.transport.abort()


async def test_a_server_that_punishes_pings_costs_one_stream_and_is_then_pinged_rarely(start: Start) -> None:
    async with Server(options=()) as strict:
        client = start(address=strict.address, keepalive_time=0.1, keepalive_timeout=5.0)
        await strict.greeted()
        stream = await strict.greeted()
        assert "Too many pings" in client.status().last_error
        assert "from now on it is pinged every 300 s only" in client.status().last_error
        await stream.answers_all()
        assert client.status().attempts == 2


async def test_a_response_of_twenty_megabytes_is_applied_while_the_loop_keeps_turning(
    server: Server, start: Start, handler: Handler
) -> None:
    start()
    stream = await server.greeted()
    message = response(TOOL, "big", {f"s/m/x.{number}": "1" * 2000 for number in range(10_000)})
    raw = message.SerializeToString()
    assert len(raw) > 20_000_000
    await stream.sends(raw)
    assert (await stream.hears()).response_nonce == "big"
    assert len(handler.content[TOOL]) == 10_000


async def test_a_response_beyond_max_message_bytes_names_the_setting(server: Server, start: Start) -> None:
    client = start(max_message_bytes=100_000)
    stream = await server.greeted()
    await stream.says(TOOL, "big", {A: "1" * 200_000})
    again = await server.greeted()
    assert "RESOURCE_EXHAUSTED" in client.status().last_error
    assert "max_message_bytes is 100000" in client.status().last_error
    await again.answers_all()


async def test_sixty_thousand_versions_fit_the_first_request_of_a_reconnect(server: Server, start: Start) -> None:
    client = start()
    stream = await server.greeted()
    for number in range(60_000):
        client.claim(TOOL, ResourceId("s/m", f"some_namespace.tool_{number}"), "v" * 64)
    stream.ends(grpc.StatusCode.UNAVAILABLE, "restart")
    first = (await server.greeted()).first[TOOL]
    assert first.ByteSize() > 4 * 1024 * 1024
    assert len(first.initial_resource_versions) == 60_000


def certificate() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return pem, made.public_bytes(serialization.Encoding.PEM)


async def test_with_credentials_the_stream_is_tls(start: Start) -> None:
    key, cert = certificate()
    async with Server(credentials=grpc.ssl_server_credentials([(key, cert)])) as server:
        client = start(address=server.address, credentials=lambda: grpc.ssl_channel_credentials(cert))
        await (await server.greeted()).answers_all()
        assert client.is_ready


async def test_a_certificate_that_is_not_trusted_is_an_error_that_says_so(start: Start) -> None:
    key, cert = certificate()
    async with Server(credentials=grpc.ssl_server_credentials([(key, cert)])) as server:
        ear = Ear()
        other = grpc.ssl_channel_credentials(certificate()[1])
        client = start(address=server.address, observer=ear, credentials=lambda: other)
        await ear.until("disconnected")
        assert "CERTIFICATE_VERIFY_FAILED" in client.status().last_error


def test_the_client_runs_on_uvloop() -> None:
    async def talk() -> None:
        handler = Handler()
        async with Server() as server, asyncio.timeout(LONGEST):
            client = AdsClient(
                AdsSettings(server.address, "node", backoff_base=0.02),
                ["s/m"],
                handler,
                clock=time.monotonic,
                rng=random.Random(7),
            )
            task = asyncio.get_running_loop().create_task(client.run())
            stream = await server.greeted()
            await stream.says(TOOL, "n1", {A: "1"})
            assert (await stream.hears()).response_nonce == "n1"
            stream.ends()
            await server.greeted()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert handler.content[TOOL] == {A: "1"}

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(talk())


def test_the_channel_says_both_options_without_which_keepalive_sleeps() -> None:
    """Measured: without them a stopped server is noticed after a minute (grpcio 1.85)."""
    options = dict(wire.options(AdsSettings("x", "node"), 10.0))
    assert options["grpc.keepalive_time_ms"] == 10_000
    assert options["grpc.http2.max_pings_without_data"] == 0
    assert options["grpc.http2.ping_timeout_ms"] == 5_000
