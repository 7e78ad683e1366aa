"""Lists by permission set: what each caller sees, made once per set, and whom a change concerns."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from arion_tds import listing
from arion_tds import view as views
from arion_tds.auth.access import TokenCaller
from arion_tds.auth.rbac import Token
from arion_tds.model.backend import McpBackend
from arion_tds.model.caller import Anonymous, Caller
from arion_tds.model.names import Naming
from arion_tds.model.rbac import Permission, Rbac
from arion_tds.model.tool import Tool
from arion_tds.schema import EMPTY_OBJECT
from arion_tds.view import View

BACKEND = McpBackend("http://up.example/mcp", "x")


def only(role: str, *, deny: bool = False) -> Rbac:
    return Rbac(deny, (Permission("role", role),))


POLICIES: list[Rbac | None] = [None, only("dev"), only("ops"), only("dev", deny=True), only("boss")]


def tool(name: str, rbac: Rbac | None = None, description: str = "d", *, eager: bool = False) -> Tool:
    return Tool(
        namespace="a", name=name, description=description, input_schema=EMPTY_OBJECT, backend=BACKEND, rbac=rbac,
        eager=eager,
    )  # fmt: skip


def caller(*roles: str) -> Caller:
    return TokenCaller(Token({}, {"role": list(roles)}), "p:x", None, float)


def served(*tools: Tool, eager_only: bool = False) -> View:
    return changed(views.empty(Naming.QUALIFIED), [], tools, eager_only=eager_only)


def changed(view: View, gone: Sequence[Tool], come: Sequence[Tool], *, eager_only: bool = False) -> View:
    entries = [views.entry(one, Naming.QUALIFIED) for one in come]
    return view.replace(gone, entries, {}, eager_only=eager_only)


def plainly(view: View, who: Caller) -> list[str]:
    """What the caller sees, one look at each tool."""
    return [name for name in view.order if who.allows(view.tools[name].tool.rbac)]


def test_callers_with_the_same_permissions_share_one_list() -> None:
    view = served(*[tool(f"t{n}", POLICIES[n % 5]) for n in range(20)])
    first = view.listed(caller("dev"))
    assert view.listed(caller("dev", "unknown")) is first
    assert view.listed(caller("ops")) is not first
    assert view.listed(Anonymous()) == plainly(view, Anonymous())


def test_without_restricted_tools_everybody_has_the_one_list() -> None:
    view = served(tool("x"), tool("y"))
    assert view.listed(Anonymous()) is view.order
    assert view.listed(caller("dev")) is view.order


def test_who_may_use_everything_has_the_one_list_too() -> None:
    view = served(tool("x"), tool("y", only("dev")))
    assert view.listed(caller("dev")) is view.order


def test_a_list_is_mended_by_a_small_change_and_kept_by_one_that_leaves_its_names() -> None:
    first = served(*[tool(f"t{n}", POLICIES[n % 3]) for n in range(9)])
    dev = caller("dev")
    listed = first.listed(dev)
    second = changed(first, [tool("t1", POLICIES[1])], [tool("t1", POLICIES[1], "other words")])
    assert second.list_revision == first.list_revision + 1
    assert second.listed(dev) == listed
    third = changed(second, [], [tool("t55", only("dev")), tool("t56", only("ops"))])
    assert third.listed(dev) == plainly(third, dev)
    assert "a.t55" in plainly(third, dev)
    assert "a.t56" not in plainly(third, dev)


def test_with_too_many_policies_no_lists_are_kept() -> None:
    many = [tool(f"t{n:05}", only(f"role {n}")) for n in range(listing.MAX_GUARDS + 1)]
    view = served(*many)
    assert view.listed(caller("role 3")) is None
    fewer = changed(view, many[:1], [])
    assert fewer.listed(caller("role 3")) == ["a.t00003"]


def test_only_so_many_permission_sets_are_kept() -> None:
    view = served(*[tool(f"t{n:03}", only(f"r{n}")) for n in range(100)])
    first = view.listed(caller("r0"))
    for number in range(1, 70):
        assert view.listed(caller(f"r{number}")) == [f"a.t{number:03}"]
    again = view.listed(caller("r0"))
    assert again == first
    assert again is not first


def test_a_tool_that_becomes_restricted_is_a_change_for_those_who_lose_it() -> None:
    first = served(tool("x"), tool("y"))
    second = changed(first, [tool("x")], [tool("x", only("dev"))])
    assert second.list_revision == first.list_revision + 1
    assert second.list_change.concerns(Anonymous().allows)
    assert not second.list_change.concerns(caller("dev").allows)


def test_what_is_not_listed_concerns_nobody() -> None:
    first = served(tool("x", eager=True), eager_only=True)
    second = changed(first, [], [tool("y", only("dev"))], eager_only=True)
    assert second.list_revision == first.list_revision
    assert not second.list_change
    assert second.listed(caller("dev")) == ["a.x"]


names = st.sampled_from([f"t{n}" for n in range(12)])
steps = st.lists(
    st.tuples(st.lists(st.tuples(names, st.sampled_from(POLICIES), st.sampled_from("de"), st.booleans()), max_size=5),
              st.lists(names, max_size=3), st.booleans()),
    max_size=8,
)  # fmt: skip


@settings(max_examples=50)
@given(steps, st.booleans())
def test_lists_and_notices_agree_with_a_plain_look_at_every_tool(
    script: list[tuple[list[tuple[str, Rbac | None, str, bool]], list[str], bool]], eager_only: bool
) -> None:
    people = [Anonymous(), caller("dev"), caller("ops"), caller("dev", "ops", "boss")]
    view = views.empty(Naming.QUALIFIED)
    for puts, removals, look in script:
        come = {name: tool(name, rbac, text, eager=eager) for name, rbac, text, eager in puts}
        touched = {*come, *removals}
        gone = [view.tools[f"a.{name}"].tool for name in sorted(touched) if f"a.{name}" in view.tools]
        old, view = view, changed(view, gone, list(come.values()), eager_only=eager_only)
        assert view.restricted == sum(entry.tool.rbac is not None for entry in view.tools.values())
        told = view.list_revision != old.list_revision
        assert told == bool(view.list_change)
        for who in people:
            assert view.order == sorted(view.order)
            before = [old.tools[name].modern for name in plainly(old, who)]
            after = [view.tools[name].modern for name in plainly(view, who)]
            assert (told and view.list_change.concerns(who.allows)) == (before != after)
            if look:
                assert view.listed(who) == plainly(view, who)
    for who in people:
        assert view.listed(who) == plainly(view, who)
