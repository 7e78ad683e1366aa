"""What one process tells the others that serve the same listener, of the sessions that it alone has heard of.

A session of the handshake revisions is good at any of them, but what is kept of it is kept where it happened: calls
that can be cancelled, the one GET stream, that it was ended, the tools that it has found. Sent by front, received by
the fronts of the others; how they travel is not known here (workers.siblings).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

What = Literal["cancelled", "streams", "ended", "found"]


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """`cancelled`: the call with the id `request` (raw JSON). `streams`: a GET stream was opened, others are to end.

    `ended`: by the client of that `subject`. `found`: these `names`, the best first.
    """

    what: What
    session: str
    request: str = ""
    subject: str | None = None
    names: tuple[str, ...] = ()


Tell = Callable[[Note], None]
"""Sends a note to the others. Must not block."""


def nobody(note: Note) -> None:
    """There are no others."""
    del note
