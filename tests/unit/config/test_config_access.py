"""The keys that say who may come in: what is a mistake, and what is only doubtful."""

from __future__ import annotations

from typing import Any

import pytest
from auth_issuer import jwks

from arion_tds.config import judging
from arion_tds.errors import ConfigError

KEYS = {"local_jwks": {"inline_string": jwks().decode()}}
GOOD = {"issuer": "https://i.example", **KEYS}


def judged(**more: Any) -> judging.Config:
    block = {"server_info": {"name": "a", "version": "1"}, "tools_mode": {}}
    return judging.judge({"listeners": [{"name": "a", "address": "127.0.0.1:0", "mcp_gateway": block, **more}]})


def wrong(**more: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        judged(**more)
    return str(caught.value)


@pytest.mark.parametrize(
    ("jwt", "says"),
    [
        ({}, "jwt.providers: missing"),
        ({"providers": {}}, "at least 1"),
        ({"providers": {"a b": GOOD}}, "a name is made of letters"),
        ({"providers": {"x": {"issuer": "i"}}}, "exactly one of `local_jwks` and `remote_jwks`"),
        ({"providers": {"x": {**GOOD, "remote_jwks": {"uri": "https://i/j"}}}}, "exactly one of"),
        ({"providers": {"x": {**GOOD, "algorithms": ["none"]}}}, "'none' is not accepted"),
        ({"providers": {"x": {**GOOD, "algorithms": ["HS256"]}}}, "'HS256' is not accepted"),
        ({"providers": {"x": {**GOOD, "algorithms": []}}}, "name at least one"),
        ({"providers": {"x": {"local_jwks": {"inline_string": "{}"}}}}, "has no list `keys`"),
        ({"providers": {"x": {"local_jwks": {}}}}, "exactly one of `filename` and `inline_string`"),
        ({"providers": {"x": {"remote_jwks": {"uri": "/jwks"}}}}, "is not an absolute http or https URL"),
        ({"providers": {"x": {"remote_jwks": {"uri": "http://u:p@i/"}}}}, "is not an absolute http or https URL"),
        ({"providers": {"x": {**GOOD, "from_headers": []}}}, "from_headers: name at least one"),
        ({"providers": {"x": {**GOOD, "from_headers": [{"name": "a b"}]}}}, "is not a header name"),
        ({"providers": {"x": GOOD}, "resource": 'https://a/"'}, "is not an absolute http or https URL"),
        ({"providers": {"x": GOOD}, "resource": "https://a/?q"}, "must not have a query"),
        ({"providers": {"x": GOOD}, "scopes_required": ['a"b']}, "is not a scope"),
        ({"providers": {"x": GOOD}, "requird": True}, "unknown key"),
    ],
)
def test_a_mistake_is_named(jwt: Any, says: str) -> None:
    assert says in wrong(jwt=jwt)


def test_what_is_doubtful_is_a_warning() -> None:
    said = "\n".join(judged(jwt={"providers": {"x": KEYS}}).warnings)
    assert "listeners[0].jwt: providers.x checks no audience" in said
    assert "providers.x checks no issuer" in said
    assert "resource is not set" in said
    assert judged(jwt={"providers": {"x": GOOD}, "resource": "https://a.example/mcp"}).warnings == ()


def test_the_metadata_stands_where_rfc_9728_puts_it() -> None:
    for resource, expected in (
        ("https://a.example/mcp", "https://a.example/.well-known/oauth-protected-resource/mcp"),
        ("https://a.example:8443", "https://a.example:8443/.well-known/oauth-protected-resource"),
        ("https://a.example/", "https://a.example/.well-known/oauth-protected-resource"),
    ):
        jwt = judged(jwt={"providers": {"x": GOOD}, "resource": resource}).file.listeners[0].jwt
        assert jwt is not None
        assert jwt.metadata_url == expected


@pytest.mark.parametrize(
    ("limits", "says"),
    [({"requests_per_second": 0}, "greater than 0"), ({"max_json_depth": 5000}, "less than or equal to 900"),
     ({"header_timeout": "0s"}, "greater than 0"), ({"max_connections": 0}, "greater than or equal to 1")],
)  # fmt: skip
def test_a_limit_out_of_bounds_is_named(limits: Any, says: str) -> None:
    assert says in wrong(limits=limits)
