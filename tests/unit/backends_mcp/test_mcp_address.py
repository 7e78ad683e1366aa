"""Where servers named over xDS may be; a refusal names its rule."""

from __future__ import annotations

import pytest

from arion_tds.backends.mcp import address
from arion_tds.backends.mcp.address import AddressPolicy


def policy(allow: tuple[str, ...] = (), deny: tuple[str, ...] = ()) -> AddressPolicy:
    made = address.parse(allow, deny)
    assert isinstance(made, AddressPolicy), made
    return made


@pytest.mark.parametrize(
    "where",
    [
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "::169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
    ],
)
def test_link_local_and_metadata_addresses_are_refused_in_every_spelling(where: str) -> None:
    why = policy().problem("up.example", where)
    assert why is not None
    assert "built-in rule" in why


@pytest.mark.parametrize("host", ["metadata.google.internal", "METADATA.google.internal.", "metadata", "metadata.goog"])
def test_metadata_names_are_refused_before_they_are_resolved(host: str) -> None:
    assert policy().host_problem(host) is not None


@pytest.mark.parametrize("where", ["127.0.0.1", "10.0.0.1", "93.184.216.34", "::1", "2001:db8::1"])
def test_everything_else_is_allowed_by_default(where: str) -> None:
    assert policy().problem("up.example", where) is None


def test_a_denied_network_and_host_are_named() -> None:
    made = policy(deny=("10.0.0.0/8", ".corp.example", "one.example"))
    assert "'10.0.0.0/8'" in (made.problem("x", "10.1.2.3") or "")
    assert "'10.0.0.0/8'" in (made.problem("x", "::ffff:10.1.2.3") or "")
    assert "'.corp.example'" in (made.problem("a.corp.example", "1.2.3.4") or "")
    assert "'one.example'" in (made.problem("One.Example.", "1.2.3.4") or "")
    assert made.problem("two.example", "1.2.3.4") is None
    assert made.problem("notcorp.example", "1.2.3.4") is None


def test_once_something_is_allowed_only_that_is() -> None:
    made = policy(allow=("10.1.0.0/16", ".up.example"), deny=("10.1.9.0/24",))
    assert made.problem("x", "10.1.2.3") is None
    assert made.problem("a.up.example", "8.8.8.8") is None
    assert "allow_addresses" in (made.problem("x", "8.8.8.8") or "")
    assert "10.1.9.0/24" in (made.problem("x", "10.1.9.1") or "")


def test_a_wide_allow_rule_does_not_open_metadata_but_a_rule_of_its_own_does() -> None:
    assert policy(allow=("0.0.0.0/0",)).problem("x", "169.254.169.254") is not None
    assert policy(allow=(".example",)).problem("a.example", "169.254.169.254") is not None
    assert policy(allow=("169.254.7.0/24",)).problem("x", "169.254.7.1") is None
    assert policy(allow=("169.254.7.0/24",)).problem("x", "169.254.8.1") is not None


def test_every_bad_rule_is_reported() -> None:
    problems = address.parse(("10.0.0.0/33", "ok.example"), ("", "10.0.0.1/8"))
    assert isinstance(problems, list)
    assert [problem.where for problem in problems] == ["allow_addresses[0]", "deny_addresses[0]", "deny_addresses[1]"]
