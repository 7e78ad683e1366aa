"""Why is it there, why is it not: one test per answer."""

from __future__ import annotations

import pytest
from admin_samples import NOW, URL, Stage, cluster, server, source, tool, upstream

from arion_tds.admin.explain import explain
from arion_tds.admin.facts import Plane, State, Trying
from arion_tds.auth.rbac import Token
from arion_tds.model.change import PutTool, RemoveTool
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.model.names import Naming
from arion_tds.model.rbac import Permission, Rbac
from arion_tds.model.server import McpServer
from arion_tds.problems import Standing

ONLY_ADMINS = Rbac(deny=False, permissions=(Permission("role", "admin"),))


async def test_a_served_tool_names_its_resource_version_and_since_when() -> None:
    stage = Stage()
    await stage.put_tool("ns.a", "7")
    said = stage.ask("ns.a")
    assert (said.state, said.listed, said.callable) == (State.SERVED, True, True)
    assert said.summary == "'ns.a' is served from Tool s/c/ns.a version '7', accepted 100 s ago"
    assert said.origin is not None
    assert (said.origin.kind, said.origin.resource, said.origin.since) == ("Tool", "s/c/ns.a", NOW - 100)
    assert "calls go to cluster 'api' as GET" in said.details


async def test_a_name_may_be_published_qualified_or_a_whole_resource_id() -> None:
    stage = Stage(naming=Naming.PORTABLE)
    await stage.put_tool("ns.a")
    for name in ("ns__a", "ns.a", "s/c/ns.a"):
        assert stage.ask(name).name == "ns__a"


async def test_a_tool_of_the_config_says_so() -> None:
    stage = Stage()
    await stage.catalog.commit([PutTool(tool("ns.a"))])
    assert stage.ask("ns.a").summary == "'ns.a' is served from the gateway's own config"


async def test_tools_of_a_source_name_the_source() -> None:
    stage = Stage()
    await stage.put(Kind.SOURCE, "shop", "3", source("shop", "list", "get"))
    said = stage.ask("shop.get")
    assert "from OpenApiToolSource s/c/shop version '3'" in said.summary
    assert stage.ask("shop").summary.startswith("OpenAPI source 'shop' serves 2 tools from OpenApiToolSource s/c/shop")


async def test_a_rejected_update_says_why_and_what_still_serves() -> None:
    stage = Stage()
    await stage.put_tool("ns.a", "1")
    stage.refuse(Kind.TOOL, "ns.a", "2", "method 'FETCH' is no HTTP method")
    said = stage.ask("ns.a")
    assert (said.state, said.callable) == (State.OLDER_VERSION, True)
    assert "version '1'" in said.summary
    assert "a newer version '2' was rejected" in said.summary
    assert "'FETCH'" in said.summary
    assert [one.version for one in said.history] == ["1", "2"]


async def test_a_rejected_tool_that_never_served_says_why() -> None:
    stage = Stage()
    stage.refuse(Kind.TOOL, "ns.a", "1", "path: must not be empty")
    said = stage.ask("ns.a")
    assert (said.state, said.listed, said.callable) == (State.REJECTED, False, False)
    assert said.summary == "tool s/c/ns.a version '1' was rejected 100 s ago: path: must not be empty"
    assert "arion-tds check" in said.advice[0]


async def test_a_rejected_tool_is_found_by_the_name_that_it_would_have_been_published_under() -> None:
    stage = Stage(naming=Naming.PORTABLE)
    stage.refuse(Kind.TOOL, "ns.a", "1", "bad")
    assert stage.ask("ns__a").state is State.REJECTED


async def test_a_namespace_with_another_owner_is_named() -> None:
    stage = Stage()
    await stage.put(Kind.SOURCE, "shop", "1", source("shop", "list"))
    stage.refuse(Kind.TOOL, "shop.mine", "1", "namespace 'shop' is owned by OpenAPI source 'shop'")
    said = stage.ask("shop.mine")
    assert said.state is State.OWNED_BY_ANOTHER
    assert "OpenAPI source 'shop'" in said.summary
    assert "one owner" in said.advice[0]


async def test_a_rejected_source_explains_the_tools_that_it_would_have_brought() -> None:
    stage = Stage()
    stage.refuse(Kind.SOURCE, "shop", "1", "the document is not OpenAPI")
    said = stage.ask("shop.list")
    assert said.state is State.REJECTED
    assert "OpenAPI source s/c/shop" in said.summary


async def test_a_server_that_is_asked_again_is_pending() -> None:
    stage = Stage()
    stage.refuse(Kind.SERVER, "up", "1", "connection refused")
    stage.knows(trying={("s/c", "up"): Trying(4, "connection refused")})
    for name in ("up.tool", "up"):
        said = stage.ask(name)
        assert said.state is State.PENDING
        assert "asked 4 times so far" in said.summary
        assert "connection refused" in said.summary
    assert [one.version for one in said.history] == ["1"]


async def test_a_local_server_has_a_command_to_be_corrected_and_no_url() -> None:
    local = McpServer(namespace="up", description="here", url="stdio:a/up")
    remote = McpServer(namespace="far", description="there", url="http://far/mcp")
    stage = Stage(servers=(local, remote))
    stage.knows(trying={("s/c", one): Trying(3, "FileNotFoundError") for one in ("up", "far")})
    assert stage.ask("up.tool").advice == (
        "correct its `command` (stdio_servers of the listener) and read the config again; its tools appear then",
    )
    assert stage.ask("far.tool").advice == ("start the server or correct its URL; its tools appear without a new push",)


async def test_a_static_server_that_is_asked_again_is_pending_too() -> None:
    stage = Stage()
    stage.knows(trying={("s/c", "up"): Trying(1, "")})
    assert stage.ask("up.tool").state is State.PENDING


async def test_a_newer_server_that_waits_leaves_the_older_one_serving() -> None:
    stage = Stage()
    await stage.put(Kind.SERVER, "up", "1", server("up", "t"))
    stage.knows(trying={("s/c", "up"): Trying(2, "refused")})
    said = stage.ask("up.t")
    assert said.state is State.OLDER_VERSION
    assert "asked 2 times, last: refused" in said.summary


async def test_rbac_hides_a_tool_from_those_without_the_claim() -> None:
    stage = Stage()
    await stage.put_tool("ns.a", rbac=ONLY_ADMINS)
    said = stage.ask("ns.a")
    assert (said.state, said.listed, said.callable) == (State.RESTRICTED, False, False)
    assert "rbac ALLOW claim role = 'admin'" in said.summary
    assert stage.ask("ns.a", token=Token({}, {"role": "user"})).state is State.RESTRICTED
    admin = stage.ask("ns.a", token=Token({}, {"role": "admin"}))
    assert (admin.state, admin.listed, admin.callable) == (State.SERVED, True, True)


async def test_a_deny_rule_does_not_hide_a_tool_from_everybody() -> None:
    stage = Stage()
    await stage.put_tool("ns.a", rbac=Rbac(deny=True, permissions=(Permission("kid", "old", header=True),)))
    assert stage.ask("ns.a").state is State.SERVED
    said = stage.ask("ns.a", token=Token({"kid": "old"}, {}))
    assert said.state is State.RESTRICTED
    assert "rbac DENY header kid = 'old'" in said.summary


async def test_progressive_disclosure_hides_a_tool_from_the_list_alone() -> None:
    stage = Stage(search=True)
    await stage.put_tool("ns.a")
    await stage.put_tool("ns.eager", eager=True)
    said = stage.ask("ns.a")
    assert (said.state, said.listed, said.callable) == (State.NOT_LISTED, False, True)
    assert "search_tools" in said.summary
    assert stage.ask("ns.eager").state is State.SERVED


async def test_code_mode_lists_no_tool() -> None:
    stage = Stage(code=True)
    await stage.put_tool("ns.a")
    said = stage.ask("ns.a")
    assert (said.state, said.listed) == (State.NOT_LISTED, False)


async def test_an_operation_that_the_source_leaves_out_says_why() -> None:
    stage = Stage()
    await stage.put(Kind.SOURCE, "shop", "1", source("shop", "list", exclude=("drop",)))
    left = Standing("OpenApiToolSource", "s/c/shop", "1", "TRACE /x (trace_it): TRACE is not supported", 0.0, True)
    stage.knows(standing=[left])
    said = stage.ask("shop.trace_it")
    assert said.state is State.LEFT_OUT
    assert "TRACE is not supported" in said.summary
    assert "exclude_operations" in stage.ask("shop.drop").summary
    assert "left out (1): " in stage.ask("shop").details[0]
    vague = stage.ask("shop.other")
    assert vague.state is State.LEFT_OUT
    assert "perhaps this one" in vague.details[0]


async def test_an_operation_that_is_not_included_says_so() -> None:
    stage = Stage()
    await stage.put(Kind.SOURCE, "shop", "1", source("shop", "list", include=("list",)))
    assert "include_operations" in stage.ask("shop.drop").summary


async def test_a_tool_that_the_server_does_not_list_says_so() -> None:
    stage = Stage()
    await stage.put(Kind.SERVER, "up", "1", server("up", "get_it"))
    said = stage.ask("up.getit")
    assert said.state is State.UNKNOWN
    assert "serves nothing called 'getit'" in said.summary
    assert said.suggestions == ("up.get_it",)


async def test_an_mcp_server_that_is_down_is_said_beside_what_serves() -> None:
    stage = Stage()
    await stage.put(Kind.SERVER, "up", "1", server("up", "t"))
    stage.knows(upstreams={URL: upstream(state="failing", last_error="connection refused", last_error_at=NOW - 5)})
    said = stage.ask("up.t")
    assert (said.state, said.listed, said.callable) == (State.UPSTREAM_DOWN, True, False)
    assert f"its MCP server {URL} fails (5 s ago): connection refused" in said.summary
    stage.knows(upstreams={URL: upstream(state="ok", last_error="old news", last_error_at=NOW - 5)})
    assert stage.ask("up.t").state is State.SERVED


async def test_a_cluster_without_a_live_endpoint_or_not_there_at_all_is_said() -> None:
    stage = Stage()
    await stage.put_tool("ns.a")
    stage.knows(clusters={"api": cluster(down=True)})
    assert "no endpoint of cluster 'api' takes connections" in stage.ask("ns.a").summary
    stage.knows(clusters={})
    said = stage.ask("ns.a")
    assert said.state is State.UPSTREAM_DOWN
    assert "under clusters" in said.advice[0]


async def test_a_removed_tool_says_when() -> None:
    stage = Stage()
    await stage.put_tool("ns.a")
    await stage.catalog.commit([RemoveTool("ns.a")])
    stage.history.removed(Kind.TOOL, ResourceId("s/c", "ns.a"))
    said = stage.ask("ns.a")
    assert said.state is State.REMOVED
    assert "removed by the control plane 100 s ago" in said.summary


async def test_a_toolkit_in_tools_mode_is_accepted_and_ignored() -> None:
    stage = Stage()
    stage.history.accepted(Kind.TOOLKIT, ResourceId("s/c", "kit"), "1")
    said = stage.ask("kit")
    assert said.state is State.IGNORED
    assert "tools mode" in said.summary


async def test_an_unknown_scope_names_those_that_there_are() -> None:
    stage = Stage()
    said = stage.ask("ns.a", scope="s/d")
    assert said.state is State.UNKNOWN_SCOPE
    assert "it serves s/c" in said.summary
    assert said.suggestions == ("s/c",)
    assert stage.ask("other/main/ns.a").state is State.UNKNOWN_SCOPE


async def test_a_control_plane_that_is_away_is_said_where_nothing_is_known() -> None:
    stage = Stage()
    stage.knows(plane=Plane(address="plane:1", connected=False, settled=False, last_error="UNAVAILABLE: refused"))
    said = stage.ask("ns.a")
    assert said.state is State.CONTROL_PLANE_AWAY
    assert "plane:1 is away (last: UNAVAILABLE: refused)" in said.summary
    stage.knows(plane=Plane(address="plane:1", connected=True, settled=False))
    assert "still coming in" in stage.ask("ns.a").summary


async def test_a_name_that_was_never_sent_gets_near_names_and_a_hint_of_where_it_is() -> None:
    stage, other = Stage(), Stage(scope="b/main")
    await stage.put_tool("weather.get_forecast")
    await other.put_tool("weather.get_forcast")
    stage.knows(catalogs={"s/c": stage.catalog, "b/main": other.catalog})
    said = stage.ask("weather.get_forcast", scope="s/c")
    assert said.state is State.UNKNOWN
    assert said.summary == "the control plane has sent nothing called 'weather.get_forcast' for s/c"
    assert said.suggestions == ("weather.get_forecast",)
    assert said.details == ("it is served in scope b/main",)


async def test_a_malformed_id_is_found_in_the_last_nack() -> None:
    stage = Stage()
    plane = Plane(address="p:1", connected=True, settled=True, nacks={Kind.TOOL: "1 of 1 rejected: s/ns.a: malformed"})
    stage.knows(plane=plane)
    assert "the last NACK of Tool speaks of it" in stage.ask("ns.a").details[0]


async def test_without_a_scope_the_scopes_that_know_the_name_answer_and_else_all() -> None:
    stage, other = Stage(), Stage(scope="b/main")
    await stage.put_tool("ns.a")
    stage.knows(catalogs={"s/c": stage.catalog, "b/main": other.catalog})
    assert [one.scope for one in explain(stage.world, "ns.a")] == ["s/c"]
    assert [one.scope for one in explain(stage.world, "nothing.like_it")] == ["s/c", "b/main"]


@pytest.mark.parametrize("name", ["", ".", "/", "a/b/", "__", "." * 200, "a/b/c/d", "\x00", "ns.a" * 100])
async def test_any_text_gets_an_answer(name: str) -> None:
    stage = Stage()
    await stage.put_tool("ns.a")
    assert stage.ask(name).summary
