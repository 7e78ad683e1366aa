"""A cursor is a name in disguise; anything else is not a cursor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arion_tds.server import cursors

_names = st.text(alphabet=st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=128)


@given(_names)
def test_every_name_comes_back(name: str) -> None:
    assert cursors.decode(cursors.encode(name)) == name


def test_the_empty_cursor_is_the_start() -> None:
    assert cursors.decode("") == ""


@pytest.mark.parametrize(
    "cursor", ["x", "invalid-cursor", "bjo", "bjpg=", "é", "bjpgYA==", "AAAA", "bjrDqQ", " ", "a" * 9999]
)
def test_what_we_did_not_make_is_refused(cursor: str) -> None:
    assert cursors.decode(cursor) is None


@given(st.text(max_size=40))
def test_no_text_raises(cursor: str) -> None:
    found = cursors.decode(cursor)
    assert found is None or found == "" or cursors.encode(found) == cursor
