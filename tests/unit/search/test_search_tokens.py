"""What a tool costs a context."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest
from search_samples import tool

from arion_tds.search import tokens


@pytest.fixture(autouse=True)
def _unremembered() -> Iterator[None]:
    tokens._counter.cache_clear()
    yield
    tokens._counter.cache_clear()


def test_without_the_extra_counts_are_estimated_from_the_length(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    assert not tokens.exact()
    assert tokens.count(["", "a", "x" * 445]) == [0, 1, 100]


def test_with_the_extra_counts_are_exact() -> None:
    pytest.importorskip("toktok", reason="the extra `tokens` is not installed")
    assert tokens.exact()
    assert tokens.count(["hello world", "", "hello <|endoftext|>"]) == [2, 0, 8]


def test_a_tool_is_counted_by_name_description_and_schema() -> None:
    told = tool("git.clone", "Copies é", url="Where")
    assert tokens.text(told) == "git.clone\nCopies é\n" + told.input_schema.text.decode()
    assert tokens.count([tokens.text(told)])[0] > 10
