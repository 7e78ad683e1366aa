"""The control plane over a real socket, driven by a client with another encoder."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import pytest
from plain_client import PREFIX, TOOL, Client

from arion_tds.pb import mcp_gateway_pb2 as pb
from control_plane_example.mock import MockControlPlane
from control_plane_example.server import Settings, XdsServer
from control_plane_example.wire import DeltaDiscoveryResponse, ProtoAny, Resource

Dial = Callable[..., Awaitable[Client]]
A, B = "s/c/n.a", "s/c/n.b"


@pytest.fixture
async def cp() -> AsyncIterator[MockControlPlane]:
    async with MockControlPlane() as running:
        yield running


@pytest.fixture
async def client(cp: MockControlPlane, dial: Dial) -> Client:
    return await dial(cp.address)


async def test_a_put_tool_arrives_with_its_bytes_and_the_ack_is_seen(cp: MockControlPlane, client: Client) -> None:
    await client.ask(TOOL, "*")
    assert await client.reads() == []
    version = await cp.put("McpTool", A, {"namespace": "n", "name": "a", "description": "d"})
    response = await client.read()
    assert [(each.name, each.version) for each in response.resources] == [(A, version)]
    tool = pb.Tool()
    assert response.resources[0].resource.Unpack(tool)
    assert tool == pb.Tool(namespace="n", name="a", description="d")
    await client.ask(TOOL, nonce=response.nonce)
    await cp.acked("McpTool", A, version)
    assert cp.remove("McpTool", A)
    assert await client.reads() == [f"-{A}"]
    await cp.acked_removal("McpTool", A)


async def test_a_nack_is_reported_with_its_reason_and_names_and_nothing_is_resent(
    cp: MockControlPlane, client: Client
) -> None:
    await cp.put("McpTool", A, {"description": "bad"})
    await cp.put("McpTool", B, {"description": "good"})
    await client.ask(TOOL, "*")
    response = await client.read()
    await client.ask(TOOL, nonce=response.nonce, error=f"{A}: no backend")
    nack = await cp.nacked("McpTool", A)
    assert (nack.reason, nack.names, nack.nonce) == (f"{A}: no backend", (A,), response.nonce)
    await client.silent(cp)
    version = await cp.put("McpTool", A, {"description": "better"})
    assert await client.reads() == [f"{A}@{version}"]
    await cp.acked("McpTool", A, version)  # and with it all that the client said before
    (stream,) = cp.status()["streams"]
    kind = stream["types"]["McpTool"]
    assert stream["node"] == "client-1"
    assert kind["nacks"] == [{"nonce": response.nonce, "reason": f"{A}: no backend", "names": [A]}]
    assert kind["subscribed"] == ["*"]
    assert set(kind["sent"]) == {A, B}


async def test_each_nack_is_handed_out_once(cp: MockControlPlane, client: Client) -> None:
    await client.ask(TOOL, "*")
    await client.reads()
    for reason in ("first", "second"):
        await cp.put("McpTool", A, {"description": reason})
        response = await client.read()
        await client.ask(TOOL, nonce=response.nonce, error=reason)
    assert (await cp.nacked("McpTool")).reason == "first"
    assert (await cp.nacked("McpTool", A)).reason == "second"
    with pytest.raises(TimeoutError, match=r"waited 0\.05 s for a NACK of McpTool"):
        await cp.nacked("McpTool", timeout=0.05)


async def test_while_held_nothing_is_sent_and_changes_are_merged(cp: MockControlPlane, client: Client) -> None:
    cp.hold()
    await client.ask(TOOL, "*")
    await cp.connected(1)
    for number in range(50):
        await cp.put("McpTool", A, {"description": str(number)})
    cp.release()
    assert await client.reads() == [f"{A}@{cp.version('McpTool', A)}"]


async def test_a_reconnect_is_told_what_differs_and_what_went(cp: MockControlPlane, dial: Dial) -> None:
    version = await cp.put("McpTool", A, {"description": "d"})
    client = await dial(cp.address)
    await client.ask(TOOL, "*", have={A: version, "s/c/n.gone": "7"})
    assert await client.reads() == ["-s/c/n.gone"]


async def test_a_restart_keeps_port_and_content_and_answers_an_equal_client_with_nothing(
    cp: MockControlPlane, dial: Dial
) -> None:
    version = await cp.put("McpTool", A, {"description": "d"})
    first = await dial(cp.address)
    await first.ask(TOOL, "*")
    assert await first.reads() == [f"{A}@{version}"]
    address = cp.address
    await cp.restart()
    assert cp.address == address
    assert (await first.status())[0] is not grpc.StatusCode.OK
    second = await dial(cp.address)
    await second.ask(TOOL, "*", have={A: version})
    assert await second.reads() == []
    await cp.restart(keep=False)
    third = await dial(cp.address)
    await third.ask(TOOL, "*", have={A: version})
    assert await third.reads() == [f"-{A}"]


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAUTHENTICATED]
)
async def test_a_cut_ends_streams_with_its_status(cp: MockControlPlane, client: Client, code: grpc.StatusCode) -> None:
    await client.ask(TOOL, "*")
    await client.reads()
    assert cp.cut(code, "enough") == 1
    assert await client.status() == (code, "enough")
    await cp.connected(0)


async def test_a_cut_ends_a_stream_whose_first_response_is_still_being_written(
    cp: MockControlPlane, client: Client
) -> None:
    cp.put_raw(TOOL, A, "1", bytes(8 << 20))  # far more than a client that does not read has room for
    await client.ask(TOOL, "*")
    await cp.connected(1)
    async with asyncio.timeout(10):
        while not cp.status()["streams"][0]["types"].get("McpTool", {}).get("unanswered"):  # noqa: ASYNC110 - nobody is told of a write that began
            await asyncio.sleep(0)
    assert cp.cut(details="enough") == 1
    await cp.connected(0)
    assert (await client.read()).resources[0].version == "1"
    assert await client.status() == (grpc.StatusCode.UNAVAILABLE, "enough")


async def test_scripted_responses_are_sent_as_they_are_and_their_answers_are_seen(
    cp: MockControlPlane, client: Client
) -> None:
    await client.ask(TOOL, "*")
    await client.reads()
    twice = Resource(name=A, version="1", resource=ProtoAny(type_url="type/wrong", value=b"\xff"))
    assert await cp.send_raw(DeltaDiscoveryResponse(type_url=TOOL, resources=[twice, twice])) == 1
    response = await client.read()
    assert [each.name for each in response.resources] == [A, A]
    assert response.resources[0].resource.type_url == "type/wrong"
    await client.ask(TOOL, nonce=response.nonce, error="duplicate name")
    assert (await cp.nacked("McpTool", A)).nonce == response.nonce
    await cp.send_raw(DeltaDiscoveryResponse(type_url=TOOL), nonce="")
    assert (await client.read()).nonce == ""
    await cp.send_raw(DeltaDiscoveryResponse(type_url="type/nobody-asked-for", nonce="mine"))
    assert (await client.read()).nonce == "mine"
    await client.silent(cp)


async def test_raw_content_keeps_its_version_even_an_empty_one(cp: MockControlPlane, client: Client) -> None:
    cp.put_raw(TOOL, A, "", b"\x0a\x01n")
    await client.ask(TOOL, A)
    response = await client.read()
    assert (response.resources[0].version, response.resources[0].resource.value) == ("", b"\x0a\x01n")
    cp.put_raw(TOOL, A, "", b"\x0a\x01m")
    assert (await client.read()).resources[0].resource.value == b"\x0a\x01m"


async def test_scopes_declared_by_the_node_narrow_the_wildcard(cp: MockControlPlane, dial: Dial) -> None:
    await cp.put("McpTool", A, {"description": "d"})
    await cp.put("McpTool", "other/c/n.a", {"description": "d"})
    client = await dial(cp.address)
    await client.ask(TOOL, "*", scopes=["other/c"])
    response = await client.read()
    assert [each.name for each in response.resources] == ["other/c/n.a"]


async def test_fleets_are_apart_and_an_unpublished_one_waits_for_its_first_resource(
    cp: MockControlPlane, dial: Dial
) -> None:
    await cp.put("McpTool", A, {"description": "d"})
    client = await dial(cp.address)
    await client.ask(TOOL, "*", cluster="edge")
    await cp.connected(1)
    version = await cp.put("McpTool", B, {"description": "d"}, fleet="edge")
    assert await client.reads() == [f"{B}@{version}"]


async def test_an_unpublished_fleet_may_be_unavailable(dial: Dial) -> None:
    server = XdsServer(Settings(clock=lambda: 0.0, unknown_fleet="unavailable"))
    address = await server.start("127.0.0.1:0")
    try:
        client = await dial(address)
        await client.ask(TOOL, "*", cluster="edge")
        await server.connected(1)
        server.open()
        assert await client.status() == (grpc.StatusCode.UNAVAILABLE, "fleet edge is not published")
    finally:
        await server.stop()


async def test_nothing_is_answered_before_the_content_is_loaded(dial: Dial) -> None:
    """contour#6250, kgateway#14703: a server that accepts before it has loaded looks like one that lost everything."""
    async with MockControlPlane() as loading:
        loading.hold()
        client = await dial(loading.address)
        await client.ask(TOOL, "*", have={A: "1"})
        await loading.connected(1)
        version = await loading.put("McpTool", A, {"description": "d"})
        loading.release()
        assert await client.reads() == [f"{A}@{version}"]


async def test_more_than_four_mebibytes_arrive_in_pieces_of_about_one(cp: MockControlPlane, client: Client) -> None:
    """envoy#36169, grpc-go#5790: one message over the default limit ends every stream."""
    cp.hold()
    for number in range(60):
        await cp.put("McpTool", f"s/c/n.{number}", {"description": "x" * 100_000})
    cp.release()
    await client.ask(TOOL, "*")
    names: set[str] = set()
    while len(names) < 60:
        response = await client.read()
        assert response.ByteSize() < 1_200_000
        names.update(each.name for each in response.resources)
        await client.ask(TOOL, nonce=response.nonce)


async def test_a_reconnect_with_60000_names_is_taken(cp: MockControlPlane, client: Client) -> None:
    """gateway#9564: the request is over 4 MiB too."""
    have = {f"s/c/n.tool_{number:05}": f"{number:064}" for number in range(60_000)}
    await client.ask(TOOL, "*", have=have)
    removed: set[str] = set()
    while len(removed) < 60_000:
        response = await client.read()
        removed.update(response.removed_resources)
        await client.ask(TOOL, nonce=response.nonce)
    assert removed == set(have)


async def test_a_slow_reader_gets_the_newest_state_and_no_backlog(cp: MockControlPlane, client: Client) -> None:
    await client.ask(TOOL, "*")
    await client.reads()
    for number in range(120):
        await cp.put("McpTool", A, {"description": f"{number} " + "x" * 200_000})
        await asyncio.sleep(0)
    last = cp.version("McpTool", A)
    count, version = 0, ""
    while version != last:
        response = await client.read()
        count, version = count + 1, response.resources[0].version
        await client.ask(TOOL, nonce=response.nonce)
    assert count < 40
    await client.silent(cp)


async def test_closed_streams_leave_no_task_behind(cp: MockControlPlane, dial: Dial) -> None:
    """go-control-plane#913."""
    before = len(asyncio.all_tasks())
    for _ in range(50):
        client = await dial(cp.address)
        await client.ask(TOOL, "*")
        await client.reads()
        await client.close()
    await cp.connected(0)
    gc.collect()
    assert len(asyncio.all_tasks()) <= before + 5


async def test_a_half_closed_stream_ends_well(cp: MockControlPlane, client: Client) -> None:
    await client.ask(TOOL, "*")
    await client.reads()
    await client.call.done_writing()
    assert (await client.status())[0] is grpc.StatusCode.OK


async def test_a_request_without_type_or_without_sense_ends_its_stream_only(cp: MockControlPlane, dial: Dial) -> None:
    good, bad = await dial(cp.address), await dial(cp.address)
    await good.ask(TOOL, "*")
    await good.reads()
    await bad.ask("", "*")
    code, details = await bad.status()
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "type_url" in details
    await good.silent(cp)


async def test_frequent_pings_are_permitted(cp: MockControlPlane, dial: Dial) -> None:
    """A default server answers the third early ping with GOAWAY too_many_pings."""
    client = await dial(
        cp.address,
        [
            ("grpc.keepalive_time_ms", 1000),
            ("grpc.keepalive_timeout_ms", 1000),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.keepalive_permit_without_calls", 1),
        ],
    )
    await client.ask(TOOL, "*")
    await client.reads()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(4):
            await client.call.read()


async def test_all_four_types_share_a_stream(cp: MockControlPlane, client: Client) -> None:
    for name in ("Toolkit", "Tool", "DynamicMcpServer", "OpenApiToolSource"):
        await client.ask(PREFIX + name, "*")
        assert await client.reads() == []
    await cp.put("McpToolkit", "s/c/kit", {"name": "kit"})
    assert len(await client.reads()) == 1
    assert {request.type_url for request in cp.requests("McpToolkit")} == {PREFIX + "Toolkit"}


async def test_requests_are_logged_in_order(cp: MockControlPlane, client: Client) -> None:
    await client.ask(TOOL, "*")
    await client.reads()
    await client.silent(cp)
    first, second, *_ = cp.requests("McpTool")
    assert first.node is not None
    assert first.resource_names_subscribe == ["*"]
    assert second.node is None
    assert second.response_nonce != ""


async def test_a_wait_that_fails_says_what_came_instead(cp: MockControlPlane, client: Client) -> None:
    await client.ask(TOOL, "*")
    await client.reads()
    with pytest.raises(
        TimeoutError, match=r"ACK of McpTool s/c/n\.a version None; the last answers were \['McpTool 1-1 ACK'\]"
    ):
        await cp.acked("McpTool", A, timeout=0.05)
    with pytest.raises(TimeoutError, match=r"waited 0\.05 s for 3 streams: there are 1"):
        await cp.connected(3, timeout=0.05)
