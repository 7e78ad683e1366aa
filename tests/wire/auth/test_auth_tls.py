"""TLS: listeners with and without client certificates, and files that are replaced while everything runs."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import auth_issuer
import grpc
import pytest
from aiohttp import web
from auth_people import guarded, token
from gateway_house import BOUND, House, house, listener, tool
from pem_files import Authority

from arion_tds import pem
from arion_tds.cli.main import main
from arion_tds.config import judging
from arion_tds.errors import ConfigError
from control_plane_example.mock import MockControlPlane

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def trusting(authority: Authority, *files: str) -> ssl.SSLContext:
    """A client's context; `files`: its own certificate and key."""
    made = ssl.create_default_context(cadata=authority.pem.decode())
    if files:
        made.load_cert_chain(*files)
    return made


async def ping(here: House, context: ssl.SSLContext) -> int:
    """Status over a new connection."""
    url = here.a.url.replace("http:", "https:") + "/mcp"
    async with aiohttp.ClientSession() as http, http.post(url, json=PING, ssl=context) as response:
        return response.status


async def renewed(here: House, count: int = 1) -> None:
    """Have the gateway look at its files now."""
    await here.gateway.rotation.look()
    assert here.gateway.rotation.renewals == count


@pytest.fixture
async def bound() -> AsyncIterator[None]:
    async with asyncio.timeout(BOUND):
        yield


@pytest.mark.usefixtures("bound")
async def test_a_listener_speaks_tls_and_takes_new_files_without_dropping_anybody(tmp_path: Path) -> None:
    first, second = Authority("first"), Authority("second")
    files = first.write(tmp_path)
    tls = {"cert_file": files["cert_file"], "key_file": files["key_file"]}
    async with house(listener(tls=tls)) as here, aiohttp.ClientSession() as kept:
        url, context = here.a.url.replace("http:", "https:") + "/mcp", trusting(first)
        assert await ping(here, trusting(first)) == 200
        async with kept.post(url, json=PING, ssl=context) as response:
            assert response.status == 200
        second.write(tmp_path)
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await ping(here, trusting(second))
        await renewed(here)
        assert await ping(here, trusting(second)) == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await ping(here, trusting(first))
        async with kept.post(url, json=PING, ssl=context) as response:
            assert response.status == 200, "a connection that was open stays"


@pytest.mark.usefixtures("bound")
async def test_files_that_do_not_fit_leave_the_old_ones_in_use(tmp_path: Path, caplog: Any) -> None:
    authority = Authority()
    files = authority.write(tmp_path)
    tls = {"cert_file": files["cert_file"], "key_file": files["key_file"]}
    async with house(listener(tls=tls)) as here:
        Path(files["cert_file"]).write_bytes(authority.issue()[0])
        await here.gateway.rotation.look()
        assert here.gateway.rotation.failures == 1
        assert "the old ones stay" in caplog.text
        assert await ping(here, trusting(authority)) == 200
        Path(files["key_file"]).unlink()
        await here.gateway.rotation.look()
        assert here.gateway.rotation.failures == 2
        authority.write(tmp_path)
        await renewed(here)
        assert await ping(here, trusting(authority)) == 200


@pytest.mark.usefixtures("bound")
async def test_client_certificates_are_asked_for_and_the_authority_can_be_replaced(tmp_path: Path) -> None:
    servers, clients, others = Authority("servers"), Authority("clients"), Authority("others")
    files = servers.write(tmp_path)
    client, other = clients.write(tmp_path, "client"), others.write(tmp_path, "other")
    tls = {"cert_file": files["cert_file"], "key_file": files["key_file"], "client_ca_file": client["ca_file"]}
    known = trusting(servers, client["cert_file"], client["key_file"])
    stranger = trusting(servers, other["cert_file"], other["key_file"])
    async with house(listener(tls=tls)) as here:
        assert await ping(here, known) == 200
        for refused in (stranger, trusting(servers)):
            with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                await ping(here, refused)
        Path(client["ca_file"]).write_bytes(others.pem)
        await renewed(here)
        assert await ping(here, stranger) == 200
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await ping(here, known)


@pytest.mark.usefixtures("bound")
async def test_plain_http_on_a_tls_listener_is_refused_and_harms_nobody(tmp_path: Path) -> None:
    authority = Authority()
    files = authority.write(tmp_path)
    tls = {"cert_file": files["cert_file"], "key_file": files["key_file"], "min_version": "1.3"}
    async with house(listener(tls=tls)) as here:
        with pytest.raises(aiohttp.ClientError):
            await here.a.post("ping", {})
        old = trusting(authority)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(aiohttp.ClientError):
            await ping(here, old)
        assert await ping(here, trusting(authority)) == 200


@pytest.mark.usefixtures("bound")
async def test_the_commands_ask_a_tls_listener_as_its_clients_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = Authority().write(tmp_path)
    async with house(listener(tls={"cert_file": files["cert_file"], "key_file": files["key_file"]})) as here:
        await here.put("McpTool", "a/main/sky.rain", tool("sky.rain", "When it rains"))
        port = here.gateway.bound["a"].rpartition(":")[2]

        async def said(*arguments: str) -> tuple[int, str, str]:
            status = await asyncio.to_thread(main, [*arguments, "--admin", here.gateway.admin])
            return status, *capsys.readouterr()

        assert f"https://127.0.0.1:{port}/mcp" in (await said("status"))[1]
        status, _, why = await said("search", "rain")
        assert status == 1
        assert f"the certificate of https://127.0.0.1:{port} is not trusted" in why
        assert "SSL_CERT_FILE" in why
        monkeypatch.setenv("SSL_CERT_FILE", files["ca_file"])
        status, found, _ = await said("search", "rain")
        assert (status, found.partition("\t")[0]) == (0, "sky.rain")
        assert (await said("search", "rain", "--url", f"https://localhost:{port}"))[0] == 0


@pytest.mark.usefixtures("bound")
async def test_the_commands_show_a_certificate_where_one_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, mine = Authority("servers").write(tmp_path), Authority("clients").write(tmp_path, "mine")
    tls = {"cert_file": files["cert_file"], "key_file": files["key_file"], "client_ca_file": mine["ca_file"]}
    async with house(listener(tls=tls)) as here:
        await here.put("McpTool", "a/main/sky.rain", tool("sky.rain", "When it rains"))

        async def said(*arguments: str) -> tuple[int, str, str]:
            status = await asyncio.to_thread(main, [*arguments, "--admin", here.gateway.admin])
            return status, *capsys.readouterr()

        trust, own = ("--ca", files["ca_file"]), ("--cert", mine["cert_file"], "--key", mine["key_file"])
        assert (await said("call", "sky.rain", *trust, *own))[0] == 0
        assert (await said("search", "rain", *trust, *own))[1].startswith("sky.rain\t")
        status, _, why = await said("call", "sky.rain", *trust)
        assert status == 1
        assert "does it ask for a client certificate? Give one with --cert FILE and --key FILE" in why
        assert "--ca FILE" in (await said("call", "sky.rain", *own))[2]
        assert "--cert" in (await said("call", "sky.rain", *trust, "--key", mine["key_file"]))[2]
        wrong = ("--cert", mine["cert_file"], "--key", files["key_file"])
        assert f"--cert {mine['cert_file']} with --key" in (await said("call", "sky.rain", *trust, *wrong))[2]
        assert "--ca /nowhere: No such file" in (await said("call", "sky.rain", "--ca", "/nowhere"))[2]


@pytest.mark.usefixtures("bound")
async def test_a_cluster_s_certificate_is_replaced_without_a_restart(tmp_path: Path) -> None:
    authority = Authority("backend")
    backend = authority.write(tmp_path, "backend")
    clients, later = Authority("clients"), Authority("later")
    mine = clients.write(tmp_path, "mine")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(backend["cert_file"], backend["key_file"])
    context.load_verify_locations(cadata=later.pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED

    async def answer(_request: web.BaseRequest) -> web.Response:
        return web.json_response({"ok": True}, headers={"Connection": "close"})

    runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        cluster = {
            "name": "echo",
            "endpoints": [f"https://127.0.0.1:{runner.addresses[0][1]}"],
            "tls": {"ca_file": backend["ca_file"], "cert_file": mine["cert_file"], "key_file": mine["key_file"]},
        }
        async with house(clusters=[cluster]) as here:
            await here.put("McpTool", "a/main/a.t", tool("a.t"))
            assert (await here.a.call("a.t"))["isError"], "the backend does not know this authority"
            later.write(tmp_path, "mine")
            await renewed(here)
            assert not (await here.a.call("a.t")).get("isError")
    finally:
        await runner.cleanup()


@pytest.mark.usefixtures("bound")
async def test_the_control_plane_is_spoken_to_over_tls_with_files_read_at_each_connection(tmp_path: Path) -> None:
    authority = Authority()
    cert, key = authority.issue()
    server_credentials = grpc.ssl_server_credentials([(key, cert)])
    files = authority.write(tmp_path, "plane")
    config = judging.judge(
        {
            "control_plane": {"address": "127.0.0.1:1", "tls": {"ca_file": files["ca_file"]}},
            "listeners": [listener()],
        }
    )
    assert server_credentials is not None
    assert config.file.control_plane is not None
    credentials = pem.PlaneCredentials(config.file.control_plane)
    assert credentials.wanted is not None
    assert isinstance(credentials.wanted(), grpc.ChannelCredentials)
    Path(files["ca_file"]).unlink()
    assert isinstance(credentials.wanted(), grpc.ChannelCredentials), "what was good before lasts"
    with pytest.raises(ConfigError, match="plane"):
        pem.PlaneCredentials(config.file.control_plane)


@pytest.mark.usefixtures("bound")
async def test_a_jwks_file_that_is_replaced_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(auth_issuer.jwks(auth_issuer.EC))
    provider = {"issuer": auth_issuer.ISSUER, "local_jwks": {"filename": str(path)}}
    async with house(guarded(providers={"main": provider}, required=True)) as here:

        async def status(text: str) -> int:
            headers = {"Authorization": f"Bearer {text}"}
            async with here.http.post(f"{here.a.url}/mcp", json=PING, headers=headers) as response:
                return response.status

        old, new = token(), token(key=auth_issuer.RSA, algorithm="RS256")
        assert (await status(old), await status(new)) == (200, 401)
        path.write_bytes(b"not a key set")
        await here.gateway.rotation.look()
        assert await status(old) == 200
        path.write_bytes(auth_issuer.jwks(auth_issuer.RSA))
        await renewed(here)
        assert (await status(old), await status(new)) == (401, 200)


@pytest.mark.parametrize(
    ("bent", "says"),
    [
        ({"key_file": "/nowhere/key.pem"}, "with key_file '/nowhere/key.pem' cannot be used"),
        ({"client_ca_file": "/nowhere/ca.pem"}, "client_ca_file '/nowhere/ca.pem' cannot be used"),
    ],
)
async def test_files_that_are_not_there_at_start_are_named(tmp_path: Path, bent: dict[str, str], says: str) -> None:
    files = Authority().write(tmp_path)
    tls = {"cert_file": files["cert_file"], "key_file": files["key_file"], **bent}
    async with MockControlPlane() as plane:
        with pytest.raises(ConfigError, match=says):
            async with house(listener(tls=tls), plane=plane):
                pass


SECRET = "an-admin-token-of-some-length"


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": aiohttp.encode_basic_auth(name, password)}


@pytest.mark.usefixtures("bound")
async def test_with_an_admin_token_only_health_is_open(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(SECRET + "\n")
    async with house(admin={"address": "127.0.0.1:0", "token": {"file": str(path)}}) as here:
        base = f"http://{here.gateway.admin}"

        async def status(page: str, **more: Any) -> int:
            async with here.http.get(f"{base}/{page}", **more) as response:
                if response.status == 401:
                    assert response.headers["WWW-Authenticate"].startswith("Basic ")
                return response.status

        assert await status("healthz") == 200
        assert await status("readyz") == 200
        for page in ("metrics", "config_dump", "problems", "", "ui/page.js", "tools", "events"):
            assert await status(page) == 401
            assert await status(page, headers={"Authorization": "Bearer wrong"}) == 401
        assert await status("metrics", headers={"Authorization": f"Bearer {SECRET}"}) == 200
        assert await status("metrics", headers=basic("anybody", SECRET)) == 200
        assert await status("metrics", headers=basic(SECRET, "")) == 401
        assert await status("metrics", headers={"Authorization": "Basic %%%"}) == 401


async def test_an_admin_token_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("\n")
    with pytest.raises(ConfigError, match=r"admin\.token is shorter than 16 bytes"):
        async with house(admin={"address": "127.0.0.1:0", "token": {"file": str(path)}}):
            pass
