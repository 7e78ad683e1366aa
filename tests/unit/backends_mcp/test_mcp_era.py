"""The ladder: what an answer says about the era of a server."""

from __future__ import annotations

import json

import msgspec
import pytest

from arion_tds.backends.mcp import era, wire
from arion_tds.backends.mcp.era import Again, Era, Incompatible, Legacy, Modern, Peer, Stale

NOW = "2026-07-28"


def error(code: int, data: object = None, message: str = "m") -> wire.Message:
    body = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return wire.Message(error=msgspec.Raw(json.dumps(body).encode()))


def answer(value: object) -> wire.Message:
    return wire.Message(result=msgspec.Raw(json.dumps(value).encode()))


@pytest.mark.parametrize(
    ("status", "message", "verdict"),
    [
        (
            200,
            answer({"supportedVersions": [NOW], "capabilities": {"tools": {"listChanged": True}}}),
            Modern(NOW, listens=True),
        ),
        (200, answer({"supportedVersions": ["2025-11-25"]}), Legacy()),
        (200, answer({"tools": []}), Legacy()),
        (200, answer([]), Legacy()),
        (200, error(-32601), Legacy()),
        (404, error(-32601), Modern(NOW, certain=False)),
        (400, error(-32602), Modern(NOW, certain=False)),
        (400, error(-32020), Modern(NOW, certain=False)),
        (400, error(-32021), Modern(NOW, certain=False)),
        (400, error(-32000, message="Bad Request: Server not initialized"), Legacy()),
        (400, error(-32600, message="Missing session ID"), Legacy()),
        (404, error(-32001, message="Session not found"), Legacy()),
        (405, None, Legacy()),
        (404, None, Legacy()),
        (500, None, Legacy()),
        (400, error(-32022, {"supported": ["2025-06-18", "2025-11-25"]}), Legacy()),
        (400, error(-32022, {"supported": "x"}), Legacy()),
    ],
)
def test_the_probes_answer_gives_the_verdict(status: int, message: wire.Message | None, verdict: era.Verdict) -> None:
    assert era.judge(status, message, NOW) == verdict


def test_a_server_that_names_its_version_is_asked_again_with_it() -> None:
    assert era.judge(400, error(-32022, {"supported": [NOW]}), "2027-01-01") == Again(NOW)
    assert era.judge(400, error(-32022, {"supported": ["2027-01-01", NOW]}), NOW) == Again(NOW)


def test_a_server_without_a_common_version_is_incompatible_and_says_what_it_speaks() -> None:
    verdict = era.judge(400, error(-32022, {"supported": ["2031-01-01"]}), NOW)
    assert isinstance(verdict, Incompatible)
    assert "2031-01-01" in verdict.why
    assert NOW in verdict.why


MODERN = Peer(Era.MODERN, NOW, 1)
SESSION = Peer(Era.LEGACY, "2025-11-25", 1, session="s")
SESSIONLESS = Peer(Era.LEGACY, "2025-11-25", 1)


@pytest.mark.parametrize(
    ("peer", "status", "message", "stale"),
    [
        (MODERN, 200, error(-32603), None),
        (MODERN, 404, error(-32601), None),
        (MODERN, 400, error(-32602), None),
        (MODERN, 400, error(-32022), Stale.ERA),
        (MODERN, 400, error(-32600, message="Missing session ID"), Stale.ERA),
        (MODERN, 404, None, Stale.ERA),
        (MODERN, 503, None, None),
        (SESSION, 404, None, Stale.SESSION),
        (SESSION, 404, error(-32001), Stale.SESSION),
        (SESSION, 200, error(-32001, message="Session not found"), Stale.SESSION),
        (SESSION, 200, error(-32001, message="Request timed out"), None),
        (SESSION, 400, error(-32000, message="Bad Request: No valid session ID provided"), Stale.SESSION),
        (SESSION, 200, error(-32000, message="No browser session is open"), None),
        (SESSION, 400, error(-32022), Stale.ERA),
        (SESSION, 200, error(-32602), None),
        (SESSIONLESS, 404, None, Stale.ERA),
        (SESSIONLESS, 500, None, None),
        (SESSIONLESS, 200, answer({}), None),
    ],
)
def test_an_answer_can_show_that_what_was_agreed_is_gone(
    peer: Peer, status: int, message: wire.Message | None, stale: Stale | None
) -> None:
    assert era.stale(peer, status, message) is stale


@pytest.mark.parametrize("result", [{}, {"protocolVersion": "1999-01-01"}, {"protocolVersion": 3}, []])
def test_an_initialize_result_that_cannot_be_worked_with_is_named(result: object) -> None:
    assert isinstance(era.initialized(msgspec.Raw(json.dumps(result).encode())), str)
