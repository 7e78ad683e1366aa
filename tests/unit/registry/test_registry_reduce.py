"""The update/remove table of the contract, row by row."""

from __future__ import annotations

import pytest

from arion_tds.model.backend import McpBackend
from arion_tds.model.change import (
    Change,
    PutServer,
    PutSource,
    PutTool,
    PutToolkit,
    RemoveServer,
    RemoveSource,
    RemoveTool,
    RemoveToolkit,
)
from arion_tds.model.names import Naming
from arion_tds.model.server import McpServer
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit
from arion_tds.registry import snapshot as snapshots
from arion_tds.registry.reduce import Outcome, Rules, reduce
from arion_tds.registry.snapshot import Owner, Snapshot
from arion_tds.schema import EMPTY_OBJECT

QUALIFIED = Rules()
CODE_MODE = Rules(code_mode=True)


def tool(namespace: str, name: str, description: str = "d") -> Tool:
    return Tool(
        namespace=namespace,
        name=name,
        description=description,
        input_schema=EMPTY_OBJECT,
        backend=McpBackend("http://u.test", name),
    )


def put_source(namespace: str, *tools: str, description: str = "d", document: bytes = b"{}") -> PutSource:
    source = OpenApiSource(namespace=namespace, document=document, cluster="c")
    return PutSource(source, tuple(tool(namespace, name, description) for name in tools))


def put_server(namespace: str, *tools: str, description: str = "d") -> PutServer:
    server = McpServer(namespace=namespace, description="", url="http://u.test")
    return PutServer(server, tuple(tool(namespace, name, description) for name in tools))


def kit(name: str, description: str = "d") -> Toolkit:
    return Toolkit(name=name, description=description, instructions="", tools=("a.b", "a.c"))


def holding(*changes: Change, rules: Rules = QUALIFIED) -> Snapshot:
    """A snapshot to which these changes, all of them good, have led."""
    outcome = reduce(snapshots.EMPTY, changes, rules)
    assert [verdict.problem for verdict in outcome.verdicts] == [None] * len(changes)
    return outcome.snapshot


def names(snapshot: Snapshot) -> list[str]:
    return sorted(found.qualified for held in snapshot.namespaces.values() for found in held.tools.values())


def accepted(outcome: Outcome, *warnings: str) -> Outcome:
    (verdict,) = outcome.verdicts
    assert verdict.problem is None
    assert verdict.warnings == warnings
    return outcome


def refused(before: Snapshot, change: Change, rules: Rules = QUALIFIED) -> str:
    """The reason why the change was refused; that nothing changed is checked here."""
    outcome = reduce(before, [change], rules)
    (verdict,) = outcome.verdicts
    assert verdict.problem is not None
    assert not outcome.diff
    assert (outcome.snapshot.namespaces, outcome.snapshot.toolkits) == (before.namespaces, before.toolkits)
    assert outcome.snapshot.count == before.count
    return str(verdict.problem)


# Tool update


def test_a_tool_in_a_free_namespace_is_added() -> None:
    outcome = accepted(reduce(snapshots.EMPTY, [PutTool(tool("a", "b"))], QUALIFIED))
    assert outcome.diff.added == (tool("a", "b"),)
    assert outcome.snapshot.namespaces["a"].owner is Owner.TOOLS
    assert outcome.snapshot.find("a.b") == tool("a", "b")
    assert outcome.snapshot.count == 1


def test_a_tool_of_a_name_that_tools_have_replaces_that_tool() -> None:
    before = holding(PutTool(tool("a", "b", "old")), PutTool(tool("a", "c")))
    outcome = accepted(reduce(before, [PutTool(tool("a", "b", "new"))], QUALIFIED))
    assert outcome.diff.replaced == ((tool("a", "b", "old"), tool("a", "b", "new")),)
    assert (outcome.diff.added, outcome.diff.removed) == ((), ())
    assert names(outcome.snapshot) == ["a.b", "a.c"]


def test_an_equal_tool_changes_nothing_and_the_old_one_stays() -> None:
    old = tool("a", "b")
    outcome = accepted(reduce(holding(PutTool(old)), [PutTool(tool("a", "b"))], QUALIFIED))
    assert not outcome.diff
    assert outcome.snapshot.find("a.b") is old


def test_a_tool_in_a_namespace_of_a_source_is_refused_by_the_name_of_its_owner() -> None:
    reason = refused(holding(put_source("x", "b")), PutTool(tool("x", "c")))
    assert reason == "x.c: namespace 'x' is owned by OpenAPI source 'x'"


def test_a_tool_in_a_namespace_of_a_server_is_refused_by_the_name_of_its_owner() -> None:
    reason = refused(holding(put_server("x")), PutTool(tool("x", "c")))
    assert reason == "x.c: namespace 'x' is owned by MCP server 'x'"


def test_a_tool_of_the_same_name_split_elsewhere_replaces_the_former_and_frees_its_namespace() -> None:
    outcome = accepted(reduce(holding(PutTool(tool("a.b", "c"))), [PutTool(tool("a", "b.c"))], QUALIFIED))
    assert outcome.diff.replaced == ((tool("a.b", "c"), tool("a", "b.c")),)
    assert set(outcome.snapshot.namespaces) == {"a"}
    assert outcome.snapshot.count == 1


def test_a_tool_that_moves_into_a_namespace_of_a_source_is_refused_and_stays_where_it_was() -> None:
    before = holding(PutTool(tool("a.b", "c")), put_source("a", "x"))
    assert refused(before, PutTool(tool("a", "b.c"))) == "a.b.c: namespace 'a' is owned by OpenAPI source 'a'"
    assert before.find("a.b.c") == tool("a.b", "c")


def test_a_tool_cannot_take_the_name_of_a_derived_tool_of_another_namespace() -> None:
    reason = refused(holding(put_source("a.b", "c")), PutTool(tool("a", "b.c")))
    assert reason == "a.b.c: name 'a.b.c' is taken: namespace 'a.b' is owned by OpenAPI source 'a.b'"


# Tool remove


def test_a_provided_tool_is_removed_and_its_last_one_frees_the_namespace() -> None:
    before = holding(PutTool(tool("a", "b")), PutTool(tool("a", "c")))
    outcome = accepted(reduce(before, [RemoveTool("a.b")], QUALIFIED))
    assert outcome.diff.removed == (tool("a", "b"),)
    last = accepted(reduce(outcome.snapshot, [RemoveTool("a.c")], QUALIFIED)).snapshot
    assert dict(last.namespaces) == {}
    assert last.count == 0
    accepted(reduce(last, [put_source("a", "z")], QUALIFIED))


def test_a_replaced_tool_does_not_return_when_its_replacement_is_removed() -> None:
    before = holding(PutTool(tool("a", "b", "static")))
    replaced = reduce(before, [PutTool(tool("a", "b", "delivered"))], QUALIFIED).snapshot
    assert names(reduce(replaced, [RemoveTool("a.b")], QUALIFIED).snapshot) == []


def test_removing_a_tool_that_is_absent_is_accepted_with_a_warning() -> None:
    outcome = accepted(
        reduce(snapshots.EMPTY, [RemoveTool("a.b")], QUALIFIED), "tool 'a.b' is not here: nothing to remove"
    )
    assert not outcome.diff


@pytest.mark.parametrize(
    ("owner", "title"), [(put_source("a", "b"), "OpenAPI source 'a'"), (put_server("a", "b"), "MCP server 'a'")]
)
def test_removing_a_derived_tool_is_accepted_with_a_warning_and_changes_nothing(owner: Change, title: str) -> None:
    outcome = accepted(
        reduce(holding(owner), [RemoveTool("a.b")], QUALIFIED),
        f"tool 'a.b' comes from {title} and is only removed with it: nothing changes",
    )
    assert not outcome.diff
    assert names(outcome.snapshot) == ["a.b"]


def test_a_tool_is_removed_by_its_qualified_name_wherever_its_namespace_ends() -> None:
    before = holding(PutTool(tool("a.b", "c.d")), PutTool(tool("a", "x")))
    assert names(reduce(before, [RemoveTool("a.b.c.d")], QUALIFIED).snapshot) == ["a.x"]


# Sources and servers


@pytest.mark.parametrize(("put", "owner"), [(put_source, Owner.SOURCE), (put_server, Owner.SERVER)])
def test_a_source_or_server_in_a_free_namespace_owns_it(put: type, owner: Owner) -> None:
    change = put("p", "a", "b")
    outcome = accepted(reduce(snapshots.EMPTY, [change], QUALIFIED))
    held = outcome.snapshot.namespaces["p"]
    assert held.owner is owner
    assert held.definition is (change.source if owner is Owner.SOURCE else change.server)
    assert [found.name for found in outcome.diff.added] == ["a", "b"]


@pytest.mark.parametrize("put", [put_source, put_server])
def test_its_tools_become_exactly_the_new_set_and_what_is_equal_is_no_change(put: type) -> None:
    before = holding(put("p", "a", "b"))
    kept = before.find("p.b")
    change = put("p", "b", "c")
    outcome = accepted(reduce(before, [change], QUALIFIED))
    assert names(outcome.snapshot) == ["p.b", "p.c"]
    assert outcome.diff.added == (tool("p", "c"),)
    assert outcome.diff.removed == (tool("p", "a"),)
    assert outcome.diff.replaced == ()
    assert outcome.snapshot.find("p.b") is kept
    assert outcome.snapshot.count == 2


@pytest.mark.parametrize("put", [put_source, put_server])
def test_a_changed_tool_of_a_new_set_is_a_replacement(put: type) -> None:
    outcome = reduce(holding(put("p", "a")), [put("p", "a", description="new")], QUALIFIED)
    assert outcome.diff.replaced == ((tool("p", "a"), tool("p", "a", "new")),)


def test_a_new_definition_with_equal_tools_is_kept_without_a_change_of_tools() -> None:
    change = put_source("p", "a", document=b"{ }")
    outcome = accepted(reduce(holding(put_source("p", "a")), [change], QUALIFIED))
    assert not outcome.diff
    assert outcome.snapshot.namespaces["p"].definition is change.source


@pytest.mark.parametrize(("put", "remove"), [(put_source, RemoveSource), (put_server, RemoveServer)])
def test_a_source_or_server_without_tools_still_owns_its_namespace_until_removed(put: type, remove: type) -> None:
    before = holding(put("p"))
    assert "is owned by" in refused(before, PutTool(tool("p", "a")))
    assert dict(accepted(reduce(before, [remove("p")], QUALIFIED)).snapshot.namespaces) == {}


@pytest.mark.parametrize(
    ("held", "change", "reason"),
    [
        (PutTool(tool("p", "t")), put_source("p", "a"), "p: namespace 'p' is owned by tools, such as 'p.t'"),
        (PutTool(tool("p", "t")), put_server("p", "a"), "p: namespace 'p' is owned by tools, such as 'p.t'"),
        (put_source("p", "t"), put_server("p", "a"), "p: namespace 'p' is owned by OpenAPI source 'p'"),
        (put_server("p", "t"), put_source("p", "a"), "p: namespace 'p' is owned by MCP server 'p'"),
    ],
)
def test_a_source_or_server_in_the_namespace_of_another_owner_is_refused(
    held: Change, change: Change, reason: str
) -> None:
    assert refused(holding(held), change) == reason


@pytest.mark.parametrize(("put", "remove"), [(put_source, RemoveSource), (put_server, RemoveServer)])
def test_with_a_source_or_server_go_all_its_tools(put: type, remove: type) -> None:
    before = holding(put("p", "a", "b"), PutTool(tool("x", "y")))
    outcome = accepted(reduce(before, [remove("p")], QUALIFIED))
    assert names(outcome.snapshot) == ["x.y"]
    assert outcome.diff.removed == (tool("p", "a"), tool("p", "b"))


@pytest.mark.parametrize(
    ("held", "change", "warning"),
    [
        (PutTool(tool("x", "y")), RemoveSource("p"), "OpenAPI source 'p' is not here: nothing to remove"),
        (PutTool(tool("x", "y")), RemoveServer("p"), "MCP server 'p' is not here: nothing to remove"),
        (
            PutTool(tool("p", "y")),
            RemoveSource("p"),
            "OpenAPI source 'p' is not here: namespace 'p' is owned by tools, such as 'p.y', nothing to remove",
        ),
        (
            put_server("p", "y"),
            RemoveSource("p"),
            "OpenAPI source 'p' is not here: namespace 'p' is owned by MCP server 'p', nothing to remove",
        ),
        (
            put_source("p", "y"),
            RemoveServer("p"),
            "MCP server 'p' is not here: namespace 'p' is owned by OpenAPI source 'p', nothing to remove",
        ),
    ],
)
def test_removing_what_is_not_there_is_accepted_with_a_warning(held: Change, change: Change, warning: str) -> None:
    before = holding(held)
    outcome = accepted(reduce(before, [change], QUALIFIED), warning)
    assert not outcome.diff
    assert names(outcome.snapshot) == names(before)


def test_a_source_cannot_take_the_qualified_name_of_another_namespaces_tool() -> None:
    before = holding(PutTool(tool("a", "b.c")))
    reason = refused(before, put_source("a.b", "z", "c"))
    assert reason == "a.b: name 'a.b.c' is taken: namespace 'a' is owned by tools, such as 'a.b.c'"


# Toolkits


def test_toolkits_are_added_replaced_and_deleted_in_code_mode() -> None:
    added = accepted(reduce(snapshots.EMPTY, [PutToolkit(kit("k"))], CODE_MODE))
    assert added.diff.toolkits_changed
    replaced = accepted(reduce(added.snapshot, [PutToolkit(kit("k", "new"))], CODE_MODE))
    assert replaced.snapshot.toolkits == {"k": kit("k", "new")}
    equal = accepted(reduce(replaced.snapshot, [PutToolkit(kit("k", "new"))], CODE_MODE))
    assert not equal.diff
    removed = accepted(reduce(equal.snapshot, [RemoveToolkit("k")], CODE_MODE))
    assert removed.diff.toolkits_changed
    assert dict(removed.snapshot.toolkits) == {}


def test_removing_an_absent_toolkit_is_accepted_with_a_warning() -> None:
    outcome = reduce(snapshots.EMPTY, [RemoveToolkit("k")], CODE_MODE)
    assert not accepted(outcome, "toolkit 'k' is not here: nothing to remove").diff


@pytest.mark.parametrize("change", [PutToolkit(kit("k")), RemoveToolkit("k")])
def test_toolkits_are_accepted_and_ignored_in_tools_mode(change: Change) -> None:
    outcome = accepted(reduce(snapshots.EMPTY, [change], QUALIFIED))
    assert not outcome.diff
    assert dict(outcome.snapshot.toolkits) == {}


# Batches


def test_removals_apply_before_updates_whatever_their_order() -> None:
    before = holding(PutTool(tool("p", "t")))
    outcome = reduce(before, [put_source("p", "a"), RemoveTool("p.t")], QUALIFIED)
    assert [verdict.problem for verdict in outcome.verdicts] == [None, None]
    assert names(outcome.snapshot) == ["p.a"]


def test_a_refused_change_leaves_the_others_of_its_batch() -> None:
    before = holding(put_source("p", "a"))
    outcome = reduce(before, [PutTool(tool("x", "1")), PutTool(tool("p", "2")), PutTool(tool("x", "3"))], QUALIFIED)
    assert [verdict.problem is None for verdict in outcome.verdicts] == [True, False, True]
    assert names(outcome.snapshot) == ["p.a", "x.1", "x.3"]


def test_what_a_batch_undoes_again_is_no_change() -> None:
    before = holding(PutTool(tool("a", "b")))
    outcome = reduce(before, [RemoveTool("a.b"), PutTool(tool("a", "b"))], QUALIFIED)
    assert not outcome.diff
    assert names(outcome.snapshot) == ["a.b"]


def test_a_batch_reports_its_net_change_only() -> None:
    before = holding(PutTool(tool("a", "b", "1")))
    outcome = reduce(before, [PutTool(tool("a", "b", "2")), PutTool(tool("a", "b", "3"))], QUALIFIED)
    assert outcome.diff.replaced == ((tool("a", "b", "1"), tool("a", "b", "3")),)


def test_an_earlier_snapshot_never_changes() -> None:
    first = holding(PutTool(tool("a", "b")), put_source("p", "x"), PutToolkit(kit("k")), rules=CODE_MODE)
    reduce(
        first,
        [RemoveTool("a.b"), PutTool(tool("a", "c")), RemoveSource("p"), PutToolkit(kit("l")), RemoveToolkit("k")],
        CODE_MODE,
    )
    assert names(first) == ["a.b", "p.x"]
    assert set(first.toolkits) == {"k"}
    assert first.count == 2
    assert first.published.get("a.b") is not None
    assert first.published.get("a.c") is None


def test_untouched_namespaces_are_shared_between_snapshots() -> None:
    before = holding(PutTool(tool("a", "b")), PutTool(tool("x", "y")))
    after = reduce(before, [PutTool(tool("a", "c"))], QUALIFIED).snapshot
    assert after.namespaces["x"] is before.namespaces["x"]


# Published names


@pytest.mark.parametrize(
    ("naming", "first", "second", "published"),
    [
        (Naming.PORTABLE, tool("a", "b.c"), tool("a", "b_c"), "a__b_c"),
        (Naming.PORTABLE, tool("a", "b"), tool("a__b", "c"), None),
        (Naming.PORTABLE, tool("a.x", "b"), tool("a/x", "b"), "a_x__b"),
        (Naming.BARE, tool("a", "list"), tool("b", "list"), "list"),
        (Naming.QUALIFIED, tool("a", "list"), tool("b", "list"), None),
    ],
)
def test_two_tools_of_one_published_name_are_refused_with_both_names(
    naming: Naming, first: Tool, second: Tool, published: str | None
) -> None:
    rules = Rules(naming=naming)
    before = holding(PutTool(first), rules=rules)
    if published is None:
        accepted(reduce(before, [PutTool(second)], rules))
        return
    assert refused(before, PutTool(second), rules) == (
        f"{second.qualified}: {second.qualified!r} and {first.qualified!r} would both be published as {published!r}: "
        "rename one of them"
    )
    assert before.published.get(published) == first


def test_a_source_with_a_published_name_of_another_namespace_is_refused_as_a_whole() -> None:
    rules = Rules(naming=Naming.BARE)
    before = holding(PutTool(tool("a", "list")), rules=rules)
    assert "'p.list' and 'a.list' would both be published as 'list'" in refused(
        before, put_source("p", "get", "list"), rules
    )


def test_a_source_whose_own_tools_share_a_published_name_is_refused() -> None:
    rules = Rules(naming=Naming.PORTABLE)
    reason = refused(snapshots.EMPTY, put_source("p", "a.b", "a_b"), rules)
    assert "'p.a.b' and 'p.a_b' would both be published as 'p__a_b'" in reason


def test_a_source_may_give_a_published_name_from_one_of_its_tools_to_another() -> None:
    rules = Rules(naming=Naming.PORTABLE)
    outcome = accepted(reduce(holding(put_source("p", "a.b"), rules=rules), [put_source("p", "a_b")], rules))
    found = outcome.snapshot.published.get("p__a_b")
    assert found is not None
    assert found.qualified == "p.a_b"
    assert outcome.snapshot.count == 1


def test_a_published_name_is_free_again_once_its_tool_is_removed() -> None:
    rules = Rules(naming=Naming.BARE)
    before = holding(PutTool(tool("a", "list")), rules=rules)
    outcome = reduce(before, [PutTool(tool("b", "list")), RemoveTool("a.list")], rules)
    assert names(outcome.snapshot) == ["b.list"]
    found = outcome.snapshot.published.get("list")
    assert found == tool("b", "list")


def test_a_tool_that_moves_to_another_split_gives_up_its_former_published_name() -> None:
    rules = Rules(naming=Naming.PORTABLE)
    outcome = reduce(holding(PutTool(tool("a.b", "c")), rules=rules), [PutTool(tool("a", "b.c"))], rules)
    assert outcome.snapshot.published.get("a_b__c") is None
    assert outcome.snapshot.published.get("a__b_c") == tool("a", "b.c")
    assert outcome.snapshot.count == 1


@pytest.mark.parametrize("change", [PutTool(tool("n", "call_tool")), put_source("n", "ok", "call_tool")])
def test_a_published_name_of_the_gateways_own_tools_is_refused(change: Change) -> None:
    rules = Rules(naming=Naming.BARE, reserved=frozenset({"call_tool"}))
    outcome = reduce(snapshots.EMPTY, [change], rules)
    (verdict,) = outcome.verdicts
    assert verdict.problem is not None
    assert "'n.call_tool' would be published as 'call_tool', which is a tool of the gateway itself" in str(
        verdict.problem
    )
    assert names(outcome.snapshot) == []
    qualified = Rules(reserved=rules.reserved)
    assert "n.call_tool" in names(reduce(snapshots.EMPTY, [change], qualified).snapshot)
