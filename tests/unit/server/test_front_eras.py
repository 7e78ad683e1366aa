"""Which era a message belongs to, and the rules of 2026-07-28 against the SDK's own implementation of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from arion_tds.server import eras, jsonrpc
from arion_tds.server.eras import Refusal, Routing

META = {eras.VERSION_KEY: "2026-07-28", eras.CAPABILITIES_KEY: {}}


def request(method: str = "tools/list", **params: dict[str, Any]) -> jsonrpc.Request:
    found = jsonrpc.parse(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
    assert isinstance(found, jsonrpc.Request)
    return found


def judged(method: str, params: dict[str, Any], routing: Routing) -> Refusal | None:
    asked = request(method, **params)
    meta = jsonrpc.members(jsonrpc.member(asked.params, "_meta"))
    return eras.refusal(asked.method, asked.params, meta, routing)


@pytest.mark.parametrize(
    ("version", "method", "params", "modern"),
    [
        ("2026-07-28", "tools/list", {}, True),
        ("v999", "tools/list", {}, True),
        ("2025-11-25", "tools/list", {}, False),
        (None, "tools/list", {}, False),
        (None, "initialize", {"protocolVersion": "2026-07-28"}, False),
        (None, "server/discover", {}, True),
        (None, "subscriptions/listen", {}, True),
        (None, "tools/call", {"_meta": META}, True),
        ("2025-06-18", "tools/call", {"_meta": META}, True),
        (None, "tools/call", {"_meta": {"progressToken": 1}}, False),
        (None, "tools/call", {"_meta": {"note": eras.VERSION_KEY}}, False),
    ],
)
def test_the_era_follows_the_header_and_else_the_envelope(
    version: str | None, method: str, params: dict[str, Any], modern: bool
) -> None:
    assert eras.is_modern(version, method, request(method, **params).params) is modern


def test_a_complete_envelope_passes() -> None:
    assert judged("tools/list", {"_meta": META}, Routing("2026-07-28", "tools/list")) is None
    named = Routing("2026-07-28", "tools/call", "=?base64?w6k=?=")
    assert judged("tools/call", {"name": "é", "_meta": META}, named) is None


def test_an_unknown_revision_is_told_which_are_served() -> None:
    meta = {**META, eras.VERSION_KEY: "v9"}
    found = judged("server/discover", {"_meta": meta}, Routing("v9", "server/discover"))
    assert isinstance(found, Refusal)
    assert found.code == -32022
    assert json.loads(found.data) == {"supported": ["2026-07-28"], "requested": "v9"}


def test_a_header_that_comes_twice_is_refused() -> None:
    found = judged("tools/list", {"_meta": META}, Routing("2026-07-28", "tools/list", None, "Mcp-Method"))
    assert found is not None
    assert found.code == -32020


def test_capabilities_must_be_an_object() -> None:
    meta = {**META, eras.CAPABILITIES_KEY: []}
    found = judged("tools/list", {"_meta": meta}, Routing("2026-07-28", "tools/list"))
    assert found is not None
    assert found.code == -32602


_versions = st.sampled_from(["2026-07-28", "2025-11-25", "v9", ""])
_names = st.sampled_from(["a", "b", "é", " a", "=?base64?YQ==?="])
_headers = st.none() | st.sampled_from(
    ["a", "b", "=?base64?YQ==?=", "=?base64?YQ=?=", "=?base64?w6k=?=", "=?base64?/w==?="]
)
_metas = st.one_of(
    st.none(),
    st.just(7),
    st.fixed_dictionaries(
        {}, optional={eras.VERSION_KEY: _versions | st.just(3), eras.CAPABILITIES_KEY: st.just({}), "x": st.just(1)}
    ),
)
_methods = st.sampled_from(["tools/list", "tools/call", "resources/read", "other"])


@given(_methods, _metas, st.none() | _versions, st.none() | _methods, _headers, st.none() | _names)
def test_the_ladder_agrees_with_the_sdk(
    method: str, meta: Any, version: str | None, mirrored: str | None, header: str | None, name: str
) -> None:
    params = {} if meta is None else {"_meta": meta}
    if name is not None:
        params["uri" if method == "resources/read" else "name"] = name
    headers = {"mcp-protocol-version": version, "mcp-method": mirrored, "mcp-name": header}
    theirs = inbound.classify_inbound_request(
        {"method": method, "params": params},
        headers={key: value for key, value in headers.items() if value is not None},
    )
    ours = judged(method, params, Routing(version, mirrored, header))
    if isinstance(theirs, inbound.InboundModernRoute):
        assert ours is None
    else:
        assert ours is not None
        assert ours.code == theirs.code
        assert (None if ours.data is None else json.loads(ours.data)) == theirs.data


_ascii = st.characters(min_codepoint=0x20, max_codepoint=0x7E)


@given(st.text(_ascii, max_size=12) | st.text(_ascii, max_size=8).map(lambda text: f"=?base64?{text}?="))
def test_header_values_decode_as_the_sdk_decodes_them(value: str) -> None:
    assert eras.header_text(value) == inbound.decode_header_value(value)


def test_base64_of_other_characters_is_malformed() -> None:
    assert eras.header_text("=?base64?\x80?=") is None


@given(st.text(max_size=12))
def test_what_the_sdk_encodes_comes_back(value: str) -> None:
    assert eras.header_text(inbound.encode_header_value(value)) == value


def test_statuses_are_those_of_the_sdk() -> None:
    for code, status in inbound.ERROR_CODE_HTTP_STATUS.items():
        assert eras.http_status(code, modern=True) == status
        assert eras.http_status(code, modern=False) == 200
    assert eras.http_status(-32603, modern=True) == 200


@pytest.mark.parametrize(
    ("asked", "answered"),
    [("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("2026-07-28", "2025-11-25"), (None, "2025-11-25")],
)
def test_initialize_negotiates_a_handshake_revision(asked: str | None, answered: str) -> None:
    assert eras.negotiate(asked) == answered
