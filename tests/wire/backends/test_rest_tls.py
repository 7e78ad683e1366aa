"""https upstreams: who is trusted, under which name, and with whose certificate. The authority is made here."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import web
from rest_upstreams import Calls, Listen, Serve, read_head

from arion_tds.backends.clusters import Clusters
from arion_tds.model.cluster import Cluster, ClusterTls
from arion_tds.model.result import ErrorCode

x509 = pytest.importorskip("cryptography.x509")
from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402 - after importorskip
from cryptography.hazmat.primitives.asymmetric import ec  # noqa: E402

PEM = serialization.Encoding.PEM


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self.subject, self.key.public_key(), x509.BasicConstraints(True, None), ())
        self.ca_file = str(folder / f"{name}.pem")
        Path(self.ca_file).write_bytes(self.certificate.public_bytes(PEM))

    def issue(self, *names: str, password: bytes | None = None) -> tuple[str, str]:
        """Files of a certificate for the names (or addresses) and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
        certificate = self._sign(subject, key.public_key(), x509.BasicConstraints(False, None), names)
        cert_file = self.folder / f"{names[0]}.crt"
        key_file = self.folder / f"{names[0]}.key"
        cert_file.write_bytes(certificate.public_bytes(PEM))
        guard = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        key_file.write_bytes(key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, guard))
        return str(cert_file), str(key_file)

    def _sign(self, subject: object, key: object, constraints: object, names: Sequence[str]) -> x509.Certificate:
        day = datetime.timedelta(days=1)
        start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + 36500 * day)
            .add_extension(constraints, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if names:
            alternatives = [
                x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
                for name in names
            ]
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return builder.sign(self.key, hashes.SHA256())


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


def server_context(files: tuple[str, str], clients: Authority | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients.ca_file)
    return context


async def hello(_request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="hello")


async def test_an_upstream_of_the_given_authority_is_trusted(calls: Calls, serve: Serve, authority: Authority) -> None:
    upstream = await serve(hello, server_context(authority.issue("127.0.0.1")))
    await calls.use(upstream.origin, tls=ClusterTls(ca_file=authority.ca_file))
    assert (await calls.answered()).body == b"hello"
    assert (await calls.answered()).body == b"hello"
    assert len(upstream.connections) == 1


async def test_an_upstream_of_another_authority_is_refused(
    calls: Calls, serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    upstream = await serve(hello, server_context(authority.issue("127.0.0.1")))
    stranger = Authority(tmp_path, "stranger")
    await calls.use(upstream.origin, tls=ClusterTls(ca_file=stranger.ca_file))
    failure = await calls.failed()
    assert failure.code is ErrorCode.UPSTREAM_ERROR
    assert "certificate is refused" in failure.message
    assert not failure.retryable


async def test_without_tls_settings_the_systems_authorities_decide(
    calls: Calls, serve: Serve, authority: Authority
) -> None:
    upstream = await serve(hello, server_context(authority.issue("127.0.0.1")))
    assert "certificate is refused" in (await (await calls.use(upstream.origin)).failed()).message


async def test_a_certificate_for_another_name_is_refused(calls: Calls, serve: Serve, authority: Authority) -> None:
    upstream = await serve(hello, server_context(authority.issue("api.example")))
    await calls.use(upstream.origin, tls=ClusterTls(ca_file=authority.ca_file))
    assert "certificate is refused" in (await calls.failed()).message


async def test_the_sni_setting_is_the_name_that_is_sent_and_verified(
    calls: Calls, serve: Serve, authority: Authority
) -> None:
    asked: list[str | None] = []
    context = server_context(authority.issue("api.example"))

    def note(_socket: object, name: str | None, _context: object) -> None:
        asked.append(name)

    context.sni_callback = note
    upstream = await serve(hello, context)
    await calls.use(upstream.origin, tls=ClusterTls(ca_file=authority.ca_file, sni="api.example"))
    assert (await calls.answered()).body == b"hello"
    assert asked == ["api.example"]


async def test_a_client_certificate_is_shown(calls: Calls, serve: Serve, authority: Authority) -> None:
    upstream = await serve(hello, server_context(authority.issue("127.0.0.1"), clients=authority))
    cert_file, key_file = authority.issue("gateway.example")
    tls = ClusterTls(ca_file=authority.ca_file, cert_file=cert_file, key_file=key_file)
    assert (await (await calls.use(upstream.origin, tls=tls)).answered()).body == b"hello"


async def test_without_its_client_certificate_the_call_fails(calls: Calls, serve: Serve, authority: Authority) -> None:
    upstream = await serve(hello, server_context(authority.issue("127.0.0.1"), clients=authority))
    await calls.use(upstream.origin, tls=ClusterTls(ca_file=authority.ca_file))
    assert (await calls.failed()).code is ErrorCode.UPSTREAM_ERROR


async def test_an_early_answer_to_what_is_not_read_costs_the_connection(
    calls: Calls, listen: Listen, authority: Authority
) -> None:
    """What waits to be sent waits beneath TLS, where the connection does not see all of it."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await asyncio.Event().wait()

    origin = await listen(talk, server_context(authority.issue("127.0.0.1")))
    await calls.use(origin, tls=ClusterTls(ca_file=authority.ca_file), max_connections=1)
    for _ in range(2):
        assert (await calls.answered("POST", body=b"x" * (8 << 20))).status == 413


async def test_an_upstream_that_speaks_no_tls_is_told_apart(calls: Calls, serve: Serve) -> None:
    upstream = await serve(hello)
    failure = await (await calls.use(upstream.origin.replace("http:", "https:"))).failed()
    assert failure.message == 'cluster "c": the TLS handshake failed'


def test_a_missing_file_stops_the_start_and_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "no-such.pem")
    cluster = Cluster(name="c", endpoints=("https://127.0.0.1:1",), tls=ClusterTls(ca_file=missing))
    with pytest.raises(ValueError, match=r'cluster "c": ca_file .*no-such\.pem.* No such file'):
        Clusters({"c": cluster})


def test_a_file_that_is_no_certificate_stops_the_start_and_is_named(tmp_path: Path, authority: Authority) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    tls = ClusterTls(ca_file=authority.ca_file, cert_file=str(junk))
    with pytest.raises(ValueError, match=r"cert_file .*junk\.pem"):
        Clusters({"c": Cluster(name="c", endpoints=("https://127.0.0.1:1",), tls=tls)})


def test_a_key_with_a_password_stops_the_start_instead_of_asking_on_the_terminal(authority: Authority) -> None:
    cert_file, key_file = authority.issue("gateway.example", password=b"hush")
    tls = ClusterTls(ca_file=authority.ca_file, cert_file=cert_file, key_file=key_file)
    with pytest.raises(ValueError, match=r"key_file .*gateway\.example\.key"):
        Clusters({"c": Cluster(name="c", endpoints=("https://127.0.0.1:1",), tls=tls)})
