"""What is served, explained: from which resource and version, since when, for whom, and whether its backend answers.

Pure. Called by admin.explain.
"""

from __future__ import annotations

from arion_tds.admin.facts import Explanation, Origin, State, World, ago, origin
from arion_tds.auth import rbac
from arion_tds.auth.rbac import Token
from arion_tds.backends.mcp.address import shown
from arion_tds.catalog import Catalog
from arion_tds.history import Outcome, Verdict
from arion_tds.model.backend import McpBackend, OperationBackend, RestBackend
from arion_tds.model.context import nothing_granted
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.model.rbac import Rbac
from arion_tds.model.tool import Tool
from arion_tds.model.toolkit import Toolkit
from arion_tds.registry.snapshot import Namespace, Owner
from arion_tds.view import Entry

KINDS = {Owner.TOOLS: Kind.TOOL, Owner.SOURCE: Kind.SOURCE, Owner.SERVER: Kind.SERVER}


def tool(world: World, catalog: Catalog, entry: Entry, token: Token | None) -> Explanation:
    """A tool that is in the View."""
    one = entry.tool
    held = catalog.snapshot.namespaces.get(one.namespace)
    kind = KINDS[held.owner] if held is not None else Kind.TOOL
    resource = ResourceId(catalog.scope, one.qualified if kind is Kind.TOOL else one.namespace)
    source = origin(world, kind, resource)
    verdicts = world.history.of(kind, resource)
    findings = [
        _restriction(one, token),
        _disclosure(catalog, entry),
        _code_mode(catalog),
        backend_trouble(world, one),
        _newer(verdicts),
        _trying(world, catalog, one.namespace),
    ]
    said = [finding for finding in findings if finding is not None]
    state = said[0][0] if said else State.SERVED
    allowed = one.rbac is None or (nothing_granted(one.rbac) if token is None else rbac.allows(one.rbac, token))
    return Explanation(
        scope=catalog.scope,
        name=entry.published,
        state=state,
        summary=f"{entry.published!r} is served {_from(source, world.now)}" + (f"; {said[0][1]}" if said else ""),
        listed=allowed and (one.eager or catalog.gateway.search is None) and catalog.gateway.code_mode is None,
        callable=allowed and all(finding[0] is not State.UPSTREAM_DOWN for finding in said),
        origin=source,
        details=(*(sentence for _, sentence, _ in said[1:]), _backend(one)),
        advice=tuple(advice for _, _, advice in said if advice),
        history=verdicts,
    )


def namespace(world: World, catalog: Catalog, name: str, held: Namespace) -> Explanation:
    """A namespace that is owned: by tools, a source or a server."""
    kind = KINDS[held.owner]
    resource = ResourceId(catalog.scope, name)
    count = f"{len(held.tools)} tool{'s' if len(held.tools) != 1 else ''}"
    if held.owner is Owner.TOOLS:
        some = ", ".join(sorted(held.tools)[:5])
        summary = f"namespace {name!r} holds {count} that were pushed one by one, such as {some}"
        return Explanation(scope=catalog.scope, name=name, state=State.SERVED, summary=summary, listed=True)
    source = origin(world, kind, resource)
    verdicts = world.history.of(kind, resource)
    said = [finding for finding in (_newer(verdicts), _trying(world, catalog, name)) if finding is not None]
    left = left_out(world, kind, resource)
    parts = (f"left out ({len(left)}): {'; '.join(left[:5])}" + ("; …" if len(left) > 5 else ""),) if left else ()
    what = "OpenAPI source" if held.owner is Owner.SOURCE else "MCP server"
    return Explanation(
        scope=catalog.scope,
        name=name,
        state=said[0][0] if said else State.SERVED,
        summary=f"{what} {name!r} serves {count} {_from(source, world.now)}" + (f"; {said[0][1]}" if said else ""),
        listed=True,
        callable=True,
        origin=source,
        details=(*(sentence for _, sentence, _ in said[1:]), *parts),
        advice=tuple(advice for _, _, advice in said if advice),
        history=verdicts,
    )


def toolkit(world: World, catalog: Catalog, held: Toolkit) -> Explanation:
    """A toolkit of a gateway in code mode."""
    resource = ResourceId(catalog.scope, held.name)
    source = origin(world, Kind.TOOLKIT, resource)
    verdicts = world.history.of(Kind.TOOLKIT, resource)
    said = _newer(verdicts)
    return Explanation(
        scope=catalog.scope,
        name=held.name,
        state=State.SERVED if said is None else said[0],
        summary=f"toolkit {held.name!r} is served {_from(source, world.now)}"
        + ("" if said is None else f"; {said[1]}"),
        listed=True,
        callable=True,
        origin=source,
        advice=() if said is None else (said[2],),
        history=verdicts,
    )


def left_out(world: World, kind: Kind, resource: ResourceId) -> list[str]:
    """What of the accepted resource is not served, as sentences."""
    name = str(resource)
    return [one.reason for one in world.standing if one.accepted and one.kind == kind.short and one.name == name]


def command_advice(catalog: Catalog, namespace: str) -> str:
    """What to do about a server that the gateway itself starts, which has no URL to be corrected; "" for others."""
    if not any(one.namespace == namespace and one.is_local for one in catalog.gateway.servers):
        return ""
    return "correct its `command` (stdio_servers of the listener) and read the config again; its tools appear then"


_Finding = tuple[State, str, str]
"""What is the case, a sentence, and what to do ("" for nothing)."""


def _from(source: Origin, now: float) -> str:
    if source.kind == "static":
        return "from the gateway's own config"
    since = "" if source.since is None else f", accepted {ago(now - source.since)} ago"
    return f"from {source.kind} {source.resource} version {source.version!r}{since}"


def _restriction(one: Tool, token: Token | None) -> _Finding | None:
    if one.rbac is None:
        return None
    rule = _rule(one.rbac)
    if token is not None:
        if rbac.allows(one.rbac, token):
            return None
        why = f"a caller with these claims neither sees nor may call it: {rule}"
        return State.RESTRICTED, why, "change the claims of the token or the rbac of the resource"
    if nothing_granted(one.rbac):
        return None
    why = f"only some callers see it and may call it: {rule}"
    return State.RESTRICTED, why, "ask again with --claim NAME=VALUE to see it as a caller does"


def _rule(rule: Rbac) -> str:
    matchers = " or ".join(
        f"{'header' if one.header else 'claim'} {one.field} = {one.value!r}" for one in rule.permissions
    )
    return f"rbac {'DENY' if rule.deny else 'ALLOW'} {matchers}"


def _disclosure(catalog: Catalog, entry: Entry) -> _Finding | None:
    if catalog.gateway.search is None or entry.tool.eager:
        return None
    why = "it is not in tools/list: disclosure is progressive, so clients find it with search_tools and call it by name"
    return State.NOT_LISTED, why, "set its disclosure mode to EAGER to list it, or drop the gateway's search block"


def _code_mode(catalog: Catalog) -> _Finding | None:
    if catalog.gateway.code_mode is None:
        return None
    why = "it is not in tools/list: the gateway is in code mode, so it is called from code"
    return State.NOT_LISTED, why, ""


def _newer(verdicts: tuple[Verdict, ...]) -> _Finding | None:
    """Whether the last thing that was pushed was refused, so that something older is what serves."""
    if not verdicts or verdicts[-1].outcome is not Outcome.REJECTED:
        return None
    last = verdicts[-1]
    why = f"a newer version {last.version!r} was rejected and is not served: {last.reason}"
    return State.OLDER_VERSION, why, "correct the resource and push it again; what serves now stays until then"


def _trying(world: World, catalog: Catalog, namespace: str) -> _Finding | None:
    trying = world.trying.get((catalog.scope, namespace))
    if trying is None:
        return None
    why = f"a newer definition of the server waits: it was asked {trying.failures} times" + _because(trying.reason)
    advice = command_advice(catalog, namespace) or "start the server, or correct its URL and push it again"
    return State.OLDER_VERSION, why, advice


def _because(reason: str) -> str:
    return f", last: {reason}" if reason else ""


def backend_trouble(world: World, one: Tool) -> _Finding | None:
    """Why calls of the tool cannot work at the moment, if they cannot."""
    match one.backend:
        case McpBackend(server=url):
            status = world.upstreams.get(shown(url))
            if status is None or status.state != "failing":
                return None
            when = "" if status.last_error_at is None else f" ({ago(world.now - status.last_error_at)} ago)"
            why = f"its MCP server {shown(url)} fails{when}: {status.last_error}"
            return State.UPSTREAM_DOWN, why, "look at the MCP server; the next call tries it again"
        case RestBackend(cluster=cluster) | OperationBackend(cluster=cluster):
            return _cluster_trouble(world, cluster)


def _cluster_trouble(world: World, name: str) -> _Finding | None:
    cluster = world.clusters.get(name)
    if cluster is None:
        why = f"there is no cluster {name!r}: calls fail"
        return State.UPSTREAM_DOWN, why, f"define {name!r} under clusters in the gateway's config"
    if not cluster.endpoints or not all(endpoint.down for endpoint in cluster.endpoints):
        return None
    errors = "; ".join(f"{one.origin}: {one.last_error}" for one in cluster.endpoints[:3])
    return State.UPSTREAM_DOWN, f"no endpoint of cluster {name!r} takes connections: {errors}", "start the service"


def _backend(one: Tool) -> str:
    match one.backend:
        case McpBackend(server=url, tool=name):
            return f"calls go to tool {name!r} of MCP server {shown(url)}"
        case RestBackend(method=method, cluster=cluster):
            return f"calls go to cluster {cluster!r} as {method}"
        case OperationBackend(cluster=cluster):
            return f"calls go to cluster {cluster!r}"
