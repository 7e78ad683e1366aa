"""The client against a real server that the test scripts."""

import asyncio
import itertools
import logging

import grpc
import pytest
from envoy.service.discovery.v3 import discovery_pb2
from xds_peer import Server, response
from xds_side import Ear, Handler, Start, ready

from arion_tds.model.delivery import CATALOG, ResourceId

TOOL, SOURCE, SERVER, TOOLKIT = CATALOG
A, B = "s/m/x.a", "s/m/x.b"


async def test_a_stream_begins_with_four_requests_and_answers_what_it_gets(
    server: Server, start: Start, handler: Handler
) -> None:
    client = start()
    stream = await server.greeted()
    assert set(stream.first) == set(CATALOG)
    assert [request.HasField("node") for request in stream.first.values()] == [True, False, False, False]
    assert stream.first[TOOL].node.metadata["scopes"] == ["s/m"]
    await stream.says(TOOL, "n1", {A: "1"})
    answer = await stream.hears()
    assert (answer.type_url, answer.response_nonce, answer.HasField("error_detail")) == (TOOL.value, "n1", False)
    assert handler.content[TOOL] == {A: "1"}
    assert client.status().types[TOOL].acks == 1


async def test_a_nack_names_the_bad_and_the_good_is_served(server: Server, start: Start, handler: Handler) -> None:
    handler.refuse[B] = "no backend"
    start()
    stream = await server.greeted()
    await stream.says(TOOL, "n1", {A: "1", B: "1", "malformed": "1"})
    answer = await stream.hears()
    assert answer.response_nonce == "n1"
    assert answer.error_detail.code == 3
    assert answer.error_detail.message.startswith("2 of 3 resources rejected: malformed: malformed resource ID")
    assert answer.error_detail.message.endswith("; s/m/x.b: no backend")
    assert handler.content[TOOL] == {A: "1"}
    await stream.says(TOOL, "n2", {B: "2"}, removed=[A])


async def test_the_next_stream_says_names_and_versions_in_use_again(
    server: Server, start: Start, handler: Handler
) -> None:
    handler.refuse[B] = "no backend"
    start()
    stream = await server.greeted()
    await stream.says(TOOL, "n1", {A: "1", B: "1"})
    await stream.hears()
    await stream.says(TOOL, "n2", {A: "2"})
    await stream.hears()
    stream.ends(grpc.StatusCode.UNAVAILABLE, "restart")
    again = await server.greeted()
    assert list(again.first[TOOL].resource_names_subscribe) == ["*"]
    assert dict(again.first[TOOL].initial_resource_versions) == {A: "2"}
    assert {request.response_nonce for request in again.first.values()} == {""}
    assert [request.HasField("node") for request in again.first.values()] == [True, False, False, False]


@pytest.mark.parametrize("code", list(grpc.StatusCode), ids=lambda code: code.name)
async def test_whatever_status_ends_a_stream_another_one_follows(
    server: Server, start: Start, code: grpc.StatusCode
) -> None:
    client = start()
    (await server.greeted()).ends(code, "so be it")
    stream = await server.greeted()
    await stream.answers_all()
    await ready(client)
    assert code.name in client.status().last_error


async def test_a_server_that_accepts_and_ends_at_once_is_not_asked_faster_and_faster(
    server: Server, start: Start
) -> None:
    start(backoff_base=0.05, backoff_max=0.2)
    at = []
    for _ in range(5):
        stream = await server.accepts()
        at.append(stream.at)
        stream.ends(grpc.StatusCode.INTERNAL, "reset")
    assert min(later - earlier for earlier, later in itertools.pairwise(at)) > 0.04


async def test_streams_keep_their_distance_even_when_each_brought_a_response(server: Server, start: Start) -> None:
    start(backoff_base=0.05, backoff_max=0.2)
    at = []
    for _ in range(4):
        stream = await server.greeted()
        at.append(stream.at)
        await stream.answers_all()
        stream.ends()
    assert min(later - earlier for earlier, later in itertools.pairwise(at)) > 0.04


async def test_an_unreachable_server_is_tried_again_and_content_keeps_its_versions(
    start: Start, handler: Handler
) -> None:
    ear = Ear()
    async with Server() as one:
        client = start(address=one.address, observer=ear)
        stream = await one.greeted()
        await stream.says(TOOL, "n1", {A: "1"})
        await stream.hears()
        assert client.status().connected
    await ear.until("disconnected", 4)
    status = client.status()
    assert not status.connected
    assert status.last_error.startswith("UNAVAILABLE")
    assert status.last_response_at is not None
    assert status.types[TOOL].versions == 1
    assert handler.content[TOOL] == {A: "1"}


async def test_a_slow_handler_holds_back_neither_other_types_nor_later_responses(
    server: Server, start: Start, handler: Handler
) -> None:
    handler.hold["s/m/slow"] = asyncio.Event()
    start()
    stream = await server.greeted()
    await stream.says(SERVER, "slow", {"s/m/slow": "1"})
    await stream.says(SERVER, "quick", {"s/m/quick": "1"})
    await stream.says(TOOL, "tool", {A: "1"})
    assert (await stream.hears()).response_nonce == "tool"
    await handler.until(lambda: handler.content[SERVER] == {"s/m/quick": "1"})
    handler.hold["s/m/slow"].set()
    assert [(await stream.hears()).response_nonce for _ in range(2)] == ["slow", "quick"]


async def test_reading_stops_at_max_unanswered_and_goes_on_when_there_is_room(
    server: Server, start: Start, handler: Handler
) -> None:
    gate = asyncio.Event()
    handler.hold = {f"s/m/{number}": gate for number in range(40)}
    start(max_unanswered=4)
    stream = await server.greeted()
    for number in range(40):
        await stream.says(SERVER, f"n{number}", {f"s/m/{number}": "1"})
    await handler.until(lambda: handler.running == 4)
    gate.set()
    assert [(await stream.hears()).response_nonce for _ in range(40)] == [f"n{number}" for number in range(40)]
    assert handler.most_running == 4
    assert [str(delivery.updates[0].id) for delivery in handler.deliveries] == [f"s/m/{number}" for number in range(40)]


async def test_of_a_thousand_fast_updates_the_last_is_applied(server: Server, start: Start, handler: Handler) -> None:
    start()
    stream = await server.greeted()

    async def talk() -> None:
        for number in range(1000):
            await stream.says(TOOL, str(number), {A: str(number)})

    async with asyncio.TaskGroup() as group:
        group.create_task(talk())
        for number in range(1000):
            assert (await stream.hears()).response_nonce == str(number)
    assert handler.content[TOOL] == {A: "999"}


async def test_a_handler_call_outlives_its_stream_and_is_not_answered_on_the_next(
    server: Server, start: Start, handler: Handler
) -> None:
    handler.hold["s/m/slow"] = asyncio.Event()
    client = start()
    stream = await server.greeted()
    await stream.says(SERVER, "old", {"s/m/slow": "1"})
    await handler.until(lambda: handler.running == 1)
    stream.ends(grpc.StatusCode.UNAVAILABLE, "restart")
    second = await server.greeted()
    assert dict(second.first[SERVER].initial_resource_versions) == {"s/m/slow": "unsettled"}
    handler.hold["s/m/slow"].set()
    await handler.until(lambda: handler.content[SERVER] == {"s/m/slow": "1"} and handler.running == 0)
    await second.says(SERVER, "new", {"s/m/quick": "1"})
    assert (await second.hears()).response_nonce == "new"
    second.ends()
    third = await server.greeted()
    assert dict(third.first[SERVER].initial_resource_versions) == {"s/m/slow": "1", "s/m/quick": "1"}
    assert client.status().types[SERVER].acks == 1


async def test_a_handler_that_raises_is_a_nack_and_the_stream_lives(
    server: Server, start: Start, handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    handler.broken = True
    client = start()
    stream = await server.greeted()
    with caplog.at_level(logging.ERROR, "arion_tds.xds"):
        for nonce in ("n1", "n2"):
            await stream.says(TOOL, nonce, {A: "1"})
            answer = await stream.hears()
            assert answer.response_nonce == nonce
            assert answer.error_detail.message.startswith("internal error")
    assert len(caplog.records) == 1
    handler.broken = False
    await stream.says(TOOL, "n3", {A: "1"})
    assert not (await stream.hears()).HasField("error_detail")
    assert client.status().attempts == 1


async def test_a_type_that_was_not_asked_for_gets_no_answer_and_the_stream_lives(server: Server, start: Start) -> None:
    client = start()
    stream = await server.greeted()
    await stream.sends(discovery_pb2.DeltaDiscoveryResponse(type_url="type.googleapis.com/other", nonce="x"))
    await stream.says(TOOL, "n1", {A: "1"})
    assert (await stream.hears()).response_nonce == "n1"
    assert client.status().dropped == 1


async def test_bytes_that_are_no_response_end_the_stream(server: Server, start: Start) -> None:
    client = start()
    await (await server.greeted()).sends(b"\xff\xff\xff")
    await server.greeted()
    assert "3 bytes is not a DeltaDiscoveryResponse" in client.status().last_error


# Scopes


async def test_a_new_scope_is_declared_on_a_new_stream_in_wildcard_mode(
    server: Server, start: Start, handler: Handler
) -> None:
    client = start()
    stream = await server.greeted()
    await stream.says(TOOL, "n1", {A: "1", "t/m/x.a": "1"})
    await stream.hears()
    assert handler.content[TOOL] == {A: "1"}
    client.set_scopes(["s/m", "t/m"])
    again = await server.greeted()
    assert again.first[TOOL].node.metadata["scopes"] == ["s/m", "t/m"]
    assert dict(again.first[TOOL].initial_resource_versions) == {A: "1"}
    assert client.status().last_error == ""


async def test_scopes_are_subscribed_on_the_live_stream_in_scope_mode(server: Server, start: Start) -> None:
    client = start(subscription="scope")
    stream = await server.greeted()
    assert list(stream.first[TOOL].resource_names_subscribe) == ["s/m/*"]
    client.set_scopes(["t/m"])
    for _ in CATALOG:
        request = await stream.hears()
        assert list(request.resource_names_subscribe) == ["t/m/*"]
        assert list(request.resource_names_unsubscribe) == ["s/m/*"]
        assert not request.HasField("node")
    assert client.status().attempts == 1


async def test_without_a_scope_there_is_nothing_to_wait_for_until_one_comes(server: Server, start: Start) -> None:
    client = start((), subscription="scope")
    await ready(client)
    assert client.status().attempts == 0
    client.set_scopes(["s/m"])
    assert list((await server.greeted()).first[TOOL].resource_names_subscribe) == ["s/m/*"]


# Readiness


async def test_ready_means_that_the_first_response_of_every_type_was_applied(
    server: Server, start: Start, handler: Handler
) -> None:
    handler.hold["s/m/slow"] = asyncio.Event()
    client = start()
    stream = await server.greeted()
    for kind in (TOOL, SOURCE, TOOLKIT):
        await stream.says(kind, "n1")
        await stream.hears()
    await stream.says(SERVER, "n1", {"s/m/slow": "1"})
    await handler.until(lambda: handler.running == 1)
    assert not client.is_ready
    handler.hold["s/m/slow"].set()
    await ready(client)
    assert handler.content[SERVER] == {"s/m/slow": "1"}


async def test_a_silent_server_does_not_hold_ready_back_for_ever(server: Server, start: Start) -> None:
    client = start(initial_fetch_timeout=0.05)
    stream = await server.greeted()
    await stream.says(TOOL, "n1", {A: "1"})
    await ready(client)
    assert not client.status().types[SOURCE].answered
    await stream.says(SOURCE, "n2", {"s/m/x": "1"})


async def test_the_initial_fetch_has_no_time_while_there_is_no_stream(start: Start) -> None:
    async with Server() as gone:
        address = gone.address
    ear = Ear()
    client = start(address=address, initial_fetch_timeout=0.001, observer=ear)
    await ear.until("disconnected", 4)
    assert not client.is_ready
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await ready(client)


# Telling


async def test_a_problem_that_repeats_is_one_line(
    server: Server, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "arion_tds.xds"):
        start()
        for _ in range(4):
            (await server.greeted()).ends(grpc.StatusCode.UNAVAILABLE, "fleet is not published")
        await server.greeted()
    assert [record.message.split("; ")[0] for record in caplog.records] == [
        f"control plane {server.address}: UNAVAILABLE: fleet is not published"
    ]


async def test_a_nack_that_repeats_is_one_line(
    server: Server, start: Start, handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    handler.refuse[A] = "no backend"
    start()
    stream = await server.greeted()
    with caplog.at_level(logging.WARNING, "arion_tds.xds"):
        for number in range(5):
            await stream.says(TOOL, str(number), {A: "1"})
            await stream.hears()
    assert [record.message for record in caplog.records] == [
        "NACK Tool: 1 of 1 resources rejected: s/m/x.a: no backend"
    ]


async def test_an_observer_hears_what_happens(server: Server, start: Start) -> None:
    ear = Ear()
    start(observer=ear)
    stream = await server.greeted()
    await stream.says(TOOL, "n1", {A: "1"})
    await stream.hears()
    await stream.sends(discovery_pb2.DeltaDiscoveryResponse(type_url="other", nonce="x"))
    await stream.says(TOOL, "n2", {"malformed": "1"})
    await stream.hears()
    stream.ends(grpc.StatusCode.ABORTED, "bye")
    await server.accepts()
    assert ear.heard[:7] == [
        ("connected",),
        ("response", TOOL, True),
        ("answered", TOOL, True),
        ("dropped", "other"),
        ("response", TOOL, True),
        ("answered", TOOL, False),
        ("disconnected", "ABORTED: bye"),
    ]


async def test_a_resource_error_is_told_and_acked(
    server: Server, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    start()
    stream = await server.greeted()
    message = response(TOOL, "n1", {})
    error = message.resource_errors.add()
    error.resource_name.name, error.error_detail.code, error.error_detail.message = A, 14, "try later"
    with caplog.at_level(logging.WARNING, "arion_tds.xds"):
        await stream.sends(message)
        assert not (await stream.hears()).HasField("error_detail")
    assert "Tool s/m/x.a cannot be had, what is in use stays: code 14, try later" in caplog.text


async def test_a_claim_after_a_rejection_is_in_the_next_map(server: Server, start: Start, handler: Handler) -> None:
    handler.refuse[A] = "namespace is owned"
    client = start()
    stream = await server.greeted()
    await stream.says(TOOL, "n1", {A: "1"})
    await stream.hears()
    client.claim(TOOL, ResourceId("s/m", "x.a"), "1")
    stream.ends()
    assert dict((await server.greeted()).first[TOOL].initial_resource_versions) == {A: "1"}


async def test_fifty_broken_streams_leave_no_task_behind(server: Server, start: Start) -> None:
    start(backoff_base=0.001, backoff_max=0.001)
    (await server.greeted()).ends()
    stream = await server.greeted()
    before = len(asyncio.all_tasks())
    for _ in range(50):
        stream.ends()
        stream = await server.greeted()
    assert len(asyncio.all_tasks()) <= before
