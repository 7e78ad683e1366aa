"""Permissions against tokens: every action, claims of every shape, headers, long names."""

from __future__ import annotations

from typing import Any

import pytest

from arion_tds.auth.rbac import Token, allows
from arion_tds.model.rbac import Permission, Rbac

TOKEN = Token(
    {"alg": "ES256", "typ": "JWT", "cty": "x", "kid": "ec"},
    {
        "iss": "i", "sub": "ada", "aud": ["a", "b"], "exp": 1800000000, "nbf": 1, "iat": 2, "jti": "j",
        "role": "admin", "groups": ["dev", "ops"], "level": 3, "ratio": 0.5, "whole": 2.0, "vip": True, "no": False,
        "nothing": None, "realm": {"access": {"roles": ["editor", 7]}}, "a.b": "dotted", "empty": [],
    },
)  # fmt: skip


def matches(field: str, value: str, *, header: bool = False, token: Token | None = TOKEN) -> bool:
    permission = (Permission(field, value, header),)
    allowed, denied = allows(Rbac(False, permission), token), not allows(Rbac(True, permission), token)
    assert allowed == denied
    return allowed


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("role", "admin"), ("groups", "ops"), ("level", "3"), ("ratio", "0.5"), ("whole", "2"), ("vip", "true"),
        ("no", "false"), ("realm.access.roles", "editor"), ("realm.access.roles", "7"), ("a.b", "dotted"),
        ("iss", "i"), ("issuer", "i"), ("sub", "ada"), ("subject", "ada"), ("aud", "b"), ("audience", "a"),
        ("exp", "1800000000"), ("expiration", "1800000000"), ("nbf", "1"), ("not_before", "1"), ("iat", "2"),
        ("issued_at", "2"), ("jti", "j"), ("jwt_id", "j"),
    ],
)  # fmt: skip
def test_a_claim_matches_its_value(field: str, value: str) -> None:
    assert matches(field, value)
    assert not matches(field, value + "x")
    assert not matches(field, value, token=None)
    assert not matches(field, value, header=True)


@pytest.mark.parametrize(
    ("field", "value"),
    [("alg", "ES256"), ("algorithm", "ES256"), ("typ", "JWT"), ("type", "JWT"), ("content_type", "x"), ("kid", "ec"),
     ("key_id", "ec")],
)  # fmt: skip
def test_a_header_matches_its_value(field: str, value: str) -> None:
    assert matches(field, value, header=True)
    assert not matches(field, value.lower() + "_", header=True)
    assert not matches(field, value, header=True, token=None)


@pytest.mark.parametrize(
    ("field", "value"),
    [("nothing", "None"), ("nothing", "null"), ("realm", "{}"), ("empty", ""), ("absent", ""), ("realm.x.roles", "a"),
     ("role", "Admin"), ("role", " admin"), ("groups", "dev ops"), ("vip", "True"), ("vip", "1")],
)  # fmt: skip
def test_what_is_not_the_value_does_not_match(field: str, value: str) -> None:
    assert not matches(field, value)


def test_permissions_are_ored() -> None:
    either = (Permission("role", "nobody"), Permission("groups", "dev"))
    assert allows(Rbac(False, either), TOKEN)
    assert not allows(Rbac(True, either), TOKEN)


@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_tool_without_rbac_is_everybody_s(token: Any) -> None:
    assert allows(None, token)


def test_without_a_token_allow_refuses_and_deny_lets_in() -> None:
    assert not allows(Rbac(False, (Permission("role", "admin"),)), None)
    assert allows(Rbac(True, (Permission("role", "admin"),)), None)
