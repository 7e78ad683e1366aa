"""The View: what is listed, in which order, and what counts as a change of the list."""

import dataclasses
import json

from hypothesis import given
from hypothesis import strategies as st

from arion_tds import view as views
from arion_tds.model.backend import McpBackend
from arion_tds.model.names import Naming
from arion_tds.model.rbac import Permission, Rbac
from arion_tds.model.tool import Tool
from arion_tds.schema import EMPTY_OBJECT, Schema
from arion_tds.view import Published, View

BACKEND = McpBackend("http://up.example/mcp", "x")


def tool(name: str, description: str = "d", **more: object) -> Tool:
    namespace, _, local = name.partition(".")
    return Tool(
        namespace=namespace,
        name=local,
        description=description,
        input_schema=EMPTY_OBJECT,
        backend=BACKEND,
        **more,  # type: ignore[arg-type]
    )


def served(*tools: Tool, naming: Naming = Naming.QUALIFIED, eager_only: bool = False) -> View:
    entries = [views.entry(one, naming) for one in tools]
    return views.empty(naming).replace([], entries, {}, eager_only=eager_only)


def definitions(view: View, *, legacy: bool = False) -> list[dict[str, object]]:
    entries = [view.tools[name] for name in view.order]
    return [json.loads(one.legacy if legacy else one.modern) for one in entries]


def names(view: View) -> list[object]:
    return [one["name"] for one in definitions(view)]


def test_the_list_is_sorted() -> None:
    assert names(served(tool("b.x"), tool("a.y"), tool("a.x"))) == ["a.x", "a.y", "b.x"]


def test_a_tool_is_found_by_either_spelling() -> None:
    view = served(tool("weather.get"), naming=Naming.PORTABLE)
    assert view.find("weather__get") is view.find("weather.get") is not None
    assert view.find("get") is None


def test_a_tool_keeps_its_schemas_under_every_name_it_is_published_by() -> None:
    inputs = b'{"type":"object","properties":{"city":{"type":"string","description":"Where it rains"}}}'
    outputs = b'{"type":"array","items":{"type":"number","description":"Millimetres, one number for each day"}}'
    one = dataclasses.replace(tool("a.rain"), input_schema=Schema(inputs), output_schema=Schema(outputs))
    for naming in Naming:
        shown = json.loads(views.entry(one, naming).modern)
        assert (one.input_schema.text, json.dumps(shown["inputSchema"], separators=(",", ":"))) == (
            inputs,
            inputs.decode(),
        )
        assert one.output_schema is not None
        assert (one.output_schema.text, json.dumps(shown["outputSchema"], separators=(",", ":"))) == (
            outputs,
            outputs.decode(),
        )


def test_only_eager_tools_are_listed_under_progressive_disclosure_but_all_are_found() -> None:
    view = served(tool("a.shown", eager=True), tool("a.hidden"), eager_only=True)
    assert names(view) == ["a.shown"]
    assert view.find("a.hidden") is not None


def test_an_output_schema_that_is_no_object_is_kept_from_older_revisions() -> None:
    view = served(tool("a.list", output_schema=Schema(b'{"type":"array"}')), tool("a.obj", output_schema=EMPTY_OBJECT))
    assert ["outputSchema" in one for one in definitions(view)] == [True, True]
    assert ["outputSchema" in one for one in definitions(view, legacy=True)] == [False, True]


def test_members_of_an_upstream_definition_are_passed_on_as_they_came() -> None:
    view = served(tool("a.x", extra=b',"title":"T","_meta":{"com.example/k":1.0}'))
    (one,) = definitions(view)
    assert (one["title"], one["_meta"]) == ("T", {"com.example/k": 1.0})


def test_the_list_revision_counts_only_what_a_client_can_see() -> None:
    first = served(tool("a.x"), tool("a.y", eager=True), eager_only=True)
    unlisted = first.replace([], [views.entry(tool("a.z"), Naming.QUALIFIED)], {}, eager_only=True)
    assert (unlisted.revision, unlisted.list_revision) == (first.revision + 1, first.list_revision)
    same = unlisted.replace(
        [tool("a.y", eager=True)],
        [views.entry(tool("a.y", eager=True, embedding=b"1234"), Naming.QUALIFIED)],
        {},
        eager_only=True,
    )
    assert same.list_revision == first.list_revision
    changed = same.replace(
        [tool("a.y", eager=True)], [views.entry(tool("a.y", "new", eager=True), Naming.QUALIFIED)], {}, eager_only=True
    )
    assert changed.list_revision == first.list_revision + 1


def test_restricted_counts_the_tools_with_rbac() -> None:
    rbac = Rbac(deny=False, permissions=(Permission("role", "admin"),))
    view = served(tool("a.x", rbac=rbac), tool("a.y"))
    assert view.restricted == 1
    assert view.replace([tool("a.x", rbac=rbac)], [], {}, eager_only=False).restricted == 0


def test_listeners_hear_old_and_new_until_they_leave() -> None:
    published = Published("s/c", Naming.QUALIFIED)
    heard: list[tuple[int, int]] = []
    leave = published.listen(lambda old, new: heard.append((old.revision, new.revision)))
    published.publish(served(tool("a.x")))
    leave()
    published.publish(served(tool("a.y")))
    assert heard == [(0, 1)]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=60))
def test_the_order_is_that_of_a_fresh_sort_after_any_changes(steps: list[tuple[bool, int]]) -> None:
    view = views.empty(Naming.QUALIFIED)
    held: dict[str, Tool] = {}
    for put, number in steps:
        name = f"n{number % 5}.t{number}"
        gone = [held.pop(name)] if name in held else []
        come = [tool(name, str(len(held)))] if put else []
        view = view.replace(gone, [views.entry(one, Naming.QUALIFIED) for one in come], {}, eager_only=False)
        held.update({one.qualified: one for one in come})
    assert names(view) == sorted(held)


def test_a_view_names_what_it_has_otherwise_than_the_one_before() -> None:
    old = served(tool("n.a"), tool("n.b"), tool("n.c"))
    assert set(old.touched) == {"n.a", "n.b", "n.c"}
    changed = views.entry(tool("n.b", "new"), Naming.QUALIFIED)
    new = old.replace([tool("n.a"), tool("n.b")], [changed], {}, eager_only=False)
    assert set(new.touched) == {"n.a", "n.b"}
    assert new.tools["n.c"] is old.tools["n.c"]
    assert set(new.replace([], [], {}, eager_only=False).touched) == set()
