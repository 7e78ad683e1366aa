"""PUT, DELETE and the two pages, with a stream watching what they do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from plain_client import TOOL, Client

from control_plane_example import documents, http
from control_plane_example.http import HttpApi
from control_plane_example.server import Settings, XdsServer
from control_plane_example.snapshot import Held, Key, Origin

Dial = Callable[..., Awaitable[Client]]
A = "s/c/n.a/b"


def tool(name: str = A, description: str = "d", **metadata: str) -> dict[str, Any]:
    return {
        "apiVersion": "ctl.arion.io/v1alpha1",
        "kind": "McpTool",
        "metadata": {"name": name, **metadata},
        "spec": {"description": description},
    }


class Plane:
    """Both addresses of a running control plane, and a session to talk HTTP with."""

    def __init__(self, server: XdsServer, session: aiohttp.ClientSession) -> None:
        self.server, self.session = server, session

    async def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = body if isinstance(body, str | bytes | None) else json.dumps(body)
        async with self.session.request(method, path, data=data) as response:
            assert response.content_type == "application/json"
            return response.status, await response.json()


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    server = XdsServer(Settings(clock=lambda: 1_700_000_000.5))
    api = HttpApi(server, lambda: {"folder": None, "file_faults": {}})
    server.publish_fleet("arion")
    server.open()
    await server.start("127.0.0.1:0")
    address = await api.start("127.0.0.1:0")
    async with aiohttp.ClientSession(f"http://{address}") as session:
        yield Plane(server, session)
    await api.stop()
    await server.stop()


async def test_what_is_put_reaches_streams_and_what_is_deleted_leaves_them(plane: Plane, dial: Dial) -> None:
    client = await dial(plane.server.address)
    await client.ask(TOOL, "*")
    assert await client.reads() == []
    status, put = await plane.call("PUT", "/resources", tool())
    assert status == 200
    assert put == {"kind": "McpTool", "name": A, "fleet": "arion", "version": put["version"]}
    assert await client.reads() == [f"{A}@{put['version']}"]
    assert await plane.call("GET", "/resources") == (200, [{**put, "origin": "put"}])
    assert await plane.call("PUT", "/resources", tool()) == (200, put)
    path = f"/resources/McpTool/{quote(A, safe='')}"
    assert await plane.call("DELETE", path) == (200, {"kind": "McpTool", "name": A, "fleet": "arion"})
    assert await client.reads() == [f"-{A}"]
    assert (await plane.call("DELETE", path))[0] == 404
    assert await plane.call("GET", "/resources") == (200, [])


async def test_yaml_and_lists_may_be_put_too(plane: Plane) -> None:
    stream = f"---\n{json.dumps(tool('s/c/n.x'))}\n---\n{json.dumps(tool('s/c/n.y', fleet='edge'))}\n"
    status, put = await plane.call("PUT", "/resources", stream)
    assert (status, [each["name"] for each in put]) == (200, ["s/c/n.x", "s/c/n.y"])
    assert (await plane.call("PUT", "/resources", [tool("s/c/n.z")]))[1][0]["name"] == "s/c/n.z"
    assert len((await plane.call("GET", "/resources"))[1]) == 3
    (edge,) = (await plane.call("GET", "/resources?fleet=edge"))[1]
    assert edge["name"] == "s/c/n.y"
    assert (await plane.call("DELETE", "/resources/McpTool/s/c/n.y"))[0] == 404
    assert (await plane.call("DELETE", "/resources/McpTool/s/c/n.y?fleet=edge"))[0] == 200


async def test_a_list_with_one_fault_changes_nothing(plane: Plane) -> None:
    bad = {**tool("s/c/n.y"), "spec": {"nmae": 1}}
    status, fault = await plane.call("PUT", "/resources", [tool("s/c/n.x"), bad])
    assert status == 400
    assert fault["error"].startswith("document 2: McpTool s/c/n.y: spec is not a Tool")
    assert await plane.call("GET", "/resources") == (200, [])


async def test_a_file_wins(plane: Plane) -> None:
    key = Key("arion", documents.TYPE_URLS["McpTool"], A)
    plane.server.publish([(key, Held("1", b""))], origin=Origin.FILE)
    status, fault = await plane.call("PUT", "/resources", tool())
    assert (status, fault["error"]) == (
        409, f"McpTool {A} (fleet arion) is published by a file: change that file",
    )  # fmt: skip
    assert (await plane.call("DELETE", f"/resources/McpTool/{A}"))[0] == 409


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "sentence"),
    [
        ("PUT", "/resources", "", 400, "no document"),
        ("PUT", "/resources", b"\xff", 400, "not UTF-8"),
        ("PUT", "/resources", "{", 400, "not valid JSON"),
        ("PUT", "/resources", {"kind": "Nope"}, 400, "apiVersion must be"),
        ("DELETE", "/resources/Tool/s/c/x", None, 404, "kind must be one of"),
        ("POST", "/resources", "", 405, "Method Not Allowed"),
        ("GET", "/nothing", None, 404, "Not Found"),
    ],
)
async def test_faults_are_sentences_in_json(
    plane: Plane, method: str, path: str, body: object, status: int, sentence: str
) -> None:
    answered, fault = await plane.call(method, path, body)
    assert answered == status
    assert sentence in fault["error"]


async def test_a_body_that_is_too_large_is_refused_with_the_limit(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_BODY_BYTES", 1000)
    api = HttpApi(plane.server, dict)
    address = await api.start("127.0.0.1:0")
    async with plane.session.put(f"http://{address}/resources", data=b"x" * 2000) as response:
        assert response.status == 413
        assert "larger than 1000 bytes" in (await response.json())["error"]
    await api.stop()


async def test_the_status_page_tells_who_is_connected_and_what_they_answered(plane: Plane, dial: Dial) -> None:
    version = (await plane.call("PUT", "/resources", tool()))[1]["version"]
    client = await dial(plane.server.address)
    await client.ask(TOOL, "*", scopes=["s/c"])
    response = await client.read()
    await client.ask(TOOL, nonce=response.nonce, error="no backend")
    await client.silent(None)
    status, page = await plane.call("GET", "/status")
    assert status == 200
    (stream,) = page.pop("streams")
    assert page == {
        "address": plane.server.address, "answering": True, "fleets": {"arion": {"McpTool": 1}},
        "folder": None, "file_faults": {},
    }  # fmt: skip
    assert stream.pop("peer").startswith("ipv4:127.0.0.1:")
    kind = stream.pop("types")["McpTool"]
    assert stream == {
        "stream": 1, "node": "client-1", "cluster": "arion", "fleet": "arion", "scopes": ["s/c"],
        "connected_since": "2023-11-14T22:13:20.500+00:00",
    }  # fmt: skip
    assert kind["sent"] == {A: version}
    assert kind["nacked"] == 1
    assert kind["nacks"] == [{"nonce": response.nonce, "reason": "no backend", "names": [A]}]
