"""The status page as JSON values. Pure.

In: the snapshot and sessions. Out: dicts for `GET /status`. Called by server.
"""

from __future__ import annotations

import datetime
from typing import Any

from control_plane_example.documents import kind_of
from control_plane_example.session import Session
from control_plane_example.snapshot import Snapshot
from control_plane_example.subscription import WILDCARD, Subscription


def fleets(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    """Fleet → kind → how many resources."""
    return {
        fleet: {kind_of(url): len(snapshot.catalog(fleet, url)) for url in snapshot.types(fleet)}
        for fleet in snapshot.fleets
    }


def stream(session: Session, peer: str, since: float) -> dict[str, Any]:
    """One stream: who, since when (seconds since 1970 become ISO 8601), and per kind what was sent and answered."""
    declared = session.declared
    return {
        "stream": session.number,
        "peer": peer,
        "node": declared.node_id,
        "cluster": declared.cluster,
        "fleet": session.fleet,
        "scopes": None if declared.scopes is None else list(declared.scopes),
        "connected_since": datetime.datetime.fromtimestamp(since, datetime.UTC).isoformat(timespec="milliseconds"),
        "types": {kind_of(url): _type(each) for url, each in session.types.items()},
    }


def _type(subscription: Subscription) -> dict[str, Any]:
    subscribed = [WILDCARD] if subscription.wildcard else []
    subscribed += sorted(f"{prefix}{WILDCARD}" for prefix in subscription.globs)
    subscribed += sorted(subscription.names)
    return {
        "subscribed": subscribed,
        "sent": {name: held.version for name, held in sorted(subscription.sent.items())},
        "last_nonce": subscription.last_nonce,
        "unanswered": subscription.unanswered,
        "acked": subscription.acks,
        "nacked": subscription.nack_count,
        "nacks": [
            {"nonce": nack.nonce, "reason": nack.reason, "names": list(nack.blamed)} for nack in subscription.nacks
        ],
    }
