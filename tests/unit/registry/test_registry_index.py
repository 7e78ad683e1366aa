"""The index of published names: immutable, shared, counted."""

from __future__ import annotations

from arion_tds.model.backend import McpBackend
from arion_tds.model.tool import Tool
from arion_tds.registry.index import Draft, Index
from arion_tds.schema import EMPTY_OBJECT


def tool(name: str) -> Tool:
    return Tool(
        namespace="n", name=name, description="d", input_schema=EMPTY_OBJECT, backend=McpBackend("http://u.test", name)
    )


EMPTY: Index[Tool] = Index()


def test_a_draft_changes_a_copy_and_leaves_the_index_as_it_was() -> None:
    draft = Draft(EMPTY)
    draft.put("a", tool("a"))
    draft.put("b", tool("b"))
    first = draft.finish()
    draft = Draft(first)
    draft.drop("a")
    draft.put("b", tool("b2"))
    draft.put("c", tool("c"))
    second = draft.finish()

    assert (len(EMPTY), len(first), len(second)) == (0, 2, 2)
    assert EMPTY.get("a") is None
    assert (first.get("a"), first.get("b"), first.get("c")) == (tool("a"), tool("b"), None)
    assert (second.get("a"), second.get("b"), second.get("c")) == (None, tool("b2"), tool("c"))


def test_a_draft_reads_what_it_has_written() -> None:
    draft = Draft(EMPTY)
    draft.put("a", tool("a"))
    assert draft.get("a") == tool("a")
    draft.drop("a")
    assert draft.get("a") is None


def test_an_index_of_thousands_finds_each_name() -> None:
    draft = Draft(EMPTY)
    for number in range(3000):
        draft.put(f"t{number}", tool(f"t{number}"))
    made = draft.finish()
    assert len(made) == 3000
    assert all(made.get(f"t{number}") is not None for number in range(3000))
    assert sorted(made) == sorted(f"t{number}" for number in range(3000))
    assert ("t7" in made, "t3000" in made, made["t7"]) == (True, False, tool("t7"))
