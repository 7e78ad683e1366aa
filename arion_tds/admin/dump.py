"""What the gateway holds, as JSON values for the operator's pages. Pure: values in, values out.

Called by admin.panel, which takes large things in pieces. No secret is in what comes in: config names secrets by file
or variable and never holds them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from arion_tds.admin.facts import Explanation
from arion_tds.catalog import Catalog
from arion_tds.history import Verdict
from arion_tds.model.backend import McpBackend, OperationBackend, RestBackend
from arion_tds.model.delivery import Kind
from arion_tds.problems import Standing
from arion_tds.registry.snapshot import Namespace
from arion_tds.view import Entry
from arion_tds.xds.stream import AdsStatus

_BACKENDS: Final[dict[type, str]] = {RestBackend: "rest", OperationBackend: "openapi", McpBackend: "mcp"}


def scope(catalog: Catalog) -> dict[str, object]:
    """A scope without its namespaces."""
    counts = catalog.tokens
    return {
        "scope": catalog.scope,
        "tds": catalog.gateway.scope is not None,
        "server_info": {"name": catalog.gateway.name, "version": catalog.gateway.version},
        "tool_names": catalog.naming.value,
        "revision": catalog.published.view.revision,
        "tools": len(catalog.published.view.tools),
        "tokens": {"total": counts.total, "exact": counts.exact and not counts.pending},
        "toolkits": sorted(catalog.snapshot.toolkits),
    }


def namespace(held: Namespace, cost: int) -> dict[str, object]:
    """Who owns it, what its tools cost, and their names."""
    tools = sorted(tool.qualified for tool in held.tools.values())
    return {"owner": held.owner.value, "tokens": cost, "tools": tools}


def namespace_in_short(held: Namespace, cost: int) -> dict[str, object]:
    """Like `namespace`, with the number of tools alone."""
    return {"owner": held.owner.value, "tokens": cost, "tools": len(held.tools)}


def tool(catalog: Catalog, entry: Entry) -> dict[str, object]:
    """One line of a list of tools."""
    one = entry.tool
    held = catalog.snapshot.namespaces.get(one.namespace)
    return {
        "name": entry.published,
        "qualified": one.qualified,
        "namespace": one.namespace,
        "description": one.description,
        "owner": None if held is None else held.owner.value,
        "backend": _BACKENDS[type(one.backend)],
        "eager": one.eager,
        "restricted": one.rbac is not None,
        "tokens": catalog.tokens.of(entry),
    }


def explanation(one: Explanation) -> dict[str, Any]:
    """As `/explain` shows it: without what is empty."""
    return {name: value for name, value in dataclasses.asdict(one).items() if value is not None and value != ()}


def record(kind: Kind, name: str, verdicts: tuple[Verdict, ...]) -> dict[str, object]:
    """A resource and its last verdicts, oldest first."""
    return {"type": kind.short, "name": name, "verdicts": [dataclasses.asdict(one) for one in verdicts]}


def standing(one: Standing) -> dict[str, object]:
    """Something that stands rejected or left out, with reason and time (seconds since the epoch)."""
    return {
        "type": one.kind,
        "name": one.name,
        "version": one.version,
        "reason": one.reason,
        "at": one.at,
        "state": "partly served" if one.accepted else "rejected",
    }


def control_plane(address: str, status: AdsStatus, now: float) -> dict[str, object]:
    """The stream: up or not, since when, how old the content is, and what each type has seen. `now`: the same clock."""
    age = None if status.last_response_at is None else round(now - status.last_response_at, 3)
    since = None if status.connected_since is None else round(now - status.connected_since, 3)
    return {
        "address": address,
        "connected": status.connected,
        "connected_for_seconds": since,
        "last_response_age_seconds": age,
        "attempts": status.attempts,
        "last_error": status.last_error,
        "types": {kind.short: _type(state) for kind, state in status.types.items()},
    }


def _type(state: object) -> dict[str, object]:
    slots: Mapping[str, object] = {name: getattr(state, name) for name in getattr(state, "__slots__", ())}
    return dict(slots)
