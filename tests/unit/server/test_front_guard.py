"""Host, Origin, Accept and Content-Type."""

from __future__ import annotations

from typing import Any

import pytest

from arion_tds.server import guard


def local(**more: Any) -> guard.Guard:
    return guard.guard(loopback=True, hosts=more.get("hosts", ()), origins=more.get("origins", ()))


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost", "LOCALHOST:9", "[::1]:7", "[::1]"])
def test_a_loopback_listener_answers_to_its_own_names(host: str | None) -> None:
    assert local().host(host) is None


@pytest.mark.parametrize(
    "host", ["evil.com", "evil.com:80", "127.0.0.1.evil.com", "localhost.evil.com:1", "", None, "[::2]"]
)
def test_a_loopback_listener_refuses_other_hosts(host: str | None) -> None:
    found = local().host(host)
    assert found is not None
    assert "allowed_hosts" in found


def test_configured_hosts_are_accepted_with_and_without_port() -> None:
    here = local(hosts=("Gateway.internal",))
    assert here.host("gateway.internal") is None
    assert here.host("gateway.internal:8080") is None
    with_port = guard.guard(loopback=False, hosts=("gw:1",), origins=())
    assert with_port.host("gw:1") is None
    assert with_port.host("gw:2") is not None


def test_other_listeners_check_no_host_unless_told() -> None:
    assert guard.guard(loopback=False, hosts=(), origins=()).host("anything") is None


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8"])
def test_a_loopback_listener_lets_local_pages_in(origin: str) -> None:
    assert local().origin(origin, "127.0.0.1:80") is None
    assert guard.guard(loopback=False, hosts=(), origins=()).origin(origin, "gw:80") is not None


@pytest.mark.parametrize(
    "origin", ["http://evil.com", "null", "http://localhost.evil.com", "file://", "chrome-extension://x"]
)
def test_foreign_origins_are_refused(origin: str) -> None:
    found = local().origin(origin, "127.0.0.1:80")
    assert found is not None
    assert "allowed_origins" in found


def test_the_same_host_and_configured_origins_are_let_in() -> None:
    here = guard.guard(loopback=False, hosts=(), origins=("https://App.example/",))
    assert here.origin("https://gw.example:8443", "gw.example:8443") is None
    assert here.origin("https://app.example", "gw.example") is None
    assert here.origin("https://other.example", "gw.example") is not None
    assert guard.guard(loopback=False, hosts=(), origins=("*",)).origin("https://x", "y") is None


@pytest.mark.parametrize(
    ("header", "json", "stream", "anything"),
    [
        (None, True, False, True),
        ("", True, False, True),
        ("*/*", True, False, True),
        ("application/json", True, False, False),
        ("application/json, text/event-stream", True, True, True),
        ("text/event-stream;q=0.9 , Application/JSON;q=1", True, True, True),
        ("text/event-stream", False, True, True),
        ("text/event-stream, */*", True, True, True),
        ("application/json, text/event-stream;q=0", True, False, False),
        ("text/html", True, False, False),
    ],
)
def test_accept_is_read_leniently(header: str | None, json: bool, stream: bool, anything: bool) -> None:
    found = guard.accepts(header)
    assert (found.json, found.stream, found.any) == (json, stream, anything)


def test_content_type_must_say_json() -> None:
    assert guard.is_json("application/json")
    assert guard.is_json("Application/JSON; charset=utf-8")
    assert not guard.is_json("text/plain")
    assert not guard.is_json("application/jsonp")
    assert not guard.is_json(None)
