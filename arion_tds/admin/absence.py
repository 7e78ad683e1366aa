"""What is not served, explained: rejected, owned by another, waiting, left out, removed, or never heard of.

Pure. Called by admin.explain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from arion_tds.admin.facts import Explanation, State, World, ago
from arion_tds.admin.near import near
from arion_tds.admin.serving import KINDS, command_advice, left_out
from arion_tds.catalog import Catalog
from arion_tds.history import Outcome, Verdict
from arion_tds.model import names
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.model.source import OpenApiSource
from arion_tds.registry.snapshot import Owner

_OWNED: Final = re.compile(r"is owned by|is taken: namespace")
_TITLES: Final = {
    Kind.TOOL: "tool",
    Kind.SOURCE: "OpenAPI source",
    Kind.SERVER: "MCP server",
    Kind.TOOLKIT: "toolkit",
}
_FIX: Final = "correct the resource and push it again (arion-tds check judges documents before they are pushed)"


def absent(world: World, catalog: Catalog, name: str) -> Explanation:
    """Why nothing is served under the name."""
    for kind, resource, verdict in _delivered(world, catalog, name):
        return _judged(world, catalog, name, (kind, resource, verdict))
    for namespace, local in _splits(name):
        waits = world.trying.get((catalog.scope, namespace))
        if waits is not None:
            last = f"; last: {waits.reason}" if waits.reason else ""
            return _pending(catalog, name, namespace, f"asked {waits.failures} times so far{last}", ())
        if local and namespace in catalog.snapshot.namespaces:
            return _not_in(world, catalog, name, namespace, local)
    return _unheard(world, catalog, name)


def heard(world: World, catalog: Catalog, name: str) -> bool:
    """Whether the scope was ever told of the name, or of what would bring it."""
    if any(world.history.of(kind, ResourceId(catalog.scope, name)) for kind in (Kind.TOOL, Kind.TOOLKIT)):
        return True
    for namespace, _ in _splits(name):
        resource = ResourceId(catalog.scope, namespace)
        if namespace in catalog.snapshot.namespaces or (catalog.scope, namespace) in world.trying:
            return True
        if any(world.history.of(kind, resource) for kind in (Kind.SOURCE, Kind.SERVER)):
            return True
    return False


def _delivered(world: World, catalog: Catalog, name: str) -> Iterator[tuple[Kind, ResourceId, Verdict]]:
    """What was pushed under the name, or under the namespace that would have brought it; the last verdict of each."""
    wanted = [(Kind.TOOL, name), (Kind.TOOLKIT, name)]
    wanted += [(kind, namespace) for namespace, _ in _splits(name) for kind in (Kind.SOURCE, Kind.SERVER)]
    served = catalog.snapshot.namespaces
    for kind, named in wanted:
        resource = ResourceId(catalog.scope, named)
        verdicts = world.history.of(kind, resource)
        held = served.get(named)
        if verdicts and (held is None or KINDS[held.owner] is not kind):
            yield kind, resource, verdicts[-1]
    # Somebody may ask by the published name (`ns__tool`), of which the pushed one cannot be read.
    for kind, named, verdict in world.history.latest(catalog.scope):
        if kind is Kind.TOOL and verdict.outcome is not Outcome.ACCEPTED and named != name:
            namespace, _, local = named.partition(".")
            if names.published(catalog.naming, namespace, local) == name:
                yield kind, ResourceId(catalog.scope, named), verdict


def _judged(world: World, catalog: Catalog, name: str, found: tuple[Kind, ResourceId, Verdict]) -> Explanation:
    kind, resource, verdict = found
    title = f"{_TITLES[kind]} {resource}"
    when = ago(world.now - verdict.last_at)
    verdicts = world.history.of(kind, resource)
    if verdict.outcome is Outcome.REMOVED:
        summary = f"{title} was removed by the control plane {when} ago"
        return Explanation(
            scope=catalog.scope, name=name, state=State.REMOVED, summary=summary, history=verdicts,
            advice=("push the resource again to have it back",),
        )  # fmt: skip
    if verdict.outcome is Outcome.ACCEPTED:
        return _ignored(catalog, name, title, kind, verdicts)
    if (catalog.scope, resource.name) in world.trying and kind is Kind.SERVER:
        waits = world.trying[catalog.scope, resource.name]
        said = f"asked {waits.failures} times so far; {waits.reason or verdict.reason}"
        return _pending(catalog, name, resource.name, said, verdicts)
    owned = _OWNED.search(verdict.reason) is not None
    summary = f"{title} version {verdict.version!r} was rejected {when} ago: {verdict.reason}"
    return Explanation(
        scope=catalog.scope,
        name=name,
        state=State.OWNED_BY_ANOTHER if owned else State.REJECTED,
        summary=summary,
        details=("nothing of an older version is served under this name",),
        advice=(
            ("a namespace has one owner: remove the other owner first, or use another namespace",) if owned else (_FIX,)
        ),
        history=verdicts,
    )


def _ignored(catalog: Catalog, name: str, title: str, kind: Kind, verdicts: tuple[Verdict, ...]) -> Explanation:
    """Accepted, and yet not there: a toolkit in tools mode, or a tool that a later change took along."""
    if kind is Kind.TOOLKIT:
        summary = f"{title} was accepted and has no effect: this gateway is in tools mode"
        advice = "toolkits count in code mode only: set code_mode in the listener's mcp_gateway"
    elif kind is Kind.TOOL:
        summary = f"{title} was accepted, but is not served any more: its name or namespace was taken over since"
        advice = "push the resource again and read the verdict"
    else:
        summary = f"{title} is accepted and has no tool of this name"
        advice = "look at what the source or server offers"
    return Explanation(
        scope=catalog.scope, name=name, state=State.IGNORED, summary=summary, advice=(advice,), history=verdicts
    )


def _pending(catalog: Catalog, name: str, namespace: str, said: str, verdicts: tuple[Verdict, ...]) -> Explanation:
    return Explanation(
        scope=catalog.scope,
        name=name,
        state=State.PENDING,
        summary=f"MCP server {namespace!r} has not listed its tools yet and is asked again until it does: {said}",
        advice=(
            command_advice(catalog, namespace)
            or "start the server or correct its URL; its tools appear without a new push",
        ),
        history=verdicts,
    )


def _not_in(world: World, catalog: Catalog, name: str, namespace: str, local: str) -> Explanation:
    """The namespace is there, the tool is not in it."""
    held = catalog.snapshot.namespaces[namespace]
    close = near(name, catalog.published.view.tools)
    if held.owner is Owner.TOOLS:
        return _unheard(world, catalog, name)
    kind = KINDS[held.owner]
    resource = ResourceId(catalog.scope, namespace)
    title = f"{_TITLES[kind]} {namespace!r}"
    left = left_out(world, kind, resource)
    word = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(local)}(?![A-Za-z0-9_])")
    reasons = [one for one in left if word.search(one)]
    definition = held.definition
    if isinstance(definition, OpenApiSource) and local in definition.exclude:
        reasons.insert(0, f"operation {local!r} is in exclude_operations")
    elif isinstance(definition, OpenApiSource) and definition.include and local not in definition.include:
        reasons.append(f"include_operations names {len(definition.include)} operations and {local!r} is not among them")
    details: tuple[str, ...] = ()
    if reasons:
        state, summary = State.LEFT_OUT, f"{title} serves without {local!r}: {'; '.join(reasons[:3])}"
    else:
        state = State.UNKNOWN
        summary = f"{title} serves nothing called {local!r} (tools: {len(held.tools)})"
        if left:
            state = State.LEFT_OUT
            details = (f"left out ({len(left)}), perhaps this one: {'; '.join(left[:5])}",)
    return Explanation(
        scope=catalog.scope,
        name=name,
        state=state,
        summary=summary,
        details=details,
        advice=("correct the document, its include and exclude lists, or the server",),
        history=world.history.of(kind, resource),
        suggestions=close,
    )


def _unheard(world: World, catalog: Catalog, name: str) -> Explanation:
    """Nothing of the name was ever delivered to this scope, as far as is remembered."""
    elsewhere = [one.scope for one in world.catalogs.values() if one.published.view.find(name) is not None]
    details = [f"it is served in scope {', '.join(elsewhere[:5])}"] if elsewhere else []
    plane = world.plane
    advice = f"push a resource named {catalog.scope}/{name}"
    state = State.UNKNOWN
    if catalog.gateway.scope is None or plane is None:
        summary = f"{catalog.scope} serves what its config holds, and that has nothing called {name!r}"
        advice = "add the tool to the listener's mcp_gateway, or give it tds and a control plane"
    elif not plane.connected:
        state = State.CONTROL_PLANE_AWAY
        last = f" (last: {plane.last_error})" if plane.last_error else ""
        summary = f"nothing called {name!r} has arrived, and the control plane {plane.address} is away{last}"
        advice = "start the control plane, or correct control_plane.address; what it sent before stays served"
    elif not plane.settled:
        state = State.CONTROL_PLANE_AWAY
        summary = f"nothing called {name!r} has arrived yet: the control plane's first content is still coming in"
        advice = "ask again in a few seconds"
    else:
        summary = f"the control plane has sent nothing called {name!r} for {catalog.scope}"
        details += _in_nacks(plane.nacks, name)
    return Explanation(
        scope=catalog.scope,
        name=name,
        state=state,
        summary=summary,
        details=tuple(details),
        advice=(advice,),
        suggestions=near(name, catalog.published.view.tools),
    )


def _in_nacks(nacks: Mapping[Kind, str], name: str) -> list[str]:
    """A resource with a malformed ID belongs to no scope: only the NACK of its response knows of it."""
    return [f"the last NACK of {kind.short} speaks of it: {text[:500]}" for kind, text in nacks.items() if name in text]


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """How the name may fall into namespace and local name: whole, at each dot, at a double underscore."""
    yield name, ""
    for match in re.finditer(r"\.|__", name):
        namespace, local = name[: match.start()], name[match.end() :]
        if namespace and local:
            yield namespace, local
