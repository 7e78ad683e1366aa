"""Who may write to a namespace, and the sentences that say why not.

A namespace has one owner at a time: tools, an OpenAPI source or an MCP server. Called by reduce.
"""

from __future__ import annotations

from arion_tds.registry.snapshot import Namespace, Owner


def refusal(namespace: str, held: Namespace | None, claimant: Owner) -> str | None:
    """Why the claimant may not have the namespace, or None: it is free, or the claimant's already."""
    if held is None or held.owner is claimant:
        return None
    return f"namespace {namespace!r} is owned by {title(namespace, held)}"


def title(namespace: str, held: Namespace) -> str:
    """The owner as sentences call it."""
    match held.owner:
        case Owner.SOURCE:
            return f"OpenAPI source {namespace!r}"
        case Owner.SERVER:
            return f"MCP server {namespace!r}"
        case Owner.TOOLS:
            some = next(iter(held.tools.values())).qualified  # a namespace of tools holds at least one
            return f"tools, such as {some!r}"
