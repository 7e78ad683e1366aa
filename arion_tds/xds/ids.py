"""Resource IDs: `<server>/<config>/<name>`, where only the first two slashes split.

In: names as a response spells them. Out: a `ResourceId`, or why there is none. Called by xds.response and xds.session.
"""

from __future__ import annotations

import sys
from typing import Final

from arion_tds.model.delivery import Kind, ResourceId

WILDCARD: Final = "*"


NO_SCOPE: Final = {"": None}
"""The scopes of a kind whose names are names of their own."""


def read(kind: Kind, name: str) -> ResourceId | str:
    """The ID in the name of a resource of that kind, or why it is malformed."""
    return parse(name) if kind.scoped else ResourceId("", name)


def parse(name: str) -> ResourceId | str:
    """The ID in `name`, or a sentence part that says why it is malformed. The last part may hold slashes."""
    parts = name.split("/", 2)
    if len(parts) == 3 and parts[0] and parts[1] and parts[2]:
        return ResourceId(sys.intern(f"{parts[0]}/{parts[1]}"), parts[2])
    if len(parts) < 3:
        return f"malformed resource ID: {len(parts)} part(s), want <server>/<config>/<name>"
    return "malformed resource ID: an empty part, want <server>/<config>/<name>"


def glob(scope: str) -> str:
    """The name that subscribes to everything of a scope (cncf/xds TP1, without the xdstp URL)."""
    return f"{scope}/{WILDCARD}"


def scope_of_glob(name: str) -> str | None:
    """The scope when `name` is the glob of one, else None."""
    parts = name.split("/")
    if len(parts) == 3 and parts[2] == WILDCARD and parts[0] and parts[1]:
        return f"{parts[0]}/{parts[1]}"
    return None
