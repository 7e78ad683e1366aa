"""Tool names: what is allowed, what is advised against, what each naming publishes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arion_tds.model import names
from arion_tds.model.names import Naming

PORTABLE = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


@pytest.mark.parametrize("name", ["weather.get", "a.b/c", "x" * 128, "a.~"])
def test_names_that_are_served(name: str) -> None:
    assert names.problem(name) is None


@pytest.mark.parametrize(
    ("name", "why"),
    [("x" * 129, "longer than 128"), ("a b.c", "' '"), ("a.b\n", "'\\n'"), ("wé.a", "'é'"), ("a.\x7f", "'\\x7f'")],
)
def test_names_that_are_refused_say_why(name: str, why: str) -> None:
    assert why in (names.problem(name) or "")


def test_unusual_characters_are_served_with_advice() -> None:
    assert names.advice("ns.a-b_c.d") is None
    assert "'ns.a/b'" in (names.advice("ns.a/b") or "")


def test_each_naming_publishes_in_its_way() -> None:
    assert names.published(Naming.QUALIFIED, "weather", "get.forecast") == "weather.get.forecast"
    assert names.published(Naming.BARE, "weather", "get.forecast") == "get.forecast"
    assert names.published(Naming.PORTABLE, "weather", "get_forecast") == "weather__get_forecast"
    assert names.published(Naming.PORTABLE, "weather", "get.forecast") == "weather__get_forecast"


def test_a_long_portable_name_is_cut_with_a_hash_of_the_whole() -> None:
    one, other = (names.published(Naming.PORTABLE, "namespace", f"{'t' * 70}{end}") for end in "ab")
    assert len(one) == len(other) == 64
    assert one != other
    assert one == names.published(Naming.PORTABLE, "namespace", f"{'t' * 70}a")


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1), st.text("ab._/-", min_size=1))
def test_portable_names_are_always_what_every_client_takes(namespace: str, name: str) -> None:
    assert PORTABLE.match(names.published(Naming.PORTABLE, namespace, name))
