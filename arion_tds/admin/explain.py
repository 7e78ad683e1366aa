"""Why a tool is, or is not, where somebody looks for it. Pure: values in, `Explanation`s out.

In: a name as anybody may write it (published, qualified, a namespace, a toolkit, a whole resource ID) and, if it
matters, the claims of a caller. Out: one explanation per scope that has something to say. Called by admin.http for
`/explain`. What is served is explained in `serving`, what is not in `absence`; here it is decided which.
"""

from __future__ import annotations

from typing import Final

from arion_tds.admin import absence, serving
from arion_tds.admin.facts import Explanation, State, World
from arion_tds.admin.near import near
from arion_tds.auth.rbac import Token
from arion_tds.catalog import Catalog

MAX_SCOPES: Final = 10
"""Scopes that one answer speaks of where none was named."""


def explain(world: World, name: str, scope: str | None = None, token: Token | None = None) -> list[Explanation]:
    """What there is to say about the name: in the scope, or without one wherever it is known, else everywhere.

    `token`: the claims of the caller whose view is asked for; None: nobody in particular.
    """
    wanted, bare = _split(world, name)
    scope = scope or wanted
    if scope is not None:
        catalog = world.catalogs.get(scope)
        if catalog is None:
            return [_unknown_scope(world, scope, bare)]
        return [_in(world, catalog, bare, token)]
    catalogs = list(world.catalogs.values())
    knowing = [catalog for catalog in catalogs if _knows(world, catalog, bare)]
    return [_in(world, catalog, bare, token) for catalog in (knowing or catalogs)[:MAX_SCOPES]]


def _knows(world: World, catalog: Catalog, name: str) -> bool:
    """Whether the scope has anything to say about the name, found out cheaply: there may be a thousand scopes."""
    snapshot = catalog.snapshot
    if catalog.published.view.find(name) is not None or name in snapshot.toolkits:
        return True
    return absence.heard(world, catalog, name)


def _in(world: World, catalog: Catalog, name: str, token: Token | None) -> Explanation:
    entry = catalog.published.view.find(name)
    if entry is not None:
        return serving.tool(world, catalog, entry, token)
    namespace = catalog.snapshot.namespaces.get(name)
    if namespace is not None:
        return serving.namespace(world, catalog, name, namespace)
    toolkit = catalog.snapshot.toolkits.get(name)
    if toolkit is not None:
        return serving.toolkit(world, catalog, toolkit)
    return absence.absent(world, catalog, name)


def _split(world: World, name: str) -> tuple[str | None, str]:
    """A resource ID begins with its scope: the longest scope of ours that the name begins with, and the rest."""
    server, slash, rest = name.partition("/")
    config, more, resource = rest.partition("/")
    if not slash or not more or not (server and config and resource):
        return None, name
    scope = f"{server}/{config}"
    # A tool's own name may hold slashes: only what looks like an ID is one, unless a gateway serves the name itself.
    if scope not in world.catalogs and any(one.published.view.find(name) for one in world.catalogs.values()):
        return None, name
    return scope, resource


def _unknown_scope(world: World, scope: str, name: str) -> Explanation:
    close = near(scope, world.catalogs, limit=3)
    there = ", ".join(list(world.catalogs)[:5]) + (", …" if len(world.catalogs) > 5 else "")
    return Explanation(
        scope=scope,
        name=name,
        state=State.UNKNOWN_SCOPE,
        summary=f"no listener of this gateway serves the scope {scope!r}; it serves {there}",
        details=("resources of a scope that nobody serves are accepted and have no effect",),
        advice=(
            "a scope is <server_info.name>/<tds.config_name> of a listener's mcp_gateway: "
            "correct the resource name, or add a listener for the scope",
        ),
        suggestions=close,
    )
