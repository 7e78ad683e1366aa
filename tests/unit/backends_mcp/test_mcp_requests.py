"""What is said to a server about a call: all of the caller's, nothing of its own hop."""

from __future__ import annotations

import json
from typing import Any

from mcp.shared import inbound

from arion_tds.backends.mcp import requests
from arion_tds.backends.mcp.era import Era, Peer
from arion_tds.model.context import CallContext

MODERN = Peer(Era.MODERN, "2026-07-28", 1)
LEGACY = Peer(Era.LEGACY, "2025-11-25", 1, session="s-1")
META = "io.modelcontextprotocol/"
CALLERS_META = {
    META + "protocolVersion": "2099-01-01",
    META + "clientInfo": {"name": "caller"},
    META + "clientCapabilities": {"elicitation": {}, "extensions": {"x": {}}},
    META + "logLevel": "debug",
    "progressToken": "theirs",
    "com.example/trace": [1],
}


def context(*, modern: bool, **more: Any) -> CallContext:
    return CallContext(request_id="r", traceparent="t", modern=modern, **more)


def params(peer: Peer, given: CallContext, number: int = 9) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(requests.call_params(peer, b'"t"', b'{"a":1}', given, number))
    return made


def with_meta(*, modern: bool, **more: Any) -> CallContext:
    return context(modern=modern, params={"_meta": json.dumps(CALLERS_META).encode()}, **more)


def test_a_modern_callers_capabilities_reach_a_modern_server_unchanged() -> None:
    meta = params(MODERN, with_meta(modern=True, progress_token=b'"theirs"'))["_meta"]
    assert meta[META + "clientCapabilities"] == CALLERS_META[META + "clientCapabilities"]
    assert meta[META + "protocolVersion"] == "2026-07-28"
    assert meta[META + "clientInfo"]["name"] == "arion-tds"
    assert meta[META + "logLevel"] == "debug"
    assert meta["com.example/trace"] == [1]
    assert meta["progressToken"] == 9


def test_an_older_callers_reserved_keys_do_not_reach_a_modern_server() -> None:
    meta = params(MODERN, with_meta(modern=False))["_meta"]
    assert meta[META + "clientCapabilities"] == {}
    assert META + "logLevel" not in meta
    assert "progressToken" not in meta
    assert meta["com.example/trace"] == [1]


def test_modern_keys_do_not_leak_to_an_older_server() -> None:
    meta = params(LEGACY, with_meta(modern=True, progress_token=b"5"))["_meta"]
    assert meta == {"com.example/trace": [1], "progressToken": 9}
    assert "_meta" not in params(LEGACY, context(modern=False))


def test_an_input_response_goes_on_to_modern_servers_only() -> None:
    given = context(modern=True, params={"inputResponses": b'{"a":{}}', "requestState": b'"s"', "name": b'"evil"'})
    assert params(MODERN, given)["inputResponses"] == {"a": {}}
    assert params(MODERN, given)["requestState"] == "s"
    assert params(MODERN, given)["name"] == "t"
    assert set(params(LEGACY, given)) == {"name", "arguments"}


def test_meta_that_is_no_object_is_left_out() -> None:
    assert META + "protocolVersion" in params(MODERN, context(modern=True, params={"_meta": b"[1]"}))["_meta"]


def test_the_sdk_accepts_headers_and_envelope() -> None:
    base = requests.common([("x-key", "v")])
    sent = requests.for_peer(base, MODERN, "tools/call", "größe")
    body = {"method": "tools/call", "params": params(MODERN, context(modern=True)) | {"name": "größe"}}
    verdict = inbound.classify_inbound_request(body, headers={key.lower(): value for key, value in sent.items()})
    assert isinstance(verdict, inbound.InboundModernRoute)
    assert sent["x-key"] == "v"


def test_a_session_is_named_to_older_servers_and_methods_are_not() -> None:
    sent = requests.for_peer(requests.common([]), LEGACY, "tools/call", "t")
    assert sent["mcp-session-id"] == "s-1"
    assert sent["mcp-protocol-version"] == "2025-11-25"
    assert "mcp-method" not in sent
    assert "mcp-name" not in sent


def test_progress_is_relayed_with_the_callers_own_token() -> None:
    relayed = requests.relayed_progress(b'{"progressToken":9,"progress":0.50,"message":"m"}', 9, b'"theirs"')
    assert relayed is not None
    assert json.loads(relayed)["params"] == {"progressToken": "theirs", "progress": 0.5, "message": "m"}
    assert b"0.50" in relayed
    assert requests.relayed_progress(b'{"progressToken":8,"progress":1}', 9, b"1") is None
    assert requests.relayed_progress(b"[]", 9, b"1") is None
