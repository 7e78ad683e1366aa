"""Tool names: what a resource may be called, and what a listener publishes for it.

In: namespace and name of a tool. Out: a qualified name, a published name, or a sentence that says what is wrong.
Called by decode (validity), registry (published names collide or not) and view (what clients see).
"""

from __future__ import annotations

import enum
import functools
import hashlib
import re
from typing import Final

MAX_QUALIFIED: Final = 128
"""Characters of a qualified name (MCP 2026-07-28, server/tools)."""

MAX_PORTABLE: Final = 64
"""Characters that Claude Desktop, the OpenAI API and Cursor all take."""

_USUAL = re.compile(r"[A-Za-z0-9_.\-]+\Z")
_NOT_PORTABLE = re.compile(r"[^A-Za-z0-9_\-]")
_BAD = re.compile(r"[^\x21-\x7e]")


class Naming(enum.Enum):
    """How a listener spells tool names (`tool_names`)."""

    QUALIFIED = "qualified"
    PORTABLE = "portable"
    BARE = "bare"


def qualified(namespace: str, name: str) -> str:
    """`namespace.name`, the resource name of a tool."""
    return f"{namespace}.{name}"


def problem(qualified_name: str) -> str | None:
    """Why the name cannot be served, or None."""
    if len(qualified_name) > MAX_QUALIFIED:
        return f"name of {len(qualified_name)} characters is longer than {MAX_QUALIFIED}"
    bad = _BAD.search(qualified_name)
    if bad is not None:
        return f"name holds {bad.group()!r}: blank, control and non-ASCII characters are not allowed"
    return None


def advice(qualified_name: str) -> str | None:
    """A warning for a name that is served although MCP advises against its characters, or None."""
    if _USUAL.match(qualified_name):
        return None
    return f"name {qualified_name!r} has characters outside [A-Za-z0-9_.-]: some clients will refuse it"


def published(naming: Naming, namespace: str, name: str) -> str:
    """The name that clients of a listener see. Never parse it back: look it up."""
    if naming is Naming.QUALIFIED:
        return f"{namespace}.{name}"
    if naming is Naming.BARE:
        return name
    return _portable(namespace, name)


# The registry, the View and the search index ask for the same name one after the other, and keep what they get.
@functools.lru_cache(1024)
def _portable(namespace: str, name: str) -> str:
    portable = _NOT_PORTABLE.sub("_", f"{namespace}__{name}")
    if len(portable) <= MAX_PORTABLE:
        return portable
    digest = hashlib.sha1(f"{namespace}.{name}".encode(), usedforsecurity=False).hexdigest()[:6]
    return f"{portable[: MAX_PORTABLE - 7]}_{digest}"
