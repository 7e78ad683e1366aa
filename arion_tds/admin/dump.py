"""What the gateway holds, as JSON values for `/config_dump`, `/problems` and `/readyz`. Pure: values in, values out.

Called by admin.http. No secret is in what comes in: config names secrets by file or variable and never holds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from arion_tds.catalog import Catalog
from arion_tds.problems import Problems, Standing
from arion_tds.registry.snapshot import Namespace
from arion_tds.xds.stream import AdsStatus


def catalogs(found: Iterable[Catalog]) -> list[dict[str, object]]:
    """One object per scope: its tools by namespace, who owns each, what they cost, and how often it was published."""
    return [_catalog(one) for one in found]


def _catalog(catalog: Catalog) -> dict[str, object]:
    counts = catalog.tokens
    costs = counts.by_namespace()
    return {
        "scope": catalog.scope,
        "tds": catalog.gateway.scope is not None,
        "server_info": {"name": catalog.gateway.name, "version": catalog.gateway.version},
        "tool_names": catalog.naming.value,
        "revision": catalog.published.view.revision,
        "tools": len(catalog.published.view.tools),
        "tokens": {"total": sum(costs.values()), "exact": counts.exact and not counts.pending},
        "namespaces": {
            name: _namespace(held, costs.get(name, 0)) for name, held in sorted(catalog.snapshot.namespaces.items())
        },
        "toolkits": sorted(catalog.snapshot.toolkits),
    }


def _namespace(held: Namespace, cost: int) -> dict[str, object]:
    tools = sorted(tool.qualified for tool in held.tools.values())
    return {"owner": held.owner.value, "tokens": cost, "tools": tools}


def problems(held: Problems) -> dict[str, object]:
    """Everything that stands rejected, with reason and time (seconds since the epoch)."""
    return {"problems": [_standing(one) for one in held.standing()], "dropped": held.dropped}


def _standing(one: Standing) -> dict[str, object]:
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
